"""Arguments as users write them: what a command could not use is refused before its work, in one line."""

import math
import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

# More processes than this are a slip of the finger.
MOST_JOBS = 1024
# What NumPy and PyTorch both take.
MOST_SEED = 2**32 - 1


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type for integers of [least, most]; None is no upper limit."""

    def convert(text: str) -> int:
        try:
            number = int(text)
            fits = least <= number <= (number if most is None else most)
        except ValueError:
            fits = False
        if not fits:
            msg = f"{text!r} is no whole number {_limits(least, most)}"
            raise ArgumentTypeError(msg)
        return number

    return convert


def real_number(least: float, most: float) -> Callable[[str], float]:
    """A type for finite numbers of [least, most]."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        # Nothing compares to what is no number.
        if not least <= number <= most:
            msg = f"{text!r} is no number {_limits(least, most)}"
            raise ArgumentTypeError(msg)
        return number

    return convert


def user_path(name: str | Path) -> Path:
    """The path with `~` for the home folder, which shells leave as it is behind `:=` and in parameter files.

    Where nobody has such a home, it stays as it was written, and is not there.
    """
    path = Path(name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def output_folder(text: str) -> Path:
    """A folder to write into, which need not exist yet.

    Raises:
        ArgumentTypeError: when it is a file, lies below one, or may not be written to.
    """
    path = user_path(text)
    nearest = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), path)
    if not nearest.is_dir():
        msg = f"{nearest} is a file, expected a folder to write into"
        raise ArgumentTypeError(msg)
    if not os.access(nearest, os.W_OK | os.X_OK):
        msg = f"{nearest} may not be written to"
        raise ArgumentTypeError(msg)
    return path


def add_target_argument(parser: ArgumentParser) -> None:
    """`--target`, by the names that the planner's parameter takes (`vla.targets.find_target`)."""
    names = "nano, a checkpoint's folder, or a Hugging Face id in the local cache"
    parser.add_argument("--target", default="nano", metavar="NAME", help=f"{names} (default: %(default)s)")


def add_device_argument(parser: ArgumentParser) -> None:
    """`--device`, by the names that the planner's parameter takes (`vla.target.Running`)."""
    parser.add_argument(
        "--device", default="auto", help="auto, cpu or cuda:N; auto is a GPU where there is one (default: %(default)s)"
    )


def _limits(least: float, most: float | None) -> str:
    return f"of at least {least:g}" if most is None else f"from {least:g} to {most:.10g}"


COUNT = whole_number(1)
JOBS = whole_number(1, MOST_JOBS)
SEED = whole_number(0, MOST_SEED)
