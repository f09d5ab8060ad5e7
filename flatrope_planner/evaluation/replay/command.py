"""`flatrope replay`: replays bags, sums up, writes summary.json and report.html."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.bag_result import FAILED, finished_result
from flatrope_planner.evaluation.replay.bags import bags_at
from flatrope_planner.evaluation.replay.console import BAGS, REPORT, SUMMARY
from flatrope_planner.evaluation.replay.crew import Result, replay_all
from flatrope_planner.evaluation.replay.output_folder import writing_to
from flatrope_planner.evaluation.replay.page import write_page
from flatrope_planner.evaluation.replay.progress import ShareLine
from flatrope_planner.evaluation.replay.ray_crew import replay_on_ray
from flatrope_planner.evaluation.replay.settings import read_settings
from flatrope_planner.evaluation.replay.summary import summary_of
from flatrope_planner.evaluation.replay.task import Lineup, ReplayTask
from flatrope_planner.evaluation.replay.topics import TopicWishes
from flatrope_planner.folder_lock import locked


def run_replay(arguments: Namespace, cameras: dict[str, str]) -> tuple[dict[str, Any], int]:
    """Replay all bags; the summary, and how many of them could not be replayed.

    Args:
        arguments: what `arguments.add_replay_arguments` has described.
        cameras: camera of the target -> topic.

    Raises:
        InputError: if there is no bag, an option does not fit, or another replay writes into the same folder.
        SetupError: if results cannot be written.
    """
    started_s = time.monotonic()
    tasks = _tasks(arguments, cameras)
    out: Path = arguments.out
    with locked(out):
        results = dict(_results(tasks, arguments))
        ordered = [results[task.name] for task in tasks]
        summary = summary_of(ordered, [task.folder for task in tasks], wall_s=time.monotonic() - started_s)
        with writing_to(out):
            (out / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
            write_page(out / REPORT, summary, [task.folder for task in tasks if results[task.name]["status"] != FAILED])
    return summary, sum(result["status"] == FAILED for result in ordered)


def _tasks(arguments: Namespace, cameras: dict[str, str]) -> list[ReplayTask]:
    settings = read_settings(arguments.config)
    settings = replace(settings, target=arguments.target or settings.target)
    wishes = TopicWishes(cameras, arguments.odometry, arguments.command, settings.compressed)
    options = ReplayOptions(
        arguments.interval or settings.period_s,
        arguments.at_recorded,
        wishes,
        settings.rear_axle_offset_m,
        settings.twist_frame,
    )
    lineup = Lineup(settings, arguments.samples, arguments.compare is not None)
    folder = arguments.out / BAGS
    bags = bags_at(arguments.bags)
    return [ReplayTask(bag, name, folder / name, lineup, options) for name, bag in bags.items()]


def _replayed(tasks: Sequence[ReplayTask], arguments: Namespace, line: ShareLine) -> Iterator[Result]:
    if arguments.ray is None:
        return replay_all(tasks, arguments.jobs, line.show)
    return replay_on_ray(tasks, arguments.ray, line.show)


def _results(tasks: Sequence[ReplayTask], arguments: Namespace) -> Iterator[tuple[str, Result]]:
    """Name and result of each task, those of an earlier run first."""
    todo = []
    for task in tasks:
        known = None if arguments.fresh else finished_result(task)
        if known is None:
            todo.append(task)
        else:
            yield task.name, known
    if len(todo) < len(tasks):
        print(f"{len(tasks) - len(todo)} of {len(tasks)} bags were replayed before (--fresh: again)", file=sys.stderr)
    if not todo:
        return
    line, kept = ShareLine("replay", len(todo)), len(tasks) - len(todo)
    try:
        for result in _replayed(todo, arguments, line):
            line.finished_one()
            if result["status"] == FAILED:
                if len(tasks) > 1:
                    line.say(f"flatrope: {result['error']}")
            else:
                kept += 1
            yield result["name"], result
    except KeyboardInterrupt as err:
        line.close()
        same = "the same command without --fresh" if arguments.fresh else "the same command"
        msg = f"{kept} of {len(tasks)} bags are replayed and kept; {same} goes on with the others"
        raise KeyboardInterrupt(msg) from err
    line.close()
