"""Finds and reads the files of config/. Can be imported where neither ROS 2 nor PyYAML is: the doctor says so there."""

import re
import sys
from pathlib import Path
from typing import Any

from flatrope_planner.bringup.parameter_file import read_parameter_file
from flatrope_planner.errors import InputError, SetupError, reason

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
    share = installed_share()
    return [] if share is None else [share]


def installed_share() -> Path | None:
    """The installed package's share/ folder; None where it is not installed, or nothing is sourced at all."""
    try:
        from ament_index_python.packages import get_package_share_directory

        return Path(get_package_share_directory(PACKAGE))
    except (ImportError, LookupError, OSError):
        return None


def default_parameters(name: str) -> dict[str, Any]:
    """The parameters set in config/<name>.

    Raises:
        SetupError: if it is missing or unreadable.
    """
    try:
        # Those of the package are for whatever node reads them.
        return read_parameter_file(config_file(name), "/any")
    except InputError as err:
        raise SetupError(str(err)) from err


def parameter_meanings(name: str) -> dict[str, str]:
    """What the parameters in config/<name> mean: the comment above each; those without one share the last.

    Raises:
        SetupError: if the file is missing or unreadable.
    """
    path = config_file(name)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as err:
        msg = f"{path} cannot be read ({reason(err)})"
        raise SetupError(msg) from err
    meanings: dict[str, str] = {}
    words: list[str] = []
    ended = True
    for line in lines:
        if comment := re.fullmatch(r" {4}# ?(.*)", line):
            words = [comment[1]] if ended else [*words, comment[1]]
            ended = False
        elif parameter := re.match(r" {4}(\w+):", line):
            meanings[parameter[1]] = " ".join(words)
            ended = True
    return meanings
