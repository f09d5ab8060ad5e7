"""Orders from a benchmark to a process it has started: lines of text through a named pipe, read without waiting."""

import os
from contextlib import suppress
from pathlib import Path


class OrderPipe:
    """The giving end; makes the pipe."""

    def __init__(self, path: Path) -> None:
        """Make a pipe at this path, which must be free."""
        os.mkfifo(path)
        self.path = path
        # Both ends at once: opening does not wait, and a reader that is killed takes nothing with it.
        self._file = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def send(self, order: str) -> None:
        """Give an order of one line."""
        os.write(self._file, f"{order}\n".encode())

    def close(self) -> None:
        """Remove the pipe."""
        os.close(self._file)
        self.path.unlink()


class OrderReader:
    """The taking end."""

    def __init__(self, path: Path) -> None:
        """Open a pipe that exists."""
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> list[str]:
        """The orders that have come since the last time."""
        with suppress(BlockingIOError):
            return os.read(self._file, 1 << 16).decode().splitlines()
        return []

    def close(self) -> None:
        """Read no more."""
        os.close(self._file)
