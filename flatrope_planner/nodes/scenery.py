"""What a person wants to see beside the sensors: the scene's name, its road and objects, and where the cameras sit."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Quaternion, Transform, TransformStamped, Vector3
from rclpy.node import Node
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from flatrope_planner.conversion.markers import object_markers, road_markers
from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.driving import Moment
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.scene_name import scene_name
from flatrope_planner.simulation.world import World

# Steps between two looks at the moving objects.
OBJECT_STEPS = 4


class Scenery:
    """Publishes on the topics that CARLA's bridge has for it."""

    def __init__(self, node: Node, role: str, frame_id: str, cameras: Sequence[CameraModel]) -> None:
        """Publish for this node; markers are in the frame `frame_id`, cameras are mounted on `role`."""
        self._frame_id = frame_id
        self._name = node.create_publisher(String, "~/scene", qos.LATCHED)
        self._road = node.create_publisher(MarkerArray, "/carla/markers/static", qos.LATCHED)
        self._objects = node.create_publisher(MarkerArray, "/carla/markers", qos.REPORT)
        # Not on /tf_static: its message type does not come with PyPI's ROS 2.
        self._mounts = node.create_publisher(TransformStamped, "~/camera_mounts", qos.LATCHED)
        for camera in cameras:
            self._mounts.publish(camera_mount(camera, role))
        self._shown: World | None = None

    def show(self, moment: Moment) -> None:
        """Publish what is new at this moment."""
        world = moment.world
        if world is not self._shown:
            self._shown = world
            self._name.publish(String(data=scene_name(world.family.value, world.seed)))
            self._road.publish(road_markers(world.view(), moment.stamp_ns, self._frame_id))
        if world.steps % OBJECT_STEPS == 0:
            self._objects.publish(object_markers(world.view(), moment.stamp_ns, self._frame_id))


def camera_mount(camera: CameraModel, role: str) -> TransformStamped:
    """From the ego's frame to the camera's optical one (x right, y down, z forward)."""
    pitch = np.radians(camera.pitch_deg) / 2.0
    cos, sin = float(np.cos(pitch)), float(np.sin(pitch))
    # A turn about y by minus the pitch (up is positive), then the change of axes (-0.5, 0.5, -0.5, 0.5).
    rotation = Quaternion(x=(-cos + sin) / 2.0, y=(cos - sin) / 2.0, z=(-cos - sin) / 2.0, w=(cos + sin) / 2.0)
    return TransformStamped(
        header=to_header(0, role),
        child_frame_id=f"{role}/{camera.name}",
        transform=Transform(translation=Vector3(x=camera.x_m, y=camera.y_m, z=camera.z_m), rotation=rotation),
    )
