"""What `flatrope replay` takes; loads nothing that is slow."""

from argparse import ArgumentParser
from pathlib import Path

from flatrope_planner.arguments import JOBS, output_folder, real_number, whole_number
from flatrope_planner.dimensions import SHORTEST_PLAN_PERIOD_S

# As for the planner node's period_s.
PERIOD_LIMITS_S = (SHORTEST_PLAN_PERIOD_S, 10.0)
MOST_SAMPLES = 256


def add_replay_arguments(parser: ArgumentParser) -> None:
    """What `flatrope replay` takes."""
    parser.add_argument("bags", type=Path, nargs="+", metavar="BAG", help="bag, or folder with bags in it")
    parser.add_argument("--config", type=Path, metavar="FILE", help="parameters of the planner node (YAML)")
    parser.add_argument("--target", metavar="NAME", help="what plans, instead of what --config says or nano")
    parser.add_argument(
        "--out", type=output_folder, default=Path("out/replay"), metavar="FOLDER", help="default: %(default)s"
    )
    when = parser.add_mutually_exclusive_group()
    low_s, high_s = PERIOD_LIMITS_S
    interval = f"between plans, from {low_s:g} to {high_s:g}; default: the planner's"
    when.add_argument("--interval", type=real_number(low_s, high_s), metavar="SECONDS", help=interval)
    when.add_argument("--at-recorded", action="store_true", help="plan at the times of the plans in the bag")
    parser.add_argument(
        "--camera", action="append", default=[], metavar="NAME=TOPIC", help="may be repeated; default: found by name"
    )
    parser.add_argument("--odometry", metavar="TOPIC", help="default: found by type")
    parser.add_argument("--command", metavar="TOPIC", help="route hints (std_msgs/String)")
    samples = f"trajectories drawn besides the plan for minADE, from 0 to {MOST_SAMPLES} (default: %(default)s)"
    parser.add_argument("--samples", type=whole_number(0, MOST_SAMPLES), default=0, metavar="K", help=samples)
    parser.add_argument("--compare", choices=("off",), help="plan everything without speculation, too")
    crew = parser.add_mutually_exclusive_group()
    crew.add_argument("--jobs", type=JOBS, default=1, help="processes at work (default: %(default)s)")
    crew.add_argument("--ray", metavar="ADDRESS", help="work on this Ray cluster: host:port, ray://host:port, auto")
    parser.add_argument("--fresh", action="store_true", help="replay again what an earlier run has finished")
