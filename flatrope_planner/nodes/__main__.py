"""`python -m flatrope_planner.nodes <executable> --ros-args ...`: runs a node where no executable is installed."""

import sys
from importlib import import_module


def main() -> None:
    """Run the node named by the first argument."""
    try:
        import_module(f"flatrope_planner.nodes.{sys.argv[1]}").main()
    except KeyboardInterrupt:
        # Interrupted while still importing: nothing has been started that would have to be ended.
        sys.exit(0)


if __name__ == "__main__":
    main()
