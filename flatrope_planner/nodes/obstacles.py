"""The newest point cloud, as something a plan must not drive into. Knows no ROS: points are handed in."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import Lock

import numpy as np

from flatrope_planner.conversion.limits import shortened
from flatrope_planner.domain import Floats, Trajectory, ns_to_seconds
from flatrope_planner.errors import FlatropeError, InputError, reason
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.planning.corridor import Corridor, free_way_m
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.pose import Pose, rotation_matrix

# Points measured longer before or after t0 say nothing of the way that is free at t0.
MAX_CLOUD_AGE_S = 0.5
BASE_LINK = "base_link"


@dataclass(frozen=True)
class SensorMount:
    """Where the sensor stands in the vehicle's frame; its own frame's name, or "" if it speaks in the vehicle's."""

    frame_id: str = ""
    x_m: float = 0.0
    y_m: float = 0.0
    z_m: float = 0.0
    yaw_rad: float = 0.0

    def to_vehicle(self, points_m: Floats) -> Floats:
        """(N, 3) points of the sensor's frame in the vehicle's."""
        cos, sin = np.cos(self.yaw_rad), np.sin(self.yaw_rad)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return np.asarray(points_m @ turn.T + [self.x_m, self.y_m, self.z_m])


class ObstaclePoints:
    """Filled by a callback, asked by the planning thread."""

    def __init__(self, corridor: Corridor, mount: SensorMount, pose_at: Callable[[int], Pose]) -> None:
        """Sweep this corridor; `pose_at` gives the ego's pose at a stamp (ns) or raises NotReadyError."""
        self._corridor, self._mount, self._pose_at = corridor, mount, pose_at
        self._lock = Lock()
        self._cloud: tuple[int, Callable[[], Floats]] | None = None
        self.vehicle_frame = ""
        self.received = self.rejected = self.ignored = self.obstructed = 0
        self._complaint = "no point cloud yet"

    def take(self, stamp_ns: int, frame_id: str, read: Callable[[], Floats]) -> None:
        """Take in a cloud of that frame, whose points (N, 3) `read` gives.

        It is read when a plan is held against it: most clouds are replaced before that, and reading a large one takes
        longer than the callbacks of other inputs may wait.

        Raises:
            InputError: if it is in a frame of unknown place.
        """
        with self._lock:
            self.received += 1
        try:
            place = self._place_of(frame_id)
        except InputError as err:
            with self._lock:
                self.rejected += 1
                self._complaint = str(err)
            raise
        with self._lock:
            self._cloud = (stamp_ns, cache(lambda: place(read())))

    def reset(self) -> None:
        """Forget the cloud: another drive."""
        with self._lock:
            self._cloud = None
            self._complaint = "no point cloud yet"

    def free_way_m(self, trajectory: Trajectory, ego: EgoMoment) -> float | None:
        """The way before the plan meets points, None if it meets none or no cloud can be asked."""
        with self._lock:
            cloud = self._cloud
        complaint, free_m = self._asked(cloud, trajectory, ego)
        with self._lock:
            self._complaint = complaint
            self.ignored += bool(complaint)
            self.obstructed += free_m is not None
        return free_m

    def report(self) -> TaskReport:
        """Whether the way is watched."""
        with self._lock:
            names = ("received", "rejected", "ignored", "obstructed")
            values = {name: str(getattr(self, name)) for name in names}
            if self._complaint:
                return TaskReport("corridor", Level.WARN, f"the way is not watched: {self._complaint}", values)
        return TaskReport("corridor", Level.OK, "the way is watched", values)

    def _place_of(self, frame_id: str) -> Callable[[Floats], Floats]:
        """What brings points of that frame into the vehicle's."""
        if self._mount.frame_id and frame_id == self._mount.frame_id:
            return self._mount.to_vehicle
        if frame_id and frame_id in (self.vehicle_frame, BASE_LINK):
            return lambda points_m: points_m
        known = {self.vehicle_frame, BASE_LINK, self._mount.frame_id} - {""}
        msg = f"point cloud in frame {shortened(frame_id)}, expected {' or '.join(sorted(known))}"
        raise InputError(msg)

    def _asked(
        self, cloud: tuple[int, Callable[[], Floats]] | None, trajectory: Trajectory, ego: EgoMoment
    ) -> tuple[str, float | None]:
        """What keeps the cloud from being asked, or the free way."""
        if cloud is None:
            return self._complaint or "no point cloud yet", None
        stamp_ns, read = cloud
        age_s = ns_to_seconds(ego.t0_ns - stamp_ns)
        if abs(age_s) > MAX_CLOUD_AGE_S:
            return f"the newest point cloud is {age_s:.2f} s older than the observation", None
        try:
            pose = self._pose_at(stamp_ns)
        except FlatropeError as err:
            return f"no pose for the point cloud: {err}", None
        try:
            points_m = read()
        except Exception as err:
            # Whatever is wrong with a cloud is no reason not to plan.
            with self._lock:
                self.rejected += 1
            return str(err) if isinstance(err, FlatropeError) else f"{type(err).__name__}: {reason(err)}", None
        return "", free_way_m(trajectory, _moved(points_m, pose, ego.pose), self._corridor)


def obstacle_points(parameters: PlannerParameters, pose_at: Callable[[int], Pose]) -> ObstaclePoints | None:
    """What plans must not drive into, None if that is not asked for."""
    if not parameters.corridor_check:
        return None
    p = parameters
    size_m = (p.vehicle_width_m, p.vehicle_front_m, p.vehicle_rear_m)
    corridor = Corridor(*size_m, p.corridor_margin_m, p.corridor_horizon_s)
    mount = SensorMount(p.points_frame, p.points_x_m, p.points_y_m, p.points_z_m, p.points_yaw_rad)
    return ObstaclePoints(corridor, mount, pose_at)


def _moved(points_m: Floats, measured_at: Pose, seen_from: Pose) -> Floats:
    """Points (N, 3) of one pose of the vehicle, seen from another."""
    outer = points_m @ rotation_matrix(measured_at.quaternion_xyzw).T + measured_at.position_m
    return np.asarray((outer - seen_from.position_m) @ rotation_matrix(seen_from.quaternion_xyzw))
