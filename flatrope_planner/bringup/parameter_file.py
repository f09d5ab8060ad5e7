"""ROS parameter files: what one sets for a node, by the rules of rcl, told before any node starts."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError, reason

PARAMETERS = "ros__parameters"


def read_parameter_file(path: Path, node: str, *, anywhere: bool = False) -> dict[str, Any]:
    """The parameters that a file sets for a node: of all its sections that fit, the later over the earlier.

    Sections are called `/**`, `/planner`, `planner`, `/car/planner`, `/*/planner`, or lie in one another:
    `car: planner:`. `*` is one word of a name, `**` any number of them.

    Args:
        path: of the file.
        node: its full name, such as "/planner".
        anywhere: take the sections of that node in other namespaces as well.

    Raises:
        InputError: if it is no such file, or no section is for the node.
    """
    sections = list(_sections(path, _content(path)))
    own = [values for name, values in sections if _fits(name, node) or (anywhere and name.endswith(node))]
    if not own:
        there = ", ".join(dict.fromkeys(name for name, _ in sections)) or "nothing"
        msg = f"{path} sets nothing for {node}: it speaks of {there}, expected a section /**, {node[1:]} or {node}"
        raise InputError(msg)
    return {name: value for values in own for name, value in values.items()}


def _content(path: Path) -> Mapping[Any, Any]:
    import yaml

    # A device may have no end.
    if path.exists() and not path.is_file():
        msg = f"{path} is no file, expected a parameter file"
        raise InputError(msg)
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        msg = f"{path} does not exist, expected a parameter file"
        raise InputError(msg) from err
    except OSError as err:
        msg = f"{path} cannot be read: {err.strerror}"
        raise InputError(msg) from err
    except yaml.MarkedYAMLError as err:
        place = f"line {err.problem_mark.line + 1}: " if err.problem_mark else ""
        msg = f"{path} is no parameter file: {place}{err.problem}"
        raise InputError(msg) from err
    except (ValueError, RecursionError, yaml.YAMLError) as err:
        msg = f"{path} is no parameter file: {reason(err)}"
        raise InputError(msg) from err
    if content is None:
        msg = f"{path} is empty, expected a parameter file with a section such as /**: {PARAMETERS}"
        raise InputError(msg)
    if not isinstance(content, Mapping):
        msg = f"{path} is no parameter file: expected sections such as /**: {PARAMETERS}"
        raise InputError(msg)
    return content


def _sections(path: Path, content: Mapping[Any, Any], outer: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Full names of nodes, which may have wildcards in them, and what is set for them."""
    for key, value in content.items():
        name = outer if key == PARAMETERS else f"{outer}/{str(key).strip('/')}"
        if not isinstance(value, Mapping):
            wanted = "parameters with their values" if key == PARAMETERS else PARAMETERS
            msg = f"{path} is no parameter file: {key!r} of {outer or 'it'} is {_shown(value)}, expected {wanted}"
            raise InputError(msg)
        if key == PARAMETERS:
            yield name, value
        else:
            yield from _sections(path, value, name)


def _shown(value: object) -> str:
    return "empty" if value is None else reason(ValueError(repr(value)))


def _fits(section: str, node: str) -> bool:
    wild = {"**": r"(/\w+)*", "*": r"/\w+"}
    pattern = "".join(wild.get(part, f"/{re.escape(part)}") for part in section.split("/")[1:])
    return re.fullmatch(pattern, node) is not None
