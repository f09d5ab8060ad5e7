"""What all commands share: how one is added, what it returns, where its result goes."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError

Result = Mapping[str, Any]

EXIT_OK, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 2, 130
# A command whose work has brought something to light says so in its result.
EXIT_CODE = "exit_code"


def add_command(commands: Any, name: str, run: Any, meaning: str) -> argparse.ArgumentParser:
    """Add a command that calls `run` with its arguments and returns a `Result`."""
    description = f"{meaning[0].upper()}{meaning[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    parser.set_defaults(run=run)
    return parser


def prepare_folder_of(file: Path | None) -> None:
    """Make the folder a result goes into, and see that the file can be written, before the work and not after it.

    Raises:
        InputError: if the file cannot be written.
    """
    if file is None:
        return
    if file.is_dir():
        msg = f"{file} cannot be written: it is a folder"
        raise InputError(msg)
    try:
        file.absolute().parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.touch()
            file.unlink()
        elif file.is_file():
            # Pipes and terminals are not opened before there is something to say.
            file.open("a").close()
    except OSError as err:
        msg = f"{file} cannot be written: {err.strerror}"
        raise InputError(msg) from err
