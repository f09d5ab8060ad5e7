"""A drive recorded for `flatrope replay`."""

from flatrope_planner.bringup.launching import launch_description
from flatrope_planner.bringup.recording import RECORD_ARGUMENTS, record_processes
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch flatrope_planner record.launch.py` runs."""
    return launch_description(RECORD_ARGUMENTS, record_processes, {})
