"""Typed reading of a checkpoint's `config.json`, section by section."""

import math
from pathlib import Path
from typing import Any, NoReturn

from flatrope_planner.errors import SetupError, reason

# Nothing larger is of use: a size, and a number of things that are made one by one.
MOST, MOST_THINGS = 2**20, 1024
MOST_CHARACTERS = 1000


class Section:
    """One object of a configuration; asks for what it holds by name and type."""

    def __init__(self, path: Path, content: dict[str, Any], name: str = "") -> None:
        """Of the file `path`; `name` is "" for the whole."""
        self._path, self._content, self._name = path, content, name

    def holds(self, key: str) -> bool:
        """Whether there is such a field, and it is not null."""
        return self._content.get(key) is not None

    def section(self, key: str) -> "Section":
        """An object in it."""
        value = self._content.get(key)
        if not isinstance(value, dict):
            self.refuse(key, "an object")
        return Section(self._path, value, f"{self._name}{key}.")

    def built_as(self, key: str, kind: str) -> "Section":
        """An object in it that describes an instance of the class of this name, whatever module it is said to be in."""
        section = self.section(key)
        if not section.is_built_as(kind):
            section.refuse("_target_", f"a path that ends in {kind}")
        return section

    def fields(self, key: str) -> dict[str, Any]:
        """All of an object in it, as it stands."""
        return dict(self.section(key)._content)  # noqa: SLF001

    def is_built_as(self, kind: str) -> bool:
        """Whether it describes an instance of the class of this name."""
        return self.text("_target_").rsplit(".", 1)[-1] == kind

    def text(self, key: str, default: str | None = None) -> str:
        """A string, and no book."""
        value = self._content.get(key, default)
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
            self.refuse(key, f"a string of at most {MOST_CHARACTERS} characters")
        return value

    def whole(self, key: str, default: int | None = None, most: int = MOST) -> int:
        """A whole number above zero."""
        value = self._content[key] if self.holds(key) else default
        if type(value) is not int or not 1 <= value <= most:
            self.refuse(key, f"a whole number from 1 to {most}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._content[key] if self.holds(key) else default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.refuse(key, "a number")
        return float(value)

    def numbers(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """As many finite numbers as the default has."""
        value = self._content.get(key, default)
        fits = isinstance(value, list | tuple) and len(value) == len(default)
        if not fits or not all(type(item) in (int, float) and math.isfinite(item) for item in value):
            self.refuse(key, f"{len(default)} numbers")
        return tuple(float(item) for item in value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._content[key] if self.holds(key) else default
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def must_be(self, key: str, expected: float | str | bool) -> None:
        """Refuse any other value; none at all is fine."""
        if self.holds(key) and self._content[key] != expected:
            self.refuse(key, repr(expected))

    def holds_only(self, *keys: str) -> None:
        """Refuse fields of any other name, which would do nothing."""
        unknown = sorted(self._content.keys() - set(keys))
        if unknown:
            msg = f"{self._path}: {self._name}{unknown[0][:60]} is no setting, expected some of {', '.join(keys)}"
            raise SetupError(msg)

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Say that a field is not as expected.

        Raises:
            SetupError: always.
        """
        got = reason(ValueError(repr(self._content[key]))) if key in self._content else "missing"
        msg = f"{self._path}: {self._name}{key} is {got}, expected {expected}"
        raise SetupError(msg)
