"""The planner node around a core that needs neither PyTorch nor time: `python quick_planner.py --ros-args ...`."""

from stand_ins import StraightCore

from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.nodes.running import run_node

run_node(lambda: PlannerNode(lambda _: StraightCore()), lasting=True)
