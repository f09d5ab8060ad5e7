"""Planner and diagnostics, fed by CARLA, a bag, or a vehicle."""

from flatrope_planner.bringup.description import PLANNER_ARGUMENTS, planner_processes
from flatrope_planner.bringup.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch flatrope_planner planner.launch.py` runs."""
    return launch_description(PLANNER_ARGUMENTS, planner_processes, {})
