"""What is recorded for a replay: the topics of each preset, and who records them where rosbag2 does not."""

from collections.abc import Mapping

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import (
    CAMERA_TOPIC,
    COMMAND_TOPIC,
    NAMESPACE,
    NODE_NAME,
    ODOMETRY_TOPIC,
    PLANNER_FILE,
    ROLE,
    USE_SIM_TIME,
    Argument,
    NodeProcess,
    cameras_of,
    completed,
    planner_name,
    topic_of,
)
from flatrope_planner.errors import InputError

RECORDER = "recorder"
MINIMAL, FULL = "minimal", "full"
FILE = Argument("file", "out/drive.mcap", "the bag to write; an existing one is replaced", is_path=True)
PRESET = Argument(
    "preset",
    FULL,
    "minimal: what a replay needs; full: calibration, route hints and what a running planner says besides",
    (MINIMAL, FULL),
)
INPUTS = (CAMERA_TOPIC, ODOMETRY_TOPIC, COMMAND_TOPIC)
RECORD_ARGUMENTS = (FILE, PRESET, ROLE, USE_SIM_TIME, PLANNER_FILE, *INPUTS, NODE_NAME, NAMESPACE)

# How pictures are sent, as the last part of a topic.
COMPRESSED = "/compressed"
MOUNTS = "/tf_static"
PLANNED = ("trajectory", "path", "rationale", "rationale_text", "speculation")


def recorded_topics(chosen: Mapping[str, str]) -> tuple[str, ...]:
    """The topics of a preset.

    Raises:
        InputError: on an argument that does not fit.
    """
    values = completed(RECORD_ARGUMENTS, chosen)
    planner = planner_name(values)
    cameras = _camera_topics(values)
    topics = [*cameras, topic_of(values, ODOMETRY_TOPIC)]
    if values[PRESET.name] == FULL:
        said = (f"{planner}/output/{name}" for name in PLANNED)
        command = topic_of(values, COMMAND_TOPIC).replace("~", planner, 1)
        topics += [*(_beside(camera) for camera in cameras), MOUNTS, command, *said]
    if not all(topic.startswith("/") for topic in topics):
        relative = next(topic for topic in topics if not topic.startswith("/"))
        msg = f"{relative!r} cannot be recorded: expected a topic from the root on, such as /{relative.lstrip('~/')}"
        raise InputError(msg)
    return tuple(dict.fromkeys(topics))


def record_processes(chosen: Mapping[str, str]) -> tuple[NodeProcess, ...]:
    """The package's own recorder; pictures become JPEG.

    Raises:
        InputError: on an argument that does not fit.
    """
    values = completed(RECORD_ARGUMENTS, chosen)
    recorder = NodeProcess(
        executable="recorder_node",
        name=RECORDER,
        parameter_file=str(config_file("recorder.param.yaml")),
        parameters={
            "use_sim_time": values[USE_SIM_TIME.name] == "true",
            "file": values[FILE.name],
            "topics": " ".join(recorded_topics(chosen)),
            "cameras": " ".join(_camera_topics(values)),
            "odometry": topic_of(values, ODOMETRY_TOPIC),
        },
    )
    return (recorder,)


def _camera_topics(values: Mapping[str, str]) -> list[str]:
    file = values[PLANNER_FILE.name] or str(config_file("planner.param.yaml"))
    return [topic_of(values, CAMERA_TOPIC, camera) for camera in cameras_of(file, planner_name(values))]


def _beside(camera_topic: str) -> str:
    """Where a camera says how it looks: beside its pictures, as image_transport has it."""
    pictures = camera_topic.removesuffix(COMPRESSED)
    return f"{pictures.rpartition('/')[0]}/camera_info"
