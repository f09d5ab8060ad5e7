"""Finds and reads the files of config/."""

import sys
from pathlib import Path
from typing import Any

import yaml

from flatrope_planner.errors import SetupError, reason

PACKAGE = "flatrope_planner"


def config_file(name: str) -> Path:
    """The file of that name in config/, of the checkout this module lies in or else of the installed package.

    Raises:
        SetupError: if there is none.
    """
    roots = [Path(__file__).resolve().parents[2], *_installed(), Path(sys.prefix) / "share" / PACKAGE]
    for root in roots:
        path = root / "config" / name
        if path.is_file():
            return path
    msg = f"config/{name} is in none of: {', '.join(str(root) for root in roots)}; is the package sourced?"
    raise SetupError(msg)


def message_definitions() -> Path:
    """The folder of the package's .msg files.

    Raises:
        SetupError: if the package is neither installed nor checked out.
    """
    return config_file("recorder.param.yaml").parent.parent / "msg"


def _installed() -> list[Path]:
    try:
        # Some commands run where there is no ROS.
        from ament_index_python.packages import get_package_share_directory

        return [Path(get_package_share_directory(PACKAGE))]
    except (LookupError, ImportError, OSError):
        # Not installed, or nothing is sourced at all.
        return []


def read_parameter_file(path: Path) -> dict[str, Any]:
    """The parameters that a ROS parameter file sets for any node.

    Raises:
        SetupError: if the file cannot be read as one.
    """
    try:
        parameters: Any = yaml.safe_load(path.read_text(encoding="utf-8"))["/**"]["ros__parameters"]
        return {**parameters}
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError) as err:
        msg = f"{path} is no parameter file with a section /**: ros__parameters ({reason(err)})"
        raise SetupError(msg) from err


def default_parameters(name: str) -> dict[str, Any]:
    """The parameters set in config/<name>.

    Raises:
        SetupError: if it is missing or unreadable.
    """
    return read_parameter_file(config_file(name))
