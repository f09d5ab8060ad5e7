"""Replays a bag into a folder: plans.jsonl, plans.mcap, moments.json, timeline.json; result.json when all is done."""

import hashlib
import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import fsencode
from pathlib import Path
from typing import Any

import numpy as np

from flatrope_planner.dimensions import HISTORY_SPAN_S
from flatrope_planner.domain import Floats
from flatrope_planner.errors import FlatropeError, InputError, on_one_line, reason
from flatrope_planner.evaluation.replay.bag_replay import BagReplay, ScoredTick
from flatrope_planner.evaluation.replay.bag_source import CDR, BagSource
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.moments import WorstMoments, shown_moment
from flatrope_planner.evaluation.replay.output_folder import HOPELESS, PLANS_BAG, RESULT, cannot_write, writing_to
from flatrope_planner.evaluation.replay.plan_bag import PlanBag
from flatrope_planner.evaluation.replay.rows import is_finite
from flatrope_planner.evaluation.replay.task import SCHEMA_VERSION, ReplayTask
from flatrope_planner.evaluation.replay.tick_times import TickTimes
from flatrope_planner.evaluation.replay.totals import Totals

PLANS, MOMENTS, TIMELINE = "plans.jsonl", "moments.json", "timeline.json"
JSON_FILES = (RESULT, MOMENTS, TIMELINE)
COMPLETE, PARTIAL, FAILED = "complete", "partial", "failed"


def finished_result(task: ReplayTask) -> dict[str, Any] | None:
    """The result that an earlier run has left, if it is this task's and whole; a failure is tried again."""
    try:
        result, _, _ = (json.loads((task.folder / name).read_text(encoding="utf-8")) for name in JSON_FILES)
        is_whole = all((task.folder / name).stat().st_size for name in (PLANS, PLANS_BAG))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(result, dict) and result.get("fingerprint") == task.fingerprint
    return result if is_whole and is_ours and result.get("status") in (COMPLETE, PARTIAL) else None


def replayed(task: ReplayTask, load: Callable[[], Contestants], told: Callable[[float], None]) -> dict[str, Any]:
    """Replay the task's bag; whatever goes wrong with it is its result, and stops no other bag.

    Args:
        task: the bag.
        load: makes who plans.
        told: hears how much of the bag has been read (0 to 1).

    Raises:
        SetupError: if results cannot be written, which is no bag's fault.
    """
    # A name of its own for each bag, and short, as a bag's may be as long as names can be.
    unfinished = task.folder.with_name(f".unfinished-{hashlib.blake2b(fsencode(task.name), digest_size=8).hexdigest()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    with writing_to(task.folder):
        unfinished.mkdir(parents=True)
    result = _result(task, load, unfinished, told)
    with writing_to(task.folder):
        _write(unfinished / RESULT, result)
        shutil.rmtree(task.folder, ignore_errors=True)
        unfinished.replace(task.folder)
    return result


def _result(
    task: ReplayTask, load: Callable[[], Contestants], folder: Path, told: Callable[[float], None]
) -> dict[str, Any]:
    try:
        return _replayed(task, load, folder, told)
    except FlatropeError as err:
        return _failure(task, str(err))
    except Exception as err:  # one bag must not stop the others
        if isinstance(err, OSError) and err.errno in HOPELESS:
            shutil.rmtree(folder, ignore_errors=True)
            raise cannot_write(task.folder, err) from err
        place = traceback.extract_tb(err.__traceback__)[-1]
        return _failure(task, f"{type(err).__name__}: {reason(err)} ({place.name}, line {place.lineno})")


def _failure(task: ReplayTask, error: str) -> dict[str, Any]:
    error = error if str(task.bag) in error else f"{task.bag}: {error}"
    return {**_opening(task, FAILED), "error": on_one_line(error), "run": {"path": str(task.bag)}}


def _opening(task: ReplayTask, status: str) -> dict[str, Any]:
    return {"schema": SCHEMA_VERSION, "name": task.name, "fingerprint": task.fingerprint, "status": status}


def _replayed(
    task: ReplayTask, load: Callable[[], Contestants], folder: Path, told: Callable[[float], None]
) -> dict[str, Any]:
    started_s = time.perf_counter()
    with BagSource(task.bag) as source:
        # Who plans is loaded for nothing that cannot be read.
        contestants = load()
        replay = _replay_of(source, contestants, task)
        tally = _written(replay.scored(told), task.lineup.settings.target, folder)
        if not tally.totals.rows:
            raise InputError(_why_no_plan(task, replay, source))
        eye = replay.calibration.eye(next(iter(replay.topics.cameras.values())), replay.ego_frame)
        _write(folder / MOMENTS, [shown_moment(moment, eye) for moment in tally.moments.worst_first()])
        _write(folder / TIMELINE, replay.driven)
        holes = replay.holes()
        notes = [*source.notes, *replay.useless(), *([] if task.options.at_recorded else holes)]
        missing = [on_one_line(note) for note in notes]
    result = {
        **_opening(task, PARTIAL if missing else COMPLETE),
        "missing": missing,
        "warnings": [on_one_line(warning) for warning in replay.warnings],
        **_inputs(replay),
    }
    wall_s = time.perf_counter() - started_s
    health = contestants.planner.health
    result |= {"drafter": health.drafter, "exactness": health.exactness, **tally.totals.summary()}
    result["recorded_plans"] = replay.recorded_plans.summary(tally.ade_m)
    result["run"] = {
        "path": str(task.bag),
        "wall_s": round(wall_s, 3),
        "planning_s": round(replay.planning_s, 3),
        "times_real_time_without_planning": round(replay.duration_s / max(wall_s - replay.planning_s, 1e-9), 2),
        "speculating": health.speculating,
        "broken_promise": health.broken_promise,
        "problem": health.problem,
        **tally.times.summary(),
    }
    return result


@dataclass
class _Tally:
    """What is known of all plans together."""

    totals: Totals = field(default_factory=Totals)
    times: TickTimes = field(default_factory=TickTimes)
    moments: WorstMoments = field(default_factory=WorstMoments)
    # t0 (ns) -> horizon -> ADE (m), of those plans that have it.
    ade_m: dict[int, dict[str, float]] = field(default_factory=dict)

    def add(self, scored: ScoredTick) -> None:
        self.totals.add(scored.row)
        self.times.add(scored.row)
        self.moments.offer(scored.row, scored.picture)
        errors = scored.row["errors"]
        self.ade_m[scored.tick.t0_ns] = {name: each["ade_m"] for name, each in errors.items() if "ade_m" in each}


def _written(plans: Iterable[ScoredTick], target: str, folder: Path) -> _Tally:
    """Write the plans as they come."""
    tally = _Tally()
    with PlanBag(folder / PLANS_BAG, target) as bag, (folder / PLANS).open("w", encoding="utf-8") as lines:
        for scored in plans:
            lines.write(json.dumps(scored.row, separators=(",", ":")) + "\n")
            _write_plan(bag, scored)
            tally.add(scored)
    return tally


def _replay_of(source: BagSource, contestants: Contestants, task: ReplayTask) -> BagReplay:
    try:
        return BagReplay(source, contestants, task.options)
    except InputError as err:
        # What could not be read may be what is missed.
        others = sorted(source.other_encodings)
        reasons = [str(err), *source.notes]
        reasons += [f"there are messages encoded as {', '.join(others)}; only {CDR} can be read"] if others else []
        msg = "; ".join(reasons)
        raise InputError(msg) from err


def _write_plan(bag: PlanBag, scored: ScoredTick) -> None:
    if not is_finite(scored.tick.planned.plan.trajectory):
        # Neither a message nor a viewer is made for that.
        return
    covered = scored.driven.covered
    known = len(covered) if covered.all() else int(np.argmin(covered))
    driven_m: Floats = scored.driven.position_m[:known]
    bag.write(scored.tick.planned.plan, scored.tick.ego, driven_m)


def _inputs(replay: BagReplay) -> dict[str, Any]:
    topics = replay.topics
    return {
        "topics": {
            "cameras": topics.cameras,
            "odometry": topics.odometry,
            "other_odometry": list(topics.other_odometry),
            "command": topics.command,
        },
        "duration_s": round(replay.duration_s, 3),
        "drives": replay.drives,
        "messages": {topic: replay.messages[topic] for topic in sorted(replay.messages)},
        "rejected": dict(sorted(replay.rejections.counts.items())),
        "looked_at": dict(sorted(replay.looked_at.items())),
        "not_ready": replay.not_ready,
    }


def _why_no_plan(task: ReplayTask, replay: BagReplay, source: BagSource) -> str:
    useless = replay.useless()
    reasons = [*source.notes, *useless]
    reasons += [reason for reason in [replay.why_never_ready()] if reason]
    if replay.duration_s < HISTORY_SPAN_S and not useless:
        reasons.append(f"the drive lasts {replay.duration_s:.1f} s, and a history of {HISTORY_SPAN_S} s is needed")
    silent = [topic for topic in replay.topics.cameras.values() if not replay.messages[topic]]
    reasons += [f"no pictures on {', '.join(silent)}"] if silent else []
    return f"{task.bag}: no plan could be made: {'; '.join(reasons) or 'the bag is too short'}"


def _write(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
