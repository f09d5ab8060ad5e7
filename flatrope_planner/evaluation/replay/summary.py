"""summary.json: every bag and all of them together (docs/replay.md describes it).

What differs from run to run stands under "run" and nowhere else: times, paths, the state of the machine.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flatrope_planner._version import __version__
from flatrope_planner.evaluation.replay.bag_result import COMPLETE, FAILED, PARTIAL, PLANS
from flatrope_planner.evaluation.replay.task import SCHEMA_VERSION
from flatrope_planner.evaluation.replay.tick_times import TickTimes
from flatrope_planner.evaluation.replay.totals import Totals


def summary_of(results: Sequence[Mapping[str, Any]], folders: Sequence[Path], wall_s: float) -> dict[str, Any]:
    """The summary of results whose files lie in `folders`, in the same order."""
    totals, times = Totals(), TickTimes()
    for result, folder in zip(results, folders, strict=True):
        for row in rows_in(folder) if result["status"] != FAILED else ():
            totals.add(row)
            times.add(row)
    statuses = [result["status"] for result in results]
    return {
        "schema": SCHEMA_VERSION,
        "version": __version__,
        "counts": {status: statuses.count(status) for status in (COMPLETE, PARTIAL, FAILED)},
        "total": totals.summary(),
        "bags": [_stable(result) for result in results],
        "run": {
            "wall_s": round(wall_s, 1),
            **times.summary(),
            "bags": {result["name"]: result["run"] for result in results},
        },
    }


def rows_in(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a bag's plans.jsonl."""
    with (folder / PLANS).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _stable(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("run", "fingerprint", "schema")}
