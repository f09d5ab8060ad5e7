"""Writing results: a disk that is full or a folder that may not be written to ends the work with one line."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flatrope_planner.errors import SetupError

# The files that show that a bag was replayed into a folder.
RESULT, PLANS_BAG = "result.json", "plans.mcap"
# No other bag could be written either.
HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Within, nothing but results is written.

    Raises:
        SetupError: if that fails.
    """
    try:
        yield
    except OSError as err:
        raise cannot_write(folder, err) from err


def cannot_write(folder: Path, err: OSError) -> SetupError:
    """The error as one line that names the folder."""
    return SetupError(f"{folder} cannot be written: {err.strerror or err}")
