"""Closed-loop success by scene family: nano, nano without sight, and the reference driver.

Every episode is a task of its own: the result does not depend on how many processes share them.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.closed_loop import Episode, Pilot, PlannerPilot, ReferencePilot, drive
from flatrope_planner.evaluation.nano_of_worker import nano_of_this_worker
from flatrope_planner.evaluation.nano_weights import check_nano_weights
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, UNSEEN_FAMILIES, Family, Split, World
from flatrope_planner.workers import run_in_workers

NANO, BLIND, REFERENCE = DRIVERS = ("nano", "blind", "reference")


@dataclass(frozen=True)
class Task:
    """One episode to drive."""

    driver: str
    family: Family
    seed: int


@dataclass(frozen=True)
class DrivingOptions:
    """What to measure."""

    seeds: int = 20
    families: tuple[Family, ...] = tuple(Family)
    drivers: tuple[str, ...] = DRIVERS
    jobs: int = 2
    # Directory of nano's weights; None for those of the package.
    weights: Path | None = None


def families_named(names: Sequence[str]) -> tuple[Family, ...]:
    """The families of these names, all of them for none.

    Raises:
        InputError: for a name that is no family.
    """
    known = {family.value: family for family in Family}
    for name in names:
        if name not in known:
            msg = f"there is no scene family {name!r}; there are {', '.join(known)}"
            raise InputError(msg)
    return tuple(known[name] for name in names) or tuple(Family)


def run_driving_benchmark(options: DrivingOptions) -> dict[str, Any]:
    """Drive every family with every driver and count successes.

    Raises:
        InputError: if there is nothing to drive, nobody to do it, or the weights are not nano's.
    """
    if options.seeds < 1:
        msg = f"seeds is {options.seeds}, expected at least 1"
        raise InputError(msg)
    check_nano_weights(options.weights)
    drivers, families = options.drivers, options.families
    tasks = [Task(driver, family, seed) for seed in range(options.seeds) for driver in drivers for family in families]
    started_s = time.monotonic()
    driven = run_in_workers(partial(_drive, options.weights), tasks, options.jobs)
    episodes = dict(with_progress(driven, len(tasks), "episodes"))
    summaries = {
        driver: _summary({task: episodes[task] for task in tasks if task.driver == driver}) for driver in drivers
    }
    return {
        **summaries.pop(NANO, {}),
        **summaries,
        "seeds": options.seeds,
        "split": Split.VAL.value,
        "wall_s": round(time.monotonic() - started_s, 1),
        "failed": [_failed(task, episodes[task]) for task in tasks if not episodes[task].success],
    }


def table(result: dict[str, Any]) -> str:
    """The success rates as text, one family a line."""
    columns = {NANO: result, **{driver: result.get(driver, {}) for driver in (BLIND, REFERENCE)}}
    columns = {driver: column for driver, column in columns.items() if "families" in column}
    parts = {"trained families": columns, "unseen families": {name: c["unseen"] for name, c in columns.items()}}
    lines = [f"{'':<18}" + "".join(f"{driver:>12}" for driver in columns)]
    for name, groups in parts.items():
        families = next(iter(groups.values()))["families"]
        for family in families:
            rows = [group["families"][family] for group in groups.values()]
            lines.append(f"{family:<18}{''.join(_cell(row) for row in rows)}{_failures(groups, family)}")
        if families:
            lines.append(f"{name:<18}{''.join(_cell(group) for group in groups.values())}\n")
    return "\n".join(lines).rstrip()


def _cell(row: dict[str, Any]) -> str:
    return f"{row['success']:>12.1%}"


def _failures(groups: dict[str, dict[str, Any]], family: str) -> str:
    """What went wrong for the driver in the first column."""
    driver, group = next(iter(groups.items()))
    kinds = ", ".join(f"{kind} {count}" for kind, count in group["families"][family]["failures"].items())
    return f"   {driver}: {kinds}" if kinds else ""


def _drive(weights: Path | None, task: Task) -> Episode:
    world = World(task.family, task.seed, Split.VAL)
    return drive(world, _pilot(task.driver, world, weights))


def _pilot(driver: str, world: World, weights: Path | None) -> Pilot:
    if driver == REFERENCE:
        return ReferencePilot(world)
    return PlannerPilot(world, nano_of_this_worker(weights), blind=driver == BLIND)


def _summary(episodes: dict[Task, Episode]) -> dict[str, Any]:
    return {**_group(episodes, TRAINED_FAMILIES), "unseen": _group(episodes, UNSEEN_FAMILIES)}


def _group(episodes: dict[Task, Episode], families: tuple[Family, ...]) -> dict[str, Any]:
    chosen = {family: [e for task, e in episodes.items() if task.family is family] for family in families}
    every = [episode for of_family in chosen.values() for episode in of_family]
    rows = {family.value: _row(of_family) for family, of_family in chosen.items() if of_family}
    return {"families": rows, **_row(every)} if every else {"families": {}, "success": None}


def _row(episodes: list[Episode]) -> dict[str, Any]:
    successes = sum(episode.success for episode in episodes)
    failures = Counter(failure for episode in episodes for failure in episode.failures)
    return {
        "success": successes / len(episodes),
        "successes": successes,
        "episodes": len(episodes),
        "failures": dict(sorted(failures.items())),
    }


def _failed(task: Task, episode: Episode) -> dict[str, Any]:
    return {
        "driver": task.driver,
        "family": task.family.value,
        "seed": task.seed,
        "failures": list(episode.failures),
        "time_s": round(episode.duration_s, 2),
        "distance_m": round(episode.distance_m, 1),
        "last_rationale": episode.ticks[-1].rationale if episode.ticks else "",
    }
