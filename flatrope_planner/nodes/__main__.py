"""`python -m flatrope_planner.nodes <executable> --ros-args ...`: runs a node where no executable is installed."""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType

from flatrope_planner.errors import import_complaint

# What benchmarks run beside the nodes.
BENCHMARK_NODES = ("faulty_planner", "plan_witness", "sensor_player", "transport_probe")
NODES = sorted([*(file.stem for file in Path(__file__).parent.glob("*_node.py")), *BENCHMARK_NODES])


def main() -> None:
    """Run the node named by the first argument; exit code 2 when there is none of that name."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in NODES:
        print(f"there is no node {name!r}; there are {', '.join(NODES)}", file=sys.stderr)
        sys.exit(2)
    # While importing, nothing has been started that would have to be ended. A KeyboardInterrupt would not do: one that
    # leaves code that a library has put together as a string makes Python end itself by SIGINT whoever catches it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        node = import_module(f"flatrope_planner.nodes.{name}")
    except ImportError as err:
        sys.exit(import_complaint(err))
    node.main()


def _end(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)


if __name__ == "__main__":
    main()
