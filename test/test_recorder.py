"""The recorder writes what other nodes publish, over the real middleware."""

import errno
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import String

from flatrope_planner.conversion.images import to_bgra8
from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.domain import Image, seconds_to_ns
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.replay.bag_source import BagSource
from flatrope_planner.evaluation.report.recording import read_recording
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.console import console_line
from flatrope_planner.nodes.played_topics import latched_topics
from flatrope_planner.nodes.recorder_node import RecorderNode
from flatrope_planner.planning.observation import OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

PATIENCE_S = 20.0
GREY: Image = np.full((40, 60, 3), 90, dtype=np.uint8)


def publish_until_recorded(recorder: RecorderNode, source: Node, last: str) -> set[str]:
    """Publish odometry and pictures until three pictures are recorded, then wait for a topic; all that were written."""
    written: set[str] = set()
    write = recorder._bag.write

    def note(topic: str, *others: Any) -> None:
        written.add(topic)
        write(topic, *others)

    recorder._bag.write = note  # type: ignore[method-assign, assignment]
    odometry = source.create_publisher(type(odometry_message(moving(0), "map", "ego")), "/odometry", 10)
    image = source.create_publisher(type(to_bgra8(GREY, 0, "cam")), "/front/image", qos.BRIDGE_OUTPUT)
    executor = SingleThreadedExecutor()
    executor.add_node(recorder)
    executor.add_node(source)
    until_s = time.monotonic() + PATIENCE_S
    stamp_ns = 0
    while (recorder.pictures < 3 or last not in written) and time.monotonic() < until_s:
        if recorder.pictures < 3:
            stamp_ns += 50_000_000
            odometry.publish(odometry_message(moving(stamp_ns), "map", "ego"))
            image.publish(to_bgra8(GREY, stamp_ns, "cam"))
        executor.spin_once(timeout_sec=0.02)
    executor.shutdown()
    return written


def moving(stamp_ns: int) -> OdometrySample:
    return OdometrySample(
        stamp_ns, np.array([stamp_ns * 1e-9, 0.0, 0.0]), yaw_quaternion(0.0), np.array([1.0, 0.0, 0.0])
    )


def test_what_was_not_asked_for_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    topics = "topics:='/odometry /front/image /nobody'"
    rclpy.init(args=["--ros-args", "-p", f"file:={tmp_path / 'run.mcap'}", "-p", topics], domain_id=88)
    try:
        source = Node("source", use_global_arguments=False)
        outcome = source.create_publisher(String, "/simulator/outcome", qos.LATCHED)
        outcome.publish(String(data="{}"))
        recorder = RecorderNode()
        written = publish_until_recorded(recorder, source, "/odometry")
        recorder.close()
        source.destroy_node()
    finally:
        rclpy.try_shutdown()
    assert written == {"/odometry", "/front/image/compressed"}


def test_a_pause_between_two_scenes_is_no_loss_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    rclpy.init(args=["--ros-args", "-p", f"file:={tmp_path / 'run.mcap'}"], domain_id=88)
    try:
        recorder = RecorderNode()
        source = Node("source", use_global_arguments=False)
        source.create_publisher(type(odometry_message(moving(0), "map", "ego")), "/odometry", 10)
        source.create_publisher(type(to_bgra8(GREY, 0, "cam")), "/front/image", qos.BRIDGE_OUTPUT)
        executor = SingleThreadedExecutor()
        executor.add_node(recorder)
        until_s = time.monotonic() + PATIENCE_S
        while not {"/odometry", "/front/image"} <= set(recorder._tally.topics) and time.monotonic() < until_s:
            executor.spin_once(timeout_sec=0.02)
        executor.shutdown()
        # 20 pictures at 10 Hz, then 5 s in which nothing is sent, three times; what could be lost is not sent.
        for step in range(60):
            stamp_ns = seconds_to_ns(1.0 + 0.1 * step + 5.0 * (step // 20))
            recorder._take(
                "/odometry",
                "nav_msgs/msg/Odometry",
                serialize_message(odometry_message(moving(stamp_ns), "map", "ego")),
            )
            recorder._take_picture("/front/image", to_bgra8(GREY, stamp_ns, "cam"))
        losses = recorder._tally.losses()
        recorder.close()
        source.destroy_node()
    finally:
        rclpy.try_shutdown()
    assert losses == []


def test_what_is_published_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    file = tmp_path / "run.mcap"
    rclpy.init(args=["--ros-args", "-p", f"file:={file}", "-p", "picture_period_s:=0.1"], domain_id=88)
    try:
        source = Node("source", use_global_arguments=False)
        outcome = source.create_publisher(String, "/simulator/outcome", qos.LATCHED)
        outcome.publish(String(data='{"success": true, "failures": []}'))
        recorder = RecorderNode()
        publish_until_recorded(recorder, source, "/simulator/outcome")
        recorder.close()
        source.destroy_node()
    finally:
        rclpy.try_shutdown()
    recording = read_recording(file)
    # Sent before the recorder came up, but latched.
    assert [outcome.text for outcome in recording.outcomes] == ["success"]
    with BagSource(file) as source:
        assert "/simulator/outcome" in latched_topics(source.connections)
    assert recording.odometry[-1].position_m[0] == pytest.approx(recording.odometry[-1].stamp_ns * 1e-9)
    stamps_ns = [picture.stamp_ns for picture in recording.pictures["front"]]
    assert len(stamps_ns) >= 3
    assert min(np.diff(stamps_ns)) >= 100_000_000


def test_a_disk_that_is_full_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rosbags.rosbag2.Writer.write", full)
    file = tmp_path / "run.mcap"
    rclpy.init(args=["--ros-args", "-p", f"file:={file}"], domain_id=88)
    try:
        recorder = RecorderNode()
        with pytest.raises(SetupError, match=r"run\.mcap cannot be written: No space left on device"):
            recorder._write("/scene", "/scene", "std_msgs/msg/String", b"")
        # It is not completed, and does not stand for one that was.
        recorder.close()
    finally:
        rclpy.try_shutdown()
    assert not file.exists()


def test_the_line_of_the_console() -> None:
    line = console_line("lead, seed 1", 12.4, 8.94, 21, "Slow down.")
    assert line == "lead, seed 1               12.4 s   8.9 m/s  tick  21  Slow down."
