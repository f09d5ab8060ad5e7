"""One plan of a replay as a row of plans.jsonl: what was planned, what was driven, how far apart they are."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from flatrope_planner.domain import Floats, Plan, SpeculationStats, Trajectory, ns_to_seconds
from flatrope_planner.evaluation.replay.contestants import PlannedMoment, comparison
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S, PlannedPoses, errors_by_horizon
from flatrope_planner.evaluation.replay.driven_path import DrivenPath, DrivenPoses
from flatrope_planner.evaluation.replay.extended_comfort import changes
from flatrope_planner.planning.comfort import MotionProfile, exceeded, profile_of
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.judgement import judge
from flatrope_planner.planning.stated_decision import decision_of

DECIMALS = 6
NOT_FINITE = "the plan holds numbers that are not finite"


@dataclass(frozen=True)
class OpenTick:
    """A plan whose future has not been driven yet."""

    planned: PlannedMoment
    ego: EgoMoment
    # Counts the times that the recording began anew.
    drive: int
    # Seconds into the recording.
    t0_s: float

    @property
    def t0_ns(self) -> int:
        """When it was planned for."""
        return self.planned.plan.t0_ns

    @property
    def end_ns(self) -> int:
        """When its last point is due."""
        return self.t0_ns + round(float(self.planned.plan.trajectory.time_from_start_s[-1]) * 1e9)


class RowMaker:
    """Makes rows of ticks in the order of their t0; knows the last one, for what is said of two plans in a row."""

    def __init__(self) -> None:
        """No row yet."""
        self._last: tuple[OpenTick, MotionProfile] | None = None

    def row(self, tick: OpenTick, path: DrivenPath) -> tuple[dict[str, Any], DrivenPoses]:
        """The row, and the path that was driven."""
        planned = tick.planned
        trajectory, rationale = planned.plan.trajectory, planned.plan.rationale
        driven = path.seen_from(tick.ego.pose, tick.t0_ns, trajectory.time_from_start_s)
        decision, judgement = decision_of(rationale.text), judge(planned.plan, tick.ego)
        errors = _errors(trajectory, driven)
        row = {
            "t0_ns": tick.t0_ns,
            "t0_s": tick.t0_s,
            "drive": tick.drive,
            "rationale": rationale.text,
            "complete": rationale.complete,
            "decision": decision.value if decision else None,
            # What the planner node's validator says of it.
            "refused": judgement.fallback_reason,
            "consistency": judgement.finding.consistency.name.lower(),
            "consistency_reason": judgement.finding.reason,
            "errors": errors,
            **_sampled(errors, planned.samples, driven),
            **self._comfort(tick),
            "speculation": speculation_of(planned.plan.speculation),
            "stage_ms": dict(planned.plan.stage_ms),
            "compared": comparison(planned.plan, planned.plain) if planned.plain else None,
            "position_m": trajectory.position_m.tolist(),
            "yaw_rad": trajectory.yaw_rad.tolist(),
            "speed_mps": trajectory.speed_mps.tolist(),
            "driven_m": _known(driven),
        }
        return rounded(row), driven

    def _comfort(self, tick: OpenTick) -> dict[str, Any]:
        result: dict[str, Any] = {"discomforts": None, "change": None, "rationale_kept": None}
        if not is_finite(tick.planned.plan.trajectory):
            self._last = None
            return result
        profile = profile_of(tick.planned.plan.trajectory, tick.ego.motion)
        last, self._last = self._last, (tick, profile)
        result["discomforts"] = {bound.quantity: worst for bound, worst in exceeded(profile).items()}
        if last is None or last[0].drive != tick.drive:
            return result
        apart_s = ns_to_seconds(tick.t0_ns - last[0].t0_ns)
        result["change"] = changes(last[1], profile, apart_s)
        if result["change"] is not None:
            result["rationale_kept"] = common_prefix_share(last[0].planned.plan, tick.planned.plan)
        return result


def common_prefix_share(last: Plan, now: Plan) -> float:
    """Words that two rationales begin with in common, as a share of the longer one; 1 for equal ones."""
    before, after = last.rationale.text.split(), now.rationale.text.split()
    common = 0
    for mine, other in zip(before, after, strict=False):
        if mine != other:
            break
        common += 1
    longer = max(len(before), len(after))
    return common / longer if longer else 1.0


def speculation_of(stats: SpeculationStats) -> dict[str, Any]:
    """The counts of one rationale; their ratios are made of sums."""
    counts = asdict(stats)
    counts["acceptance_histogram"] = list(stats.acceptance_histogram)
    return counts


def rounded(value: Any) -> Any:
    """Numbers of a JSON value to six decimals: more is noise of the file format; those that JSON has not are null."""
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def planned_poses(trajectory: Trajectory) -> PlannedPoses:
    """The trajectory on the ground."""
    return PlannedPoses(trajectory.time_from_start_s, trajectory.position_m[:, :2], trajectory.yaw_rad)


def is_finite(trajectory: Trajectory) -> bool:
    """Whether all of its numbers are."""
    numbers = trajectory.position_m, trajectory.yaw_rad, trajectory.speed_mps, trajectory.action
    return all(bool(np.all(np.isfinite(each))) for each in numbers)


def _errors(trajectory: Trajectory, driven: DrivenPoses) -> dict[str, Any]:
    if not is_finite(trajectory):
        return {horizon: {"unavailable": NOT_FINITE} for horizon in HORIZONS_S}
    found = errors_by_horizon(planned_poses(trajectory), driven)
    return {
        horizon: {"unavailable": errors} if isinstance(errors, str) else asdict(errors)
        for horizon, errors in found.items()
    }


def _sampled(plan: Mapping[str, Any], samples: tuple[Trajectory, ...], driven: DrivenPoses) -> dict[str, Any]:
    """Errors of the trajectories that were drawn besides a plan with these errors, and the least of all of them."""
    if not samples:
        return {"samples": 0, "least_errors": None, "sample_errors": None}
    each = [_errors(sample, driven) for sample in samples]
    least: dict[str, Any] = {}
    drawn: dict[str, Any] = {}
    for horizon, of_plan in plan.items():
        known = [errors[horizon] for errors in each if "unavailable" not in errors[horizon]]
        if known:
            drawn[horizon] = {name: [errors[name] for errors in known] for name in ("ade_m", "fde_m")}
        with_plan = known if "unavailable" in of_plan else [of_plan, *known]
        least[horizon] = (
            {name: min(errors[name] for errors in with_plan) for name in ("ade_m", "fde_m")} if with_plan else of_plan
        )
    return {"samples": len(samples), "least_errors": least, "sample_errors": drawn}


def _known(driven: DrivenPoses) -> list[list[float] | None]:
    position_m: Floats = np.where(driven.covered[:, None], driven.position_m, np.nan)
    return [None if np.isnan(point[0]) else point.tolist() for point in position_m]
