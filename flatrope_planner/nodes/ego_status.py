"""What is known about the odometry, in the status of the inputs."""

from dataclasses import replace

from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.planning.ego_motion import EgoMotion


def with_odometry(inputs: TaskReport, motion: EgoMotion) -> TaskReport:
    """The report, a warning at least where the odometry contradicts itself or its parameters."""
    values = {**inputs.values, **motion.values()}
    complaints = motion.complaints()
    if not complaints:
        return replace(inputs, values=values)
    told = [] if inputs.level is Level.OK else [inputs.message]
    return TaskReport(inputs.task, max(inputs.level, Level.WARN), "; ".join([*told, *complaints]), values)
