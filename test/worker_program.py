"""`python worker_program.py FOLDER`: two processes that say where they are and sleep, as a command would start them."""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from flatrope_planner.workers import run_in_workers


def sleep(folder: Path, number: int) -> int:
    (folder / f"{number}.{os.getpid()}").touch()
    time.sleep(60.0 if number < 2 else 0.0)
    return number


if __name__ == "__main__":
    # Tests may run in the background, where shells keep it from all that is started.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in run_in_workers(partial(sleep, Path(sys.argv[1])), range(4), 2):
            pass
    except KeyboardInterrupt:
        sys.exit(130)
