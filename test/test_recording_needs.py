"""A recording that will be of no use says so while it is made, and at its end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSReliabilityPolicy
from ros import ros, spin_until
from sensor_msgs.msg import Image
from std_msgs.msg import String

from flatrope_planner.errors import SetupError
from flatrope_planner.nodes import qos, recorder_node
from flatrope_planner.nodes.executor import NodeExecutor
from flatrope_planner.nodes.picture_losses import PictureLosses
from flatrope_planner.nodes.recorder_node import RecorderNode
from flatrope_planner.nodes.recording_needs import _likely_cause
from flatrope_planner.nodes.recording_tally import (
    ODOMETRY_TYPE,
    PICTURE_TYPES,
    PictureTally,
    RecordingTally,
    TopicTally,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complaints come at once."""
    monkeypatch.setattr(recorder_node, "PATIENCE_S", 0.6)
    monkeypatch.setattr(recorder_node, "WATCH_PERIOD_S", 0.1)


class Recording:
    """A recorder of two cameras and odometry, and who sends."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.source = Node("source", use_global_arguments=False)
        self.executor: SingleThreadedExecutor = NodeExecutor()
        self.recorder = RecorderNode()
        logger: Any = self.recorder.get_logger()
        self.recorder.get_logger = lambda: Ears(self.said, logger)
        self.executor.add_node(self.source)
        self.executor.add_node(self.recorder)

    def until(self, condition: Callable[[], bool], *sends: Callable[[], None]) -> None:
        spin_until(self.executor, condition, partial(_send_all, sends))

    def warnings(self) -> list[str]:
        return [words for level, words in self.said if level == "warning"]

    def end(self) -> None:
        try:
            self.recorder.close()
        finally:
            self.source.destroy_node()
            self.executor.shutdown()


def _send_all(sends: Iterable[Callable[[], None]]) -> None:
    for send in sends:
        send()


class Ears:
    """Hears what a node logs."""

    def __init__(self, said: list[tuple[str, str]], logger: Any) -> None:
        self._said, self._logger = said, logger

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda words, **_options: self._said.append((level, words))


def arguments(file: Path, odometry: str = "/odom") -> tuple[str, ...]:
    values = {"file": str(file), "topics": f"'/left /right {odometry} /hint'"}
    values |= {"cameras": "'/left /right'", "odometry": odometry}
    return tuple(text for name, value in values.items() for text in ("-p", f"recorder:{name}:={value}"))


def picture(number: int) -> Image:
    message = Image(height=2, width=2, encoding="rgb8", step=6, data=bytes(12))
    message.header.stamp.sec = number
    return message


def test_the_size_of_pictures_is_blamed_only_while_something_smaller_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PictureLosses, "silence", lambda _: "too large")
    camera = TopicTally(PICTURE_TYPES[0], PictureTally(PictureLosses(raw=True, fast_dds=True)))
    odometry = TopicTally(ODOMETRY_TYPE)
    alone, both = RecordingTally({"/left": camera}), RecordingTally({"/left": camera, "/odom": odometry})
    assert _likely_cause(camera, alone, 100.0) == ", too large"
    # Nothing has been sent yet; then it has just begun; then it has come for a while; then it has ended.
    assert _likely_cause(camera, both, 100.0) == ""
    for come_s, now_s, blamed in (
        (100.0, 101.0, False),
        (104.0, 105.0, True),
        (104.5, 109.0, True),
        (104.5, 110.0, False),
    ):
        odometry.take(come_s)
        assert bool(_likely_cause(camera, both, now_s)) is blamed


def test_a_topic_that_nobody_publishes_is_named_once_with_what_may_be_meant(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    with ros(*arguments(file)):
        recording = Recording()
        left = recording.source.create_publisher(Image, "/left", qos.BRIDGE_OUTPUT)
        recording.source.create_publisher(Image, "/rear", qos.BRIDGE_OUTPUT)
        odometry = recording.source.create_publisher(Odometry, "/odom", 10)
        sent = iter(range(10_000))
        sends = (lambda: left.publish(picture(next(sent))), lambda: odometry.publish(Odometry()))
        recording.until(lambda: bool(recording.warnings()) and recording.recorder.pictures > 1, *sends)
        heard_s = time.monotonic()
        recording.until(lambda: time.monotonic() - heard_s > 0.5, *sends)
        assert recording.warnings() == ["a replay will need what is missing: nobody publishes /right (pictures: /rear)"]
        right = recording.source.create_publisher(String, "/right", 10)
        recording.until(lambda: len(recording.warnings()) > 1, *sends)
        assert recording.warnings()[1].endswith(": /right has no pictures but std_msgs/msg/String")
        recording.source.destroy_publisher(right)
        recording.end()
    assert recording.warnings()[-1] == "a replay needs /right, too, where nothing of use came"
    (line,) = [words for level, words in recording.said if level == "info" and "recorded" in words]
    assert line.startswith(f"recorded {file}: ")
    assert " other messages" in line
    assert file.exists()


def test_optional_topics_are_not_missed(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    with ros(*arguments(file)):
        recording = Recording()
        outputs = [recording.source.create_publisher(Image, name, qos.BRIDGE_OUTPUT) for name in ("/left", "/right")]
        odometry = recording.source.create_publisher(Odometry, "/odom", 10)
        sent = iter(range(10_000))

        def send() -> None:
            for output in outputs:
                output.publish(picture(next(sent)))
            odometry.publish(Odometry())

        recording.until(lambda: recording.recorder.pictures > 20, send)
        recording.end()
    assert [words for words in recording.warnings() if "/hint" in words] == []
    assert not any("needs" in words for words in recording.warnings())


def test_without_odometry_nothing_can_be_replayed(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    with ros(*arguments(file)):
        recording = Recording()
        left = recording.source.create_publisher(Image, "/left", qos.BRIDGE_OUTPUT)
        sent = iter(range(10_000))
        recording.until(lambda: recording.recorder.pictures > 1, lambda: left.publish(picture(next(sent))))
        with pytest.raises(SetupError, match=r"cannot be replayed: it holds no odometry \(/odom\)$"):
            recording.end()
    assert file.exists()


def test_nothing_replaces_no_earlier_recording(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    file.write_bytes(b"of yesterday")
    with ros(*arguments(file)):
        recording = Recording()
        with pytest.raises(SetupError, match=r"drive.mcap is not written: nothing came on /left, /right, /odom$"):
            recording.end()
    assert file.read_bytes() == b"of yesterday"
    assert list(tmp_path.iterdir()) == [file]


def test_the_command_says_where_it_records_to_and_fails_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    command = [sys.executable, "-m", "flatrope_planner.cli", "record", f"file:={file}", "odometry_topic:=/odom"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            # pytest ends the test if it never comes.
            assert child.stdout.readline().endswith(f"recording to {file}; Ctrl-C completes it\n")
            os.kill(child.pid, signal.SIGINT)
            _, complaint = child.communicate()
        finally:
            child.kill()
    assert child.returncode not in (0, None)
    assert complaint.count("\n") == 1
    assert f"{file} is not written: nothing came on /carla/ego_vehicle/front_wide/image, " in complaint


@pytest.mark.parametrize("reliable", [True, False])
def test_pictures_are_asked_for_as_reliably_as_they_are_offered(tmp_path: Path, reliable: bool) -> None:
    file = tmp_path / "drive.mcap"
    with ros(*arguments(file)):
        recording = Recording()
        offered = qos.BRIDGE_OUTPUT if reliable else qos.IMAGE_INPUT
        recording.source.create_publisher(Image, "/left", offered)
        recording.until(lambda: recording.source.count_subscribers("/left") > 0)
        (info,) = recording.source.get_subscriptions_info_by_topic("/left")
        with pytest.raises(SetupError, match="nothing came"):
            recording.end()
    assert (info.qos_profile.reliability == QoSReliabilityPolicy.RELIABLE) is reliable


def test_a_picture_that_is_none_does_not_end_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "drive.mcap"
    with ros(*arguments(file)):
        recording = Recording()
        left = recording.source.create_publisher(Image, "/left", qos.BRIDGE_OUTPUT)
        sent = iter(range(10_000))

        broken = Image(height=2, width=2, encoding="rainbow", step=6, data=bytes(12))
        recording.until(
            lambda: any("can be used" in words for words in recording.warnings()), lambda: left.publish(broken)
        )
        assert any("nothing on /left can be used: " in words for words in recording.warnings())

        def send() -> None:
            left.publish(broken)
            left.publish(picture(next(sent)))

        recording.until(lambda: recording.recorder.pictures > 1, send)
        with pytest.raises(SetupError, match="no odometry"):
            recording.end()
    assert any("/left: a picture is left out: " in words for words in recording.warnings())
