"""The topics a planner takes in: names, types, and the quality of service it asks for."""

from dataclasses import dataclass

from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage, Image, PointCloud2
from std_msgs.msg import String

from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.qos import input_profile
from flatrope_planner.planning.observation import ODOMETRY, camera_input

COMMAND = "command"
POINTS = "points"


@dataclass(frozen=True)
class InputTopic:
    """What one subscription asks for."""

    name: str
    kind: type
    qos: QoSProfile

    @property
    def type_name(self) -> str:
        """Such as sensor_msgs/msg/Image."""
        return f"{self.kind.__module__.split('.')[0]}/msg/{self.kind.__name__}"


def input_topics(asked: PlannerParameters) -> dict[str, InputTopic]:
    """Input -> its topic, as the parameters want it."""
    image_qos = input_profile(asked.image_reliability, asked.image_durability, asked.image_depth)
    odometry_qos = input_profile(asked.odometry_reliability, asked.odometry_durability, asked.odometry_depth)
    command_qos = input_profile(asked.command_reliability, asked.command_durability, asked.command_depth)
    image_type = CompressedImage if asked.compressed else Image
    topics = {camera_input(c): InputTopic(f"~/input/camera/{c}", image_type, image_qos) for c in asked.cameras}
    topics[ODOMETRY] = InputTopic("~/input/odometry", Odometry, odometry_qos)
    topics[COMMAND] = InputTopic("~/input/command", String, command_qos)
    if asked.corridor_check:
        topics[POINTS] = InputTopic("~/input/points", PointCloud2, image_qos)
    return topics
