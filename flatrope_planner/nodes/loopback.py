"""Loop-back probe of `flatrope doctor`: one process sends small messages and pictures, another counts what comes.

`python -m flatrope_planner.nodes.loopback` receives, starts the sender itself, and prints its facts as a line of JSON.
"""

import json
import select
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import String

from flatrope_planner.nodes import qos

SMALL_TOPIC, PICTURE_TOPIC = "/flatrope_doctor/small", "/flatrope_doctor/picture"
WIDTH_PX, HEIGHT_PX = 1600, 900
SMALL_PERIOD_S, SMALL_A_PICTURE = 0.02, 5
# Enough to see that they come, and the longest wait for them.
ENOUGH_SMALL, ENOUGH_PICTURES, PATIENCE_S = 25, 8, 12.0


class Receiver(Node):
    """Counts what comes."""

    def __init__(self) -> None:
        """Subscribe as the planner does."""
        super().__init__("flatrope_doctor_receiver")
        self.small: list[int] = []
        self.pictures: list[int] = []
        self.first_s = 0.0
        self._started_s = time.monotonic()
        self.create_subscription(String, SMALL_TOPIC, self._take_small, qos.REPORT)
        self.create_subscription(Image, PICTURE_TOPIC, self._take_picture, qos.IMAGE_INPUT)

    def _take_small(self, message: String) -> None:
        if not self.small:
            self.first_s = time.monotonic() - self._started_s
        self.small.append(int(message.data))

    def _take_picture(self, message: Image) -> None:
        if len(message.data) == 3 * WIDTH_PX * HEIGHT_PX:
            self.pictures.append(int(message.header.frame_id))

    def facts(self) -> dict[str, Any]:
        """What has come, of what was sent between the first and the last of it."""
        sent = self.pictures[-1] - self.pictures[0] + 1 if self.pictures else 0
        return {
            "rmw": rclpy.get_rmw_implementation_identifier(),
            "first_s": self.first_s,
            "small": len(self.small),
            "pictures": len(self.pictures),
            "pictures_sent": sent,
        }


def receive() -> dict[str, Any]:
    """Start a sender and listen until enough has come, or in vain for long enough."""
    rclpy.init()
    node = Receiver()
    try:
        with _sender():
            until_s = time.monotonic() + PATIENCE_S
            while time.monotonic() < until_s and not _enough(node):
                rclpy.spin_once(node, timeout_sec=0.05)
        return node.facts()
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def send() -> None:
    """Send until the standard input ends, as it does when the receiver has."""
    rclpy.init()
    node = Node("flatrope_doctor_sender")
    small = node.create_publisher(String, SMALL_TOPIC, qos.REPORT)
    pictures = node.create_publisher(Image, PICTURE_TOPIC, qos.BRIDGE_OUTPUT)
    picture = Image(height=HEIGHT_PX, width=WIDTH_PX, encoding="bgr8", step=3 * WIDTH_PX)
    picture.data = array("B", bytes(3 * WIDTH_PX * HEIGHT_PX))
    count = 0
    while not select.select([sys.stdin], [], [], SMALL_PERIOD_S)[0]:
        count += 1
        small.publish(String(data=str(count)))
        if count % SMALL_A_PICTURE == 0 and pictures.get_subscription_count():
            picture.header.frame_id = str(count // SMALL_A_PICTURE)
            pictures.publish(picture)
    node.destroy_node()
    rclpy.try_shutdown()


def _enough(node: Receiver) -> bool:
    return len(node.small) >= ENOUGH_SMALL and len(node.pictures) >= ENOUGH_PICTURES


@contextmanager
def _sender() -> Iterator[None]:
    command = [sys.executable, "-m", "flatrope_planner.nodes.loopback", "send"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.communicate(timeout=PATIENCE_S)


if __name__ == "__main__":
    if sys.argv[1:] == ["send"]:
        send()
    else:
        print(json.dumps(receive()), flush=True)
