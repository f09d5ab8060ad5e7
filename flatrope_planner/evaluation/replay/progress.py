"""One line about long work whose progress is a share: how far it is, and how long it will still take."""

import sys
import time
from typing import TextIO

from flatrope_planner.progress import LOG_PERIOD_S, clock

# A share smaller than this foretells nothing.
LEAST_SHARE = 0.005


class ShareLine:
    """Overwrites itself in a terminal; elsewhere a new line comes from time to time."""

    def __init__(self, what: str, total: int, stream: TextIO | None = None) -> None:
        """Tell of `total` pieces of work on the stream (stderr)."""
        self._what, self._total, self._done = what, total, 0
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._started_s = self._shown_s = time.monotonic()

    def finished_one(self) -> None:
        """Count a finished piece."""
        self._done += 1

    def show(self, share: float) -> None:
        """Show how much is done (0 to 1)."""
        now_s = time.monotonic()
        if not self._terminal and now_s - self._shown_s < LOG_PERIOD_S:
            return
        self._shown_s = now_s
        text = self.text(share, now_s - self._started_s)
        print(
            f"\r\x1b[K{text}" if self._terminal else text,
            end="" if self._terminal else "\n",
            file=self._stream,
            flush=True,
        )

    def text(self, share: float, passed_s: float) -> str:
        """For example `replay 2/5 bags, 43 %, 1:05 passed, 1:26 left`."""
        left = f"{clock(passed_s / share * (1.0 - share))} left" if share > LEAST_SHARE else "..."
        return f"{self._what} {self._done}/{self._total} bags, {100.0 * share:.0f} %, {clock(passed_s)} passed, {left}"

    def say(self, line: str) -> None:
        """Print a line that stays."""
        clear = "\r\x1b[K" if self._terminal else ""
        print(f"{clear}{line}", file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the line as it stands."""
        if self._terminal:
            print(file=self._stream, flush=True)
