"""Puts together what belongs to one tick: plan, words, costs, picture; and cuts the drive into scenes."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import Decision, Floats, ns_to_seconds
from flatrope_planner.evaluation.report.recording import (
    RecordedCosts,
    RecordedOutcome,
    RecordedPicture,
    RecordedPlan,
    Recording,
)
from flatrope_planner.evaluation.report.shapes import Shape
from flatrope_planner.planning.odometry import MAX_JUMP_M, MAX_SPEED_MPS, OdometrySample
from flatrope_planner.planning.stated_decision import decision_of

# A picture further from t0 than this does not show what the plan was made from.
PICTURE_TOLERANCE_NS = 60_000_000
# The reference driver is asked at its own times, every half second.
REFERENCE_TOLERANCE_NS = 250_000_000
# Odometry that is silent for longer speaks of another scene.
SCENE_GAP_S = 2.0


@dataclass(frozen=True)
class Tick:
    """One plan and everything around it."""

    t0_s: float
    plan: RecordedPlan
    rationale: str
    decision: Decision | None
    reference_rationale: str
    costs: RecordedCosts | None
    # Camera -> the picture at t0.
    pictures: dict[str, RecordedPicture]
    shapes: tuple[Shape, ...]
    scene: int


@dataclass(frozen=True)
class DrivenScene:
    """A stretch of the drive without a jump."""

    title: str
    # "success", what went wrong, or "" when nobody judged.
    outcome: str
    start_s: float
    end_s: float
    odometry: tuple[OdometrySample, ...]

    @property
    def distance_m(self) -> float:
        """Length of the path driven."""
        places_m = np.array([sample.position_m for sample in self.odometry])
        return float(np.sum(np.linalg.norm(np.diff(places_m, axis=0), axis=1)))


def seconds_into(recording: Recording, time_ns: int) -> float:
    """Seconds since the first odometry."""
    return ns_to_seconds(time_ns - recording.odometry[0].stamp_ns)


def driven_scenes(recording: Recording) -> list[DrivenScene]:
    """The drive, cut where time leaps or the vehicle was put elsewhere."""
    groups: list[list[OdometrySample]] = []
    for sample in recording.odometry:
        if not groups or _jumps(groups[-1][-1], sample):
            groups.append([])
        groups[-1].append(sample)
    names = recording.scene_names
    if len(names) != len(groups):
        # A recording that began late, or of a world without names.
        names = [f"scene {number}" for number in range(1, len(groups) + 1)]
    outcomes = _outcomes(recording.outcomes, names, groups)
    return [_scene(recording, *parts) for parts in zip(names, groups, outcomes, strict=True)]


def ticks_of(recording: Recording, scenes: list[DrivenScene]) -> list[Tick]:
    """All ticks in the order of their t0."""
    starts_s = [scene.start_s for scene in scenes]
    return [_tick(recording, plan, starts_s) for plan in sorted(recording.plans, key=lambda plan: plan.t0_ns)]


def stage_times_ms(ticks: Sequence[Tick], stage: str) -> Floats:
    """Milliseconds of one stage over all ticks that report it."""
    return np.array([tick.costs.stage_ms[stage] for tick in ticks if tick.costs and stage in tick.costs.stage_ms])


def _jumps(before: OdometrySample, after: OdometrySample) -> bool:
    apart_s = ns_to_seconds(after.stamp_ns - before.stamp_ns)
    moved_m = float(np.linalg.norm(after.position_m - before.position_m))
    return not 0.0 <= apart_s <= SCENE_GAP_S or moved_m > MAX_SPEED_MPS * apart_s + MAX_JUMP_M


def _outcomes(
    outcomes: Sequence[RecordedOutcome], names: Sequence[str], groups: Sequence[Sequence[OdometrySample]]
) -> list[str]:
    """Of each scene how it ended, "" where nobody judged.

    By the scene's name, the n-th of a name to the n-th: topics come in no order, and the next scene may be recorded
    before the outcome of the last. By time only what names none of the scenes.
    """
    named = {name: [outcome.text for outcome in outcomes if outcome.scene == name] for name in names}
    others = [outcome for outcome in outcomes if outcome.scene not in named]
    starts_ns = [group[0].stamp_ns for group in groups]
    found = []
    for name, start_ns, end_ns in zip(names, starts_ns, [*starts_ns[1:], math.inf], strict=True):
        by_time = [outcome.text for outcome in others if start_ns < outcome.ended_ns < end_ns]
        found.append(named[name].pop(0) if named[name] else "".join(by_time[-1:]))
    return found


def _scene(recording: Recording, title: str, odometry: list[OdometrySample], outcome: str) -> DrivenScene:
    start_s, last_s = (seconds_into(recording, sample.stamp_ns) for sample in (odometry[0], odometry[-1]))
    return DrivenScene(title, outcome, start_s, last_s, tuple(odometry))


def _tick(recording: Recording, plan: RecordedPlan, starts_s: list[float]) -> Tick:
    t0_s = seconds_into(recording, plan.t0_ns)
    rationale = recording.rationales.get(plan.t0_ns, "")
    return Tick(
        t0_s=t0_s,
        plan=plan,
        rationale=rationale,
        decision=decision_of(rationale),
        reference_rationale=_said_near(recording.reference_rationales, plan.t0_ns),
        costs=recording.costs.get(plan.t0_ns),
        pictures=_pictures_at(recording, plan.t0_ns),
        shapes=_shapes_at(recording, plan.t0_ns),
        scene=max(bisect_right(starts_s, t0_s + 1e-6) - 1, 0),
    )


def _said_near(rationales: dict[int, str], t0_ns: int) -> str:
    """The rationale of the moment closest to t0; empty if none is close."""
    nearest = min(rationales, key=lambda stamp_ns: abs(stamp_ns - t0_ns), default=0)
    return rationales[nearest] if abs(nearest - t0_ns) <= REFERENCE_TOLERANCE_NS and rationales else ""


def _shapes_at(recording: Recording, time_ns: int) -> tuple[Shape, ...]:
    shapes: list[Shape] = []
    for arrays in recording.scenery.values():
        seen = bisect_right(arrays, time_ns, key=lambda array: array[0]) - 1
        shapes += arrays[seen][1] if seen >= 0 else ()
    return tuple(shapes)


def _pictures_at(recording: Recording, t0_ns: int) -> dict[str, RecordedPicture]:
    nearest = {
        camera: min(pictures, key=lambda picture: abs(picture.stamp_ns - t0_ns))
        for camera, pictures in recording.pictures.items()
    }
    return {
        camera: picture for camera, picture in nearest.items() if abs(picture.stamp_ns - t0_ns) <= PICTURE_TOLERANCE_NS
    }
