"""Simulator node: the embedded world behind the topics of CARLA's ROS bridge."""

import json
import time
from dataclasses import replace
from threading import Thread
from typing import NoReturn

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String

from flatrope_planner.conversion.cameras import camera_info
from flatrope_planner.conversion.images import to_bgra8
from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.plans import drive_command, rationale_message, trajectory_message
from flatrope_planner.conversion.stamps import to_header, to_time
from flatrope_planner.domain import Image as Picture
from flatrope_planner.domain import Rationale, ns_to_seconds
from flatrope_planner.msg import PlannedTrajectory
from flatrope_planner.msg import Rationale as RationaleMessage
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.command_mailbox import CommandMailbox
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.driving import Driving, DrivingSettings, Moment
from flatrope_planner.nodes.parameters import SimulatorParameters
from flatrope_planner.nodes.running import run_node
from flatrope_planner.nodes.scenery import Scenery
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.simulation.camera import CAMERAS, CameraModel
from flatrope_planner.simulation.driver import ReferencePlan
from flatrope_planner.simulation.rendering import render
from flatrope_planner.simulation.rig import ego_pose, odometry_of
from flatrope_planner.simulation.scene_name import scene_name
from flatrope_planner.simulation.tour import families_of
from flatrope_planner.simulation.world import Split, World

FRAME = "map"
REFERENCE = "reference"
START_POLL_S = 0.05
# Longest wait for the subscribers to confirm the outcomes, and for the simulation to end.
CLOSE_TIMEOUT_S = 2.0


class SimulatorNode(Node):
    """Publishes sensors and clock, takes commands, drives in a thread of its own."""

    def __init__(self) -> None:
        """Read the parameters and begin to drive.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("simulator")
        self._settings = parameters = read_parameters(self, SimulatorParameters, "simulator.param.yaml")
        settings = driving_settings(parameters)
        width_px, height_px = parameters.image_width_px, parameters.image_height_px
        self._cameras = tuple(replace(camera, width_px=width_px, height_px=height_px) for camera in CAMERAS)
        self._mailbox = CommandMailbox()
        self._driving = Driving(settings, self._mailbox, self)
        self._create_publishers()
        self._scenery = Scenery(self, parameters.role, FRAME, self._cameras)
        self._twist = self.create_subscription(
            Twist, f"/carla/{parameters.role}/twist", lambda twist: self._mailbox.put(drive_command(twist)), qos.NEWEST
        )
        self._shown_ns = 0
        self._fault: Exception | None = None
        self._thread = Thread(target=self._run, name="driving", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether all episodes have been driven; what ended the drive before that is raised here."""
        if self._fault is not None:
            raise self._fault
        return not self._thread.is_alive()

    def close(self) -> None:
        """End the simulation and the node."""
        self._mailbox.close()
        self._thread.join(CLOSE_TIMEOUT_S)
        self.destroy_node()

    def _create_publishers(self) -> None:
        ego = f"/carla/{self._settings.role}"
        create, bridge = self.create_publisher, qos.BRIDGE_OUTPUT
        self._time = create(ClockMessage, "/clock", bridge)
        self._odometry = create(Odometry, f"{ego}/odometry", bridge)
        self._images = {c.name: create(Image, f"{ego}/{c.name}/image", bridge) for c in self._cameras}
        self._infos = {c.name: create(CameraInfo, f"{ego}/{c.name}/camera_info", bridge) for c in self._cameras}
        self._reference = create(PlannedTrajectory, "~/reference/trajectory", qos.NEWEST)
        self._reference_rationale = create(RationaleMessage, "~/reference/rationale", qos.REPORT)
        self._outcome = create(String, "~/outcome", qos.LATCHED)

    def _run(self) -> None:
        if self._settings.synchronous_mode_wait_for_vehicle_control_command:
            self._wait_for_company()
        try:
            self._driving.run()
        except Exception as err:
            # Lost in this thread, it would look like a finished drive.
            self._fault = err
        if not self._mailbox.closed:
            # No longer: some middleware is asked to confirm every 3 s only, and those who take simulated time wait too.
            self._outcome.wait_for_all_acked(Duration(seconds=CLOSE_TIMEOUT_S))

    def _wait_for_company(self) -> None:
        """Wait until someone sends commands and looks at every camera, or time is up."""
        until_s = time.monotonic() + self._settings.start_timeout_s
        topic = self._twist.topic_name
        while not self._mailbox.closed and time.monotonic() < until_s:
            watched = all(image.get_subscription_count() > 0 for image in self._images.values())
            if watched and self.count_publishers(topic) > 0:
                return
            self._mailbox.sleep(START_POLL_S)

    def show(self, moment: Moment) -> None:
        """Publish the sensors and the reference driver's view of a moment; the clock first, as stamps refer to it."""
        self._shown_ns = moment.stamp_ns
        self._time.publish(ClockMessage(clock=to_time(moment.stamp_ns)))
        self._scenery.show(moment)
        odometry = replace(odometry_of(moment.world), stamp_ns=moment.stamp_ns)
        if moment.has_pictures:
            view, pose = moment.world.view(), ego_pose(moment.world)
            for camera in self._cameras:
                self._show_picture(camera, render(view, camera, pose), moment.stamp_ns)
        self._odometry.publish(odometry_message(odometry, FRAME, self._settings.role))
        if moment.reference is not None:
            self._show_reference(moment.reference, odometry)

    def conclude(self, world: World, control_timeouts: int) -> None:
        """Publish the outcome of an episode as JSON."""
        outcome = {
            "family": world.family.value,
            "seed": world.seed,
            "split": world.split.value,
            # Of /clock: when the message arrives, the next scene may have begun.
            "end_s": round(ns_to_seconds(self._shown_ns), 2),
            "success": world.outcome.success,
            "failures": list(world.outcome.failures),
            "duration_s": round(world.time_s, 2),
            "distance_m": round(world.s_m, 2),
            "control_timeouts": control_timeouts,
        }
        self._outcome.publish(String(data=json.dumps(outcome)))
        verdict = "reached the end" if world.outcome.success else f"failed: {', '.join(world.outcome.failures)}"
        self.get_logger().info(f"{scene_name(world.family.value, world.seed)}: {verdict} after {world.time_s:.1f} s")

    def warn(self, text: str) -> None:
        """Log it."""
        self.get_logger().warning(text)

    def _show_picture(self, camera: CameraModel, picture: Picture, stamp_ns: int) -> None:
        frame_id = f"{self._settings.role}/{camera.name}"
        self._images[camera.name].publish(to_bgra8(picture, stamp_ns, frame_id))
        size_px = (camera.width_px, camera.height_px)
        self._infos[camera.name].publish(camera_info(camera.intrinsics(), size_px, stamp_ns, frame_id))

    def _show_reference(self, plan: ReferencePlan, now: OdometrySample) -> None:
        placed = PlacedTrajectory(plan.trajectory, now.stamp_ns, FRAME, now.pose)
        self._reference.publish(trajectory_message(placed, REFERENCE))
        header = to_header(now.stamp_ns, FRAME)
        self._reference_rationale.publish(rationale_message(Rationale(plan.rationale), header))


def driving_settings(parameters: SimulatorParameters) -> DrivingSettings:
    """What the parameters ask for.

    Raises:
        InputError: on a family that does not exist.
    """
    return DrivingSettings(
        families=families_of(parameters.family),
        split=Split(parameters.split),
        seed=parameters.seed,
        real_time_factor=parameters.real_time_factor,
        wait_for_command=parameters.synchronous_mode_wait_for_vehicle_control_command,
        start_timeout_s=parameters.start_timeout_s,
        control_timeout_s=parameters.control_timeout_s,
        once=parameters.exit_when_done,
    )


def main() -> NoReturn:
    """Run the node until all episodes are driven or it is asked to end."""
    run_node(SimulatorNode)
