"""A folder that one run at a time writes into: a second one would take the files of the first for its own."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flatrope_planner.errors import InputError, SetupError

LOCK_FILE = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within, no other run has the folder, which is made where it is missing.

    The lock ends with this process, however it ends; the empty file that it is on stays. Where the file system knows no
    locks, nobody is kept out.

    Raises:
        InputError: if another run has the folder.
        SetupError: if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("a", encoding="utf-8")
    except OSError as err:
        msg = f"{folder} cannot be written: {err.strerror or err}"
        raise SetupError(msg) from err
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            msg = f"another run writes into {folder}: wait until it has ended, or name another folder"
            raise InputError(msg) from err
        except OSError:
            # No locks here, as on some network drives.
            pass
        yield
