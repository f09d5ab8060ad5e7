"""Simulator, planner, diagnostics and controller: the closed loop on one machine."""

from flatrope_planner.bringup.description import DEMO_ARGUMENTS, demo_environment, demo_processes
from flatrope_planner.bringup.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch flatrope_planner demo.launch.py` runs."""
    return launch_description(DEMO_ARGUMENTS, demo_processes, demo_environment())
