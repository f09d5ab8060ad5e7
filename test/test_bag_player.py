"""The bag player: what was recorded comes out as it was, in its time, with that time on /clock."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import (
    CAMERA_TOPICS,
    DEFINITIONS,
    ODOMETRY_TOPIC,
    STORE,
    Drive,
    Sent,
    ahead,
    header,
    jpeg_message,
    make,
    nanoseconds,
    odometry_message,
    write_bag,
)
from nav_msgs.msg import Odometry
from rclpy.node import Node
from ros import closing, ros, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_msgs.msg import String
from test_replay_origins import plain_mcap

from flatrope_planner.bringup.description import play_processes, replay_processes
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.bag_writer import BagWriter
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.bag_player_node import BagPlayer


class Listener(Node):
    def __init__(self) -> None:
        super().__init__("listener")
        self.images: list[Any] = []
        self.poses: list[Any] = []
        self.times: list[int] = []
        self.create_subscription(Image, CAMERA_TOPICS["front_wide"], self.images.append, qos.REPORT)
        self.create_subscription(Odometry, ODOMETRY_TOPIC, self.poses.append, qos.ODOMETRY_INPUT)
        self.create_subscription(Clock, "/clock", self.hear, qos.REPORT)

    def reached_m(self) -> float:
        return max((pose.pose.pose.position.x for pose in self.poses), default=0.0)

    def hear(self, message: Clock) -> None:
        self.times.append(to_nanoseconds(message.clock))


def test_what_was_recorded_comes_as_it_was(tmp_path: Path) -> None:
    stamp = header(0.0, "").stamp
    clock = tuple(Sent(i * 0.1, "/clock", make("rosgraph_msgs/Clock", clock=stamp)) for i in range(10))
    bag = write_bag(tmp_path / "drive", Drive(duration_s=1.0, more=clock))
    arguments = ("-p", f"bag_player:bag:={bag}", "-p", "bag_player:start_delay_s:=1.0", "-p", "bag_player:rate:=2.0")
    with ros(*arguments):
        listener, player = Listener(), BagPlayer()
        with closing(listener, player) as executor:
            spin_until(executor, lambda: player.finished)
            spin_until(executor, lambda: len(listener.images) == 11 and listener.reached_m() > 5.99)
    assert [to_nanoseconds(each.header.stamp) for each in listener.images] == [nanoseconds(i * 0.1) for i in range(11)]
    assert bytes(listener.images[7].data)[:3] == bytes([7, 0, 0])
    # The recorded clock, which stands still, is left out.
    assert listener.times == sorted(set(listener.times))
    assert nanoseconds(0.0) <= listener.times[0] < listener.times[-1] <= nanoseconds(1.0)


def test_a_bag_that_is_none_is_one_line(tmp_path: Path) -> None:
    with ros("-p", f"bag_player:bag:={tmp_path / 'nowhere'}"), pytest.raises(InputError, match="does not exist"):
        BagPlayer()


@pytest.mark.parametrize(
    ("topic", "message", "why"),
    [
        (
            "/planner/output/rationale_text",
            make("std_msgs/String", data="Go."),
            r"in it is /planner/output/rationale_text, which is no input of a planner \(everything:=true plays",
        ),
        (
            "/clock",
            make("rosgraph_msgs/Clock", clock=header(0.0, "").stamp),
            "in it is /clock, which is no input of a planner$",
        ),
    ],
)
def test_a_bag_with_nothing_to_play_is_one_line(tmp_path: Path, topic: str, message: Any, why: str) -> None:
    bag = write_bag(tmp_path / "drive", Drive(odometry_s=(), cameras_s={}, more=(Sent(0.0, topic, message),)))
    words = f"^nothing in {bag} can be played: {why}"
    with ros("-p", f"bag_player:bag:={bag}"), pytest.raises(InputError, match=words):
        BagPlayer()


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_a_bag_in_another_encoding_is_one_line(tmp_path: Path, encoding: str) -> None:
    bag = plain_mcap(tmp_path / "a.mcap", encoding, str)
    words = f"its messages are encoded as {encoding}; only cdr can be played"
    with ros("-p", f"bag_player:bag:={bag}"), pytest.raises(InputError, match=words):
        BagPlayer()


def test_types_that_are_not_installed_are_named(tmp_path: Path) -> None:
    bag = plain_mcap(tmp_path / "a.mcap", "cdr", lambda _kind: "sensor_msgs/msg/Nothing")
    words = "the types of all messages are not installed: sensor_msgs/msg/Nothing$"
    with ros("-p", f"bag_player:bag:={bag}"), pytest.raises(InputError, match=words):
        BagPlayer()


def test_the_player_and_the_planner_share_the_time() -> None:
    (player,) = play_processes({"bag": "drive", "rate": "0.5", "loop": "true"})
    assert player.parameters["bag"] == str(Path("drive").absolute())
    assert (player.parameters["rate"], player.parameters["loop"]) == (0.5, True)
    processes = replay_processes({"bag": "drive", "camera_topic": "/sensing/{camera}/image_raw"})
    assert [process.name for process in processes] == ["planner", "diagnostics", "bag_player"]
    assert all(process.parameters["use_sim_time"] for process in processes[:2])
    assert ("~/input/camera/front_wide", "/sensing/front_wide/image_raw") in processes[0].remappings
    with pytest.raises(InputError, match="rate is 'fast'"):
        play_processes({"rate": "fast"})


def test_only_inputs_are_played_latched_as_recorded_and_compressed_pictures_raw_too(tmp_path: Path) -> None:
    bag, empty, no_data = tmp_path / "run.mcap", header(9.0, "front"), np.zeros(3, np.uint8)
    with BagWriter(bag, DEFINITIONS) as writer:
        writer.latched.add("/simulator/scene")
        for name, message in (
            ("/simulator/scene", make("std_msgs/String", data="lead")),
            ("/planner/output/rationale_text", make("std_msgs/String", data="Go.")),
            ("/front/image/compressed", jpeg_message(9.0, "front")),
            ("/front/image/compressed", make("sensor_msgs/CompressedImage", header=empty, format="jpeg", data=no_data)),
        ):
            kind = message.__msgtype__
            writer.write(name, kind, nanoseconds(0.0), bytes(STORE.serialize_cdr(message, kind)))
    with ros("-p", f"bag_player:bag:={bag}", "-p", "bag_player:loop:=true"):
        player, late = BagPlayer(), Node("late")
        pictures: list[Any] = []
        scenes: list[Any] = []
        late.create_subscription(Image, "/front/image", pictures.append, qos.REPORT)
        with closing(player, late) as executor:
            spin_until(executor, lambda: bool(pictures))
            late.create_subscription(String, "/simulator/scene", scenes.append, qos.LATCHED)
            spin_until(executor, lambda: bool(scenes))
            assert not player.count_publishers("/planner/output/rationale_text")
    assert (pictures[0].encoding, pictures[0].height, pictures[0].width) == ("bgra8", 16, 16)
    # Grey of 90, as the drive's pictures tell the time, but for what JPEG makes of it.
    assert np.array(pictures[0].data)[:3] == pytest.approx([90, 90, 90], abs=2)
    assert to_nanoseconds(pictures[0].header.stamp) == nanoseconds(9.0)
    assert pictures[0].header.frame_id == "front"


def test_a_topic_that_is_none_of_ros_is_left_out(tmp_path: Path) -> None:
    odd = tuple(Sent(0.1, topic, odometry_message(0.1, ahead(1.0))) for topic in ("/cam-1/odom", "/right"))
    bag = write_bag(tmp_path / "drive", Drive(duration_s=0.2, more=odd))
    with ros("-p", f"bag_player:bag:={bag}"):
        player = BagPlayer()
        with closing(player):
            assert player.count_publishers("/right") == 1
            assert "/cam-1/odom" not in player._outputs


def test_all_is_played_where_that_is_asked_for(tmp_path: Path) -> None:
    said = (Sent(0.1, "/planner/output/rationale_text", make("std_msgs/String", data="Go.")),)
    bag = write_bag(tmp_path / "drive", Drive(duration_s=0.2, more=said))
    with ros("-p", f"bag_player:bag:={bag}", "-p", "bag_player:everything:=true"):
        player = BagPlayer()
        with closing(player):
            assert player.count_publishers("/planner/output/rationale_text") == 1
