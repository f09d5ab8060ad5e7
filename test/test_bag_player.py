"""The bag player: what was recorded comes out as it was, in its time, with that time on /clock."""

from pathlib import Path
from typing import Any

import pytest
from drives import CAMERA_TOPICS, ODOMETRY_TOPIC, Drive, Sent, header, make, nanoseconds, write_bag
from nav_msgs.msg import Odometry
from rclpy.node import Node
from ros import closing, ros, spin_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image

from flatrope_planner.bringup.description import play_processes, replay_processes
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.errors import InputError
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
