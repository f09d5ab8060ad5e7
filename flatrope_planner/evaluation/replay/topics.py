"""Which topics of a bag are the planner's inputs: by type, and for cameras by name, where nobody says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_source import Topic
from flatrope_planner.planning.camera_identity import plain_name

IMAGE, COMPRESSED_IMAGE = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
ODOMETRY, TEXT = "nav_msgs/msg/Odometry", "std_msgs/msg/String"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
TRANSFORM, TRANSFORMS = "geometry_msgs/msg/TransformStamped", "tf2_msgs/msg/TFMessage"
PLANNED = "flatrope_planner/msg/PlannedTrajectory"
# What tells of motion, but not of pose and speed in one frame at one time.
OTHER_MOTION = (
    *("geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped", "nav_msgs/msg/Path"),
    *("geometry_msgs/msg/TwistStamped", "geometry_msgs/msg/TwistWithCovarianceStamped", "sensor_msgs/msg/NavSatFix"),
)
# Parts of a topic's name that say how a picture is sent, not by which camera.
TRANSPORT = {"image", "image_raw", "image_rect", "image_color", "image_rect_color", "compressed", "camera_info"}
# Pictures that are none of a colour camera, and pictures of our own.
NO_PHOTOGRAPHS = ("depth", "segmentation", "semantic", "instance", "disparity", "mask", "overlay", "thermal", "lidar")
# How pictures are sent, as the last part of a topic.
COMPRESSED = "/compressed"
USUAL_ODOMETRY = ("odometry", "kinematic_state", "odom")


@dataclass(frozen=True)
class TopicWishes:
    """What the user says about topics; everything else is found."""

    # Camera of the target -> topic.
    cameras: Mapping[str, str] = field(default_factory=dict)
    odometry: str | None = None
    command: str | None = None
    # Compressed pictures where a camera has both.
    prefer_compressed: bool = False


@dataclass(frozen=True)
class ChosenTopics:
    """Where a bag's inputs are."""

    # Camera of the target -> topic.
    cameras: dict[str, str]
    odometry: str
    # Topics that could have been the odometry, too.
    other_odometry: tuple[str, ...]
    # Topic of route hints, or None.
    command: str | None
    # How cameras look and where they sit.
    calibration: tuple[str, ...]
    # Plans of a planner that was at work when the bag was recorded.
    recorded_plans: tuple[str, ...]

    def types_of(self, topic: str) -> tuple[str, ...]:
        """What is read of a topic: another tool may have written messages of several types under one name."""
        if topic in self.cameras.values():
            return IMAGE, COMPRESSED_IMAGE
        if topic == self.odometry:
            return (ODOMETRY,)
        if topic == self.command:
            return (TEXT,)
        return (PLANNED,) if topic in self.recorded_plans else (CAMERA_INFO, TRANSFORM, TRANSFORMS)

    @property
    def names(self) -> set[str]:
        """All of them."""
        command = {self.command} if self.command else set()
        return {*self.cameras.values(), self.odometry, *self.calibration, *self.recorded_plans} | command


def choose_topics(topics: Sequence[Topic], cameras: Sequence[str], wishes: TopicWishes) -> ChosenTopics:
    """The inputs for a target that looks at these cameras.

    Raises:
        InputError: naming what is not there, with what is.
    """
    odometry = _choose_odometry(topics, wishes.odometry)
    calibration = [t.name for t in topics if t.message_type in (CAMERA_INFO, TRANSFORM) or _is_static(t)]
    return ChosenTopics(
        cameras=_choose_cameras(topics, cameras, wishes),
        odometry=odometry,
        other_odometry=tuple(t.name for t in topics if t.message_type == ODOMETRY and t.name != odometry),
        command=_choose_command(topics, wishes.command),
        calibration=tuple(calibration),
        recorded_plans=tuple(t.name for t in topics if t.message_type == PLANNED and "/reference/" not in t.name),
    )


def camera_of(topic: str) -> str:
    """The part of a topic's name that names the camera: /carla/ego/front_wide/image/compressed -> front_wide."""
    parts = [part for part in topic.split("/") if part and part not in TRANSPORT]
    return parts[-1] if parts else topic


def _is_static(topic: Topic) -> bool:
    return topic.message_type == TRANSFORMS and topic.name.endswith("/tf_static")


def _choose_odometry(topics: Sequence[Topic], wish: str | None) -> str:
    found = [topic for topic in topics if topic.message_type == ODOMETRY]
    if wish is not None:
        return _wanted(found, wish, ODOMETRY).name
    if not found:
        others = [f"{topic.name} ({topic.message_type})" for topic in topics if topic.message_type in OTHER_MOTION]
        besides = f"; {', '.join(others)} cannot stand for it" if others else ""
        msg = f"no {ODOMETRY} with messages: there is no history to plan from and no drive to compare with{besides}"
        raise InputError(msg)
    usual = [topic for topic in found if topic.name.rstrip("/").endswith(USUAL_ODOMETRY)]
    return min(usual or found, key=lambda topic: (-topic.messages, topic.name)).name


def _choose_command(topics: Sequence[Topic], wish: str | None) -> str | None:
    found = [topic for topic in topics if topic.message_type == TEXT]
    if wish is not None:
        return _wanted(found, wish, TEXT).name
    return next((topic.name for topic in found if topic.name.endswith("/input/command")), None)


def _choose_cameras(topics: Sequence[Topic], cameras: Sequence[str], wishes: TopicWishes) -> dict[str, str]:
    unknown = sorted(set(wishes.cameras) - set(cameras))
    if unknown:
        msg = f"there is no camera {unknown[0]!r}; the target looks at {', '.join(cameras)}"
        raise InputError(msg)
    pictures = [topic for topic in topics if topic.message_type in (IMAGE, COMPRESSED_IMAGE)]
    chosen = {
        camera: _wanted_picture(pictures, wish)
        if (wish := wishes.cameras.get(camera))
        else _best(pictures, camera, wishes)
        for camera in cameras
    }
    if missing := [camera for camera, topic in chosen.items() if not topic]:
        raise _not_found(missing, pictures, wishes)
    twice = sorted({topic for topic in chosen.values() if list(chosen.values()).count(topic) > 1})
    if twice:
        takers = " and ".join(camera for camera, topic in chosen.items() if topic == twice[0])
        msg = f"topic {twice[0]} would serve cameras {takers}; name the topic of each: --camera NAME=TOPIC"
        raise InputError(msg)
    return chosen


def _not_found(missing: Sequence[str], pictures: Sequence[Topic], wishes: TopicWishes) -> InputError:
    """The complaint about cameras without a topic, all of them at once."""
    there = ", ".join(topic.name for topic in pictures) or "none"
    wished = [wishes.cameras[camera] for camera in missing if camera in wishes.cameras]
    sought = [camera for camera in missing if camera not in wishes.cameras]
    complaints = [f"no image topic {', '.join(wished)} with messages"] if wished else []
    complaints += [f"no topic of camera {' and camera '.join(sought)} is to be found"] if sought else []
    names = " ".join(f"--camera {camera}=TOPIC" for camera in missing)
    remedy = "a camera that was not recorded takes a target that can do without (docs/replay.md)"
    return InputError(f"{'; '.join(complaints)}; image topics: {there}; name {names}; {remedy}")


def _best(pictures: Sequence[Topic], camera: str, wishes: TopicWishes) -> str:
    """The topic that is most likely the camera's; empty if there is none."""
    photographs = [topic for topic in pictures if not any(word in topic.name.lower() for word in NO_PHOTOGRAPHS)]
    wanted_type = COMPRESSED_IMAGE if wishes.prefer_compressed else IMAGE

    def rank(topic: Topic) -> tuple[int, bool, int, str]:
        return -_likeness(camera, topic.name), topic.message_type != wanted_type, len(topic.name), topic.name

    best = min(photographs, key=rank, default=None)
    return best.name if best and _likeness(camera, best.name) else ""


def _wanted_picture(pictures: Sequence[Topic], wish: str) -> str:
    """The topic that was asked for, or that of its pictures where only these were recorded, compressed; else empty."""
    there = {topic.name for topic in pictures}
    return next((name for name in (wish, f"{wish.rstrip('/')}{COMPRESSED}") if name in there), "")


def _likeness(camera: str, topic: str) -> int:
    """3: a part of the topic's name is the camera's; 2: but for signs; 1: its words are in it; 0: not alike."""
    return max(_alike(name, topic) for name in (camera, plain_name(camera)))


def _alike(camera: str, topic: str) -> int:
    parts = [part for part in topic.lower().split("/") if part]
    name, words = camera.lower(), set(re.findall(r"[a-z0-9]+", camera.lower()))
    if name in parts:
        return 3
    if any(name in re.sub(r"[^a-z0-9]+", "_", part) for part in parts):
        return 2
    return int(words <= set(re.findall(r"[a-z0-9]+", topic.lower())))


def _wanted(found: Sequence[Topic], wish: str, kind: str) -> Topic:
    for topic in found:
        if topic.name == wish:
            return topic
    there = ", ".join(topic.name for topic in found) or "none"
    msg = f"no {kind} topic {wish} with messages; there is: {there}"
    raise InputError(msg)
