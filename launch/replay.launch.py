"""A recorded drive played into the real planner and diagnostics, with the time of the recording."""

from flatrope_planner.bringup.description import REPLAY_ARGUMENTS, demo_environment, replay_processes
from flatrope_planner.bringup.launching import launch_description
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch flatrope_planner replay.launch.py bag:=...` runs."""
    return launch_description(REPLAY_ARGUMENTS, replay_processes, demo_environment())
