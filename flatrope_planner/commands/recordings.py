"""`flatrope report | replay`: look at recorded drives."""

import argparse
import sys
from pathlib import Path
from typing import Any

from flatrope_planner.commands.command import EXIT_BAD_INPUT, EXIT_CODE, Result, add_command, prepare_folder_of
from flatrope_planner.commands.pairs import pairs
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.arguments import add_replay_arguments


def add_recording_commands(commands: Any) -> None:
    """Add `report` and `replay`."""
    report = add_command(commands, "report", _report, "make the report of a recorded bag")
    report.add_argument("bag", type=Path, help="folder of a bag, or a single .mcap file")
    report.add_argument("--html", type=Path, metavar="FILE", help="default: report.html beside the bag")
    add_replay_arguments(
        add_command(commands, "replay", _replay, "what the planner would have done on recorded drives")
    )


def _report(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.report.page import write_report

    prepare_folder_of(arguments.html)
    bag: Path = arguments.bag
    html: Path = arguments.html or (bag if bag.is_dir() else bag.parent) / "report.html"
    summary = write_report(bag, html)
    print(f"report: {html}")
    for line in summary["missing"]:
        print(f"  missing: {line}")
    return summary


def _replay(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.replay.command import run_replay
    from flatrope_planner.evaluation.replay.console import describe

    cameras = dict(pairs(arguments.camera, "=", "NAME=TOPIC"))
    summary, failed = run_replay(arguments, cameras)
    if failed == len(summary["bags"]) == 1:
        raise InputError(summary["bags"][0]["error"])
    print(describe(summary, arguments.out))
    if failed:
        print(f"flatrope: {failed} of {len(summary['bags'])} bags could not be replayed", file=sys.stderr)
        return {**summary, EXIT_CODE: EXIT_BAD_INPUT}
    return summary
