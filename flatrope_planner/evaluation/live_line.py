"""Output of several processes in one terminal: one line that is overwritten, everything else above it."""

import shutil
import sys
import time
from threading import Lock
from typing import TextIO

DEFAULT_WIDTH = 120
# Where lines cannot be overwritten (a log file), the live one comes this often (s).
LOG_PERIOD_S = 5.0


class LiveLine:
    """Takes lines from any thread; those that start with `prefix` overwrite each other."""

    def __init__(self, prefix: str, stream: TextIO | None = None) -> None:
        """Write to the stream (stderr)."""
        self._prefix, self._stream = prefix, stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._lock = Lock()
        self._live, self._logged_s = "", float("-inf")

    def write(self, line: str) -> None:
        """Show a line."""
        with self._lock:
            if not line.startswith(self._prefix):
                self._print_above(line)
            elif self._terminal:
                self._live = line.removeprefix(self._prefix)
                self._redraw()
            elif time.monotonic() - self._logged_s >= LOG_PERIOD_S:
                self._logged_s = time.monotonic()
                print(line.removeprefix(self._prefix), file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the live line as it stands."""
        if self._terminal and self._live:
            print(file=self._stream, flush=True)

    def _print_above(self, line: str) -> None:
        clear = "\r\x1b[K" if self._terminal else ""
        print(f"{clear}{line}", file=self._stream, flush=True)
        if self._terminal:
            self._redraw()

    def _redraw(self) -> None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 1)).columns
        print(f"\r\x1b[K{self._live[: width - 1]}", end="", file=self._stream, flush=True)
