"""Plans of a replay as a bag on the planner's own topics, for Foxglove and RViz; written without ROS."""

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from flatrope_planner.bringup.configuration import message_definitions
from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.domain import Floats, Plan, seconds_to_ns
from flatrope_planner.evaluation.bag_writer import PACKAGE, BagWriter, typestore_with
from flatrope_planner.evaluation.replay.plan_markers import PlanMarkers
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.judgement import judge
from flatrope_planner.planning.pose import Pose, rotation_matrix, turned_about_z

OUTPUT = "/planner/output"
# The path that was driven in the time of the plan.
DRIVEN = "/replay/driven"
# Both, and the rationale, for whoever displays markers.
MARKERS = "/replay/markers"
STAGES = ("vision", "prefill", "reasoning", "draft", "verify", "action", "total")


class PlanBag:
    """Open, write plans in the order of their t0, close; or use it with `with`."""

    def __init__(self, file: Path, target: str) -> None:
        """Write to an .mcap file; `target` names who plans."""
        definitions = message_definitions()
        self._bag, self._store = BagWriter(file, definitions), typestore_with(definitions)
        self._target, self._ticks = target, 0
        self._markers = PlanMarkers(self._make)

    def __enter__(self) -> "PlanBag":
        self._bag.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bag.close()

    def write(self, plan: Plan, ego: EgoMoment, driven_m: Floats) -> None:
        """Write one plan, and the path driven (N, 2) in the ego frame at its t0."""
        self._ticks += 1
        pose_t0, frame_id = ego.pose, ego.frame_id
        header = self._header(plan.t0_ns, frame_id)
        poses = self._poses(pose_t0, plan.trajectory.position_m, plan.trajectory.yaw_rad)
        ground_m = np.column_stack([driven_m, np.zeros(len(driven_m))])
        driven = self._poses(pose_t0, ground_m, np.zeros(len(driven_m)))
        self._put(f"{OUTPUT}/trajectory", plan.t0_ns, self._trajectory(plan, header, ego, poses))
        self._put(f"{OUTPUT}/path", plan.t0_ns, self._path(plan.t0_ns, frame_id, poses))
        self._put(DRIVEN, plan.t0_ns, self._path(plan.t0_ns, frame_id, driven))
        self._put(f"{OUTPUT}/rationale", plan.t0_ns, self._rationale(plan, header))
        self._put(f"{OUTPUT}/rationale_text", plan.t0_ns, self._make("std_msgs/String", data=plan.rationale.text))
        self._put(f"{OUTPUT}/speculation", plan.t0_ns, self._statistics(plan, header))
        start = self._pose(pose_t0.position_m, pose_t0.quaternion_xyzw)
        self._put(MARKERS, plan.t0_ns, self._markers.array(header, start, (poses, driven), plan.rationale.text))

    def _make(self, kind: str, **fields: Any) -> Any:
        package, name = kind.split("/")
        return self._store.types[f"{package}/msg/{name}"](**fields)

    def _put(self, topic: str, stamp_ns: int, message: Any) -> None:
        kind = message.__msgtype__
        self._bag.write(topic, kind, stamp_ns, bytes(self._store.serialize_cdr(message, kind)))

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        sec, nanosec = divmod(stamp_ns, NANOSECONDS_PER_SECOND)
        stamp = self._make("builtin_interfaces/Time", sec=sec, nanosec=nanosec)
        return self._make("std_msgs/Header", stamp=stamp, frame_id=frame_id)

    def _poses(self, start: Pose, position_m: Floats, yaw_rad: Floats) -> list[Any]:
        """Points (N, 3) and headings (N,) in the ego frame as poses in the odometry's frame."""
        placed_m = start.position_m + position_m @ rotation_matrix(start.quaternion_xyzw).T
        turns = [turned_about_z(start.quaternion_xyzw, float(yaw)) for yaw in yaw_rad]
        return [self._pose(point, turn) for point, turn in zip(placed_m, turns, strict=True)]

    def _pose(self, position_m: Floats, quaternion_xyzw: Floats) -> Any:
        x, y, z, w = (float(v) for v in quaternion_xyzw)
        orientation = self._make("geometry_msgs/Quaternion", x=x, y=y, z=z, w=w)
        x, y, z = (float(v) for v in position_m)
        return self._make(
            "geometry_msgs/Pose", position=self._make("geometry_msgs/Point", x=x, y=y, z=z), orientation=orientation
        )

    def _trajectory(self, plan: Plan, header: Any, ego: EgoMoment, poses: list[Any]) -> Any:
        trajectory, judgement = plan.trajectory, judge(plan, ego)
        points = []
        for i, time_s in enumerate(trajectory.time_from_start_s):
            sec, nanosec = divmod(seconds_to_ns(float(time_s)), NANOSECONDS_PER_SECOND)
            speed, (acceleration, curvature) = float(trajectory.speed_mps[i]), map(float, trajectory.action[i])
            points.append(
                self._make(
                    f"{PACKAGE}/PlannedPoint",
                    time_from_start=self._make("builtin_interfaces/Duration", sec=sec, nanosec=nanosec),
                    pose=poses[i],
                    speed=speed,
                    acceleration=acceleration,
                    curvature=curvature,
                    yaw_rate=curvature * speed,
                )
            )
        return self._make(
            f"{PACKAGE}/PlannedTrajectory",
            header=header,
            ego_pose=self._pose(ego.pose.position_m, ego.pose.quaternion_xyzw),
            points=points,
            # The points are the target's own, refused or not.
            status=0,
            status_reason=judgement.fallback_reason,
            pending=False,
            target=self._target,
            consistency=int(judgement.finding.consistency),
            consistency_reason=judgement.finding.reason,
            comfort_exceeded=list(judgement.comfort_exceeded),
        )

    def _path(self, t0_ns: int, frame_id: str, poses: list[Any]) -> Any:
        stamps_ns = [t0_ns + seconds_to_ns((i + 1) / 10.0) for i in range(len(poses))]
        stamped = [
            self._make("geometry_msgs/PoseStamped", header=self._header(stamp_ns, frame_id), pose=pose)
            for stamp_ns, pose in zip(stamps_ns, poses, strict=True)
        ]
        return self._make("nav_msgs/Path", header=self._header(t0_ns, frame_id), poses=stamped)

    def _rationale(self, plan: Plan, header: Any) -> Any:
        kind, rationale = f"{PACKAGE}/RationaleToken", plan.rationale
        tokens = [
            self._make(kind, text=token.text, source=token.source, round=token.round, margin=float(token.margin))
            for token in rationale.tokens
        ]
        return self._make(
            f"{PACKAGE}/Rationale", header=header, text=rationale.text, tokens=tokens, complete=rationale.complete
        )

    def _statistics(self, plan: Plan, header: Any) -> Any:
        stats = plan.speculation
        counts = ("rounds", "proposed", "accepted", "committed", "prefill_proposed", "prefill_accepted")
        return self._make(
            f"{PACKAGE}/SpeculationStats",
            header=header,
            **{name: getattr(stats, name) for name in counts},
            accepted_at=np.array(stats.accepted_at, dtype=np.uint32),
            acceptance_histogram=np.array(stats.acceptance_histogram, dtype=np.uint32),
            mean_acceptance_length=float(stats.mean_acceptance_length),
            acceptance_rate=float(stats.acceptance_rate),
            drafter=stats.drafter,
            **{f"{stage}_ms": float(plan.stage_ms.get(stage, 0.0)) for stage in STAGES},
            observation_age_ms=0.0,
            ticks=self._ticks,
            dropped_ticks=0,
            deadline_misses=0,
            fallbacks=0,
        )
