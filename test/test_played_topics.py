"""What of a bag is for the nodes of now, and what was said by those of then."""

from pathlib import Path

import pytest
from drives import DEFINITIONS, make
from rosbags.typesys import Stores, get_typestore

from flatrope_planner.evaluation.bag_writer import BagWriter
from flatrope_planner.evaluation.replay.bag_source import BagSource, Topic
from flatrope_planner.nodes.played_topics import is_for_now, latched_topics, raw_topic


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/carla/ego_vehicle/odometry", "nav_msgs/msg/Odometry"),
        ("/carla/ego_vehicle/front_wide/image", "sensor_msgs/msg/Image"),
        ("/carla/ego_vehicle/front_wide/image/compressed", "sensor_msgs/msg/CompressedImage"),
        ("/sensing/lidar/concatenated", "sensor_msgs/msg/PointCloud2"),
        ("/sensing/front/camera_info", "sensor_msgs/msg/CameraInfo"),
        ("/planner/input/command", "std_msgs/msg/String"),
        ("/simulator/scene", "std_msgs/msg/String"),
        ("/simulator/camera_mounts", "geometry_msgs/msg/TransformStamped"),
        ("/carla/markers/static", "visualization_msgs/msg/MarkerArray"),
        ("/tf_static", "tf2_msgs/msg/TFMessage"),
    ],
)
def test_inputs_and_sights_are_played(name: str, kind: str) -> None:
    assert is_for_now(Topic(name, kind, 1))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/planner/output/path", "nav_msgs/msg/Path"),
        ("/car/pilot/output/rationale_text", "std_msgs/msg/String"),
        ("/planner/output/trajectory", "flatrope_planner/msg/PlannedTrajectory"),
        ("/planner/output/status", "diagnostic_msgs/msg/DiagnosticArray"),
        ("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray"),
        ("/planner/transition_event", "lifecycle_msgs/msg/TransitionEvent"),
        ("/carla/ego_vehicle/twist", "geometry_msgs/msg/Twist"),
        ("/cmd_vel", "geometry_msgs/msg/TwistStamped"),
        ("/cmd_vel_nav", "geometry_msgs/msg/TwistStamped"),
        ("/control/command/control_cmd", "autoware_control_msgs/msg/Control"),
        ("/vehicle/throttle_cmd", "std_msgs/msg/Float64"),
        ("/carla/ego_vehicle/vehicle_control_cmd", "carla_msgs/msg/CarlaEgoVehicleControl"),
        ("/goal_pose", "geometry_msgs/msg/PoseStamped"),
        ("/joy", "sensor_msgs/msg/Joy"),
        ("/simulator/outcome", "std_msgs/msg/String"),
        ("/clock", "rosgraph_msgs/msg/Clock"),
    ],
)
def test_what_the_nodes_of_then_said_is_not(name: str, kind: str) -> None:
    assert not is_for_now(Topic(name, kind, 1))


def test_a_bag_of_the_recorder_tells_what_was_latched(tmp_path: Path) -> None:
    text, store = make("std_msgs/String", data="lead"), get_typestore(Stores.ROS2_JAZZY)
    cdr = bytes(store.serialize_cdr(text, "std_msgs/msg/String"))
    with BagWriter(tmp_path / "run.mcap", DEFINITIONS) as bag:
        bag.latched.add("/scene")
        for name in ("/scene", "/words"):
            bag.write(name, "std_msgs/msg/String", 1, cdr)
    with BagSource(tmp_path / "run.mcap") as source:
        assert [topic.name for topic in source.topics] == ["/scene", "/words"]
        # Of /tf_static it is known without being told.
        assert latched_topics(source.connections) == {"/scene", "/tf_static"}


@pytest.mark.parametrize(
    ("topic", "others", "raw"),
    [
        (Topic("/a/image/compressed", "sensor_msgs/msg/CompressedImage", 1), set(), "/a/image"),
        (Topic("/a/image/compressed", "sensor_msgs/msg/CompressedImage", 1), {"/a/image"}, None),
        (Topic("/a/image", "sensor_msgs/msg/CompressedImage", 1), set(), None),
        (Topic("/a/points/compressed", "sensor_msgs/msg/PointCloud2", 1), set(), None),
        (Topic("/compressed", "sensor_msgs/msg/CompressedImage", 1), set(), None),
    ],
)
def test_where_compressed_pictures_come_out_raw(topic: Topic, others: set[str], raw: str | None) -> None:
    assert raw_topic(topic, {topic.name} | others) == raw
