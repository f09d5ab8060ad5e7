"""What a replay says in the terminal when all is done."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flatrope_planner.evaluation.replay.bag_result import FAILED

SUMMARY, REPORT, BAGS = "summary.json", "report.html", "bags"
HEADLINE = "3s"


def describe(summary: Mapping[str, Any], out: Path) -> str:
    """What came of each bag, and where everything is."""
    lines: list[str] = []
    for bag in summary["bags"]:
        if bag["status"] != FAILED:
            lines += _lines(bag, summary["run"]["bags"][bag["name"]])
    # With a draft that cannot be used, say, or is hardly ever right.
    problems = {run.get("problem") for run in summary["run"]["bags"].values()}
    lines += [f"draft:   {problem}" for problem in sorted(filter(None, problems))]
    lines += [f"report:  {out / REPORT}", f"numbers: {out / SUMMARY}", f"plans:   {out / BAGS}"]
    return "\n".join(lines)


def _lines(bag: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    ade_m, tau = bag["errors"][HEADLINE]["ade_m"], bag["speculation"].get("mean_acceptance_length")
    ade = f"no ADE@{HEADLINE}" if ade_m is None else f"ADE@{HEADLINE} {ade_m:.2f} m"
    tokens = "" if tau is None else f", {tau:.2f} tokens a round"
    yield f"{bag['name']}: {bag['plans']} plans, {ade}{tokens}"
    cameras = ", ".join(f"{camera} from {topic}" for camera, topic in bag["topics"]["cameras"].items())
    others = ", ".join(bag["topics"]["other_odometry"])
    yield f"  took {cameras}, odometry from {bag['topics']['odometry']}{f' (and not {others})' if others else ''}"
    if "unavailable" not in bag["compared"]:
        yield f"  against no speculation: {_verdict(bag['compared'], run['speedup'])}"
    if run["broken_promise"]:
        yield f"  problem: {run['broken_promise']}"
    yield from (f"  missing: {line}" for line in bag["missing"])
    yield from (f"  warning: {line}" for line in bag["warnings"])


def _verdict(compared: Mapping[str, Any], speedup: Mapping[str, Any] | None) -> str:
    """For example: "38 of 38 plans identical; reasoning 0.44, whole plans 0.61 times as fast"."""
    plans = compared["plans"]
    identical = min(compared["identical_rationales"], compared["identical_trajectories"])
    names = {"reasoning": "reasoning", "total": "whole plans"}
    ratios = [f"{names[stage]} {ratio['of_sums']:.2f}" for stage, ratio in (speedup or {}).items()]
    speed = f"; {', '.join(ratios)} times as fast" if ratios else ""
    return f"{identical} of {plans} plans identical{speed}"
