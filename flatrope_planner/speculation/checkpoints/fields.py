"""Reads `config.json` of a draft that anyone may have written: every value's type and range is checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.checkpoints.files import file_in, read_json

CONFIG_FILE = "config.json"
# Most characters of a wrong value that a message shows.
SHOWN = 60


class Fields:
    """The values of one JSON object; a wrong one is refused with its name."""

    def __init__(self, path: Path, content: Mapping[str, Any], prefix: str = "") -> None:
        """Values of `content`, a part of the file called `prefix`."""
        self.path, self._content, self._prefix = path, content, prefix

    def has(self, name: str) -> bool:
        """Whether the value is there, and not null."""
        return self._content.get(name) is not None

    def integer(self, name: str, allowed: range, default: int | None = None) -> int:
        """A whole number."""
        value = self._get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            self.refuse(name, f"a whole number from {allowed.start} to {allowed.stop - 1}")
        return value

    def number(self, name: str, least: float, most: float, default: float | None = None) -> float:
        """A finite number."""
        value = self._get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(name, f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """True or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            self.refuse(name, "true or false")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A short text."""
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > SHOWN:
            self.refuse(name, f"a text of at most {SHOWN} characters")
        return value

    def integers(self, name: str, allowed: range, most: int) -> tuple[int, ...]:
        """One to `most` whole numbers."""
        value = self._get(name, None)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            self.refuse(name, f"1 to {most} whole numbers")
        if any(not isinstance(each, int) or isinstance(each, bool) or each not in allowed for each in value):
            self.refuse(name, f"whole numbers from {allowed.start} to {allowed.stop - 1}")
        return tuple(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Texts, perhaps none."""
        value = self._get(name, [])
        if not isinstance(value, list) or any(not isinstance(each, str) for each in value):
            self.refuse(name, "a list of texts")
        return tuple(value)

    def section(self, name: str) -> "Fields":
        """An object within."""
        value = self._get(name, None)
        if not isinstance(value, dict):
            self.refuse(name, "an object")
        return Fields(self.path, value, f"{self._prefix}{name}.")

    def over(self, defaults: Mapping[str, Any]) -> "Fields":
        """The same values, on top of those that hold where one is missing."""
        said = {name: value for name, value in self._content.items() if value is not None}
        return Fields(self.path, {**defaults, **said}, self._prefix)

    def only(self, name: str, *allowed: object) -> None:
        """Refuse any other value; one that is absent counts as null.

        Raises:
            SetupError: for another value.
        """
        value = self._content.get(name)
        if not any(value is each or (type(value) is type(each) and value == each) for each in allowed):
            self.refuse(name, " or ".join(json.dumps(each) for each in allowed))

    def all_are(self, name: str, allowed: str) -> None:
        """Refuse a list with any other text in it; it may be absent.

        Raises:
            SetupError: for another value.
        """
        value = self._get(name, [])
        if not isinstance(value, list) or any(each != allowed for each in value):
            self.refuse(name, f"only {allowed}")

    def refuse(self, name: str, expected: str) -> NoReturn:
        """Complain about a value.

        Raises:
            SetupError: always.
        """
        value = repr(self._content[name])[:SHOWN] if name in self._content else "missing"
        msg = f"{self.path}: {self._prefix}{name} is {value}, expected {expected}"
        raise SetupError(msg)

    def _get(self, name: str, default: object) -> Any:
        value = self._content.get(name)
        return default if value is None else value


def read_config(directory: Path) -> Fields:
    """The configuration of a draft.

    Raises:
        SetupError: when there is none.
    """
    path = file_in(directory, CONFIG_FILE)
    try:
        problem, content = "", read_json(path)
        if not isinstance(content, dict):
            problem = "not an object"
    except FileNotFoundError:
        problem = "no such file"
    except (OSError, ValueError) as err:
        problem = (str(err).splitlines() or [type(err).__name__])[0]
    if problem:
        remedy = f"`flatrope train draft --target NAME --out {directory}` trains one"
        msg = f"{path}: no configuration of a draft ({problem}); {remedy}"
        raise SetupError(msg)
    return Fields(path, content)


def write_config(directory: Path, content: Mapping[str, Any]) -> None:
    """Write a configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONFIG_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
