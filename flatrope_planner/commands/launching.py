"""`flatrope demo | up | play | record`: start nodes as the launch files do."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flatrope_planner.arguments import output_folder
from flatrope_planner.commands.command import EXIT_CODE, EXIT_OK, Result, add_command
from flatrope_planner.commands.pairs import pairs
from flatrope_planner.errors import SetupError


def add_launching_commands(commands: Any) -> None:
    """Add `demo`, `up`, `play` and `record`."""
    demo = add_command(commands, "demo", _demo, "drive the embedded simulator over ROS 2, record it, make a report")
    demo.add_argument(
        "--out", type=output_folder, default=Path("out/demo"), metavar="FOLDER", help="default: %(default)s"
    )
    up = add_command(commands, "up", _up, "run the planner and its diagnostics until interrupted")
    play = add_command(commands, "play", _play, "play a bag into running nodes, with its time on /clock")
    record = add_command(commands, "record", _record, "record what a replay needs until interrupted")
    record.add_argument("--topics", action="store_true", help="print the topics, for `ros2 bag record`")
    for parser in (demo, up, play, record):
        _add_launch_arguments(parser)


def _add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show-args", action="store_true", help="list the arguments and their defaults")
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="as for `ros2 launch`")


def _demo(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import DEMO_ARGUMENTS
    from flatrope_planner.evaluation.demo import SCENES, describe, run_demo

    if arguments.show_args:
        return _shown_arguments([replace(each, default=SCENES.get(each.name, each.default)) for each in DEMO_ARGUMENTS])
    summary = run_demo(_chosen(arguments.arguments), arguments.out)
    print(describe(summary, arguments.out))
    return summary


def _up(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import PLANNER_ARGUMENTS, planner_processes
    from flatrope_planner.bringup.leftovers import warn_of_leftovers
    from flatrope_planner.bringup.processes import run

    if arguments.show_args:
        return _shown_arguments(PLANNER_ARGUMENTS)
    processes = planner_processes(_chosen(arguments.arguments))
    warn_of_leftovers(print)
    ended = run(processes, {})
    if ended is not None and ended.exit_code != 0:
        raise SetupError(str(ended))
    return {EXIT_CODE: EXIT_OK}


def _play(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import PLAY_ARGUMENTS, play_processes
    from flatrope_planner.bringup.processes import run

    if arguments.show_args:
        return _shown_arguments(PLAY_ARGUMENTS)
    print("the bag's time is on /clock, for nodes started with use_sim_time:=true")
    ended = run(play_processes(_chosen(arguments.arguments)), {})
    if ended is not None and ended.exit_code != 0:
        raise SetupError(str(ended))
    return {EXIT_CODE: EXIT_OK}


def _record(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.processes import run
    from flatrope_planner.bringup.recording import RECORD_ARGUMENTS, record_processes, recorded_topics

    if arguments.show_args:
        return _shown_arguments(RECORD_ARGUMENTS)
    chosen = _chosen(arguments.arguments)
    if arguments.topics:
        print(*recorded_topics(chosen))
        return {"topics": recorded_topics(chosen)}
    # Whether the file is of use shows when it is complete.
    ended = run(record_processes(chosen), {}, to_the_end=True)
    if ended is not None and ended.exit_code != 0:
        raise SetupError(str(ended))
    return {EXIT_CODE: EXIT_OK}


def _chosen(texts: Sequence[str]) -> dict[str, str]:
    """The arguments of a launch, written as name:=value."""
    return pairs(texts, ":=", "name:=value")


def _shown_arguments(known: Sequence[Any]) -> Result:
    for argument in known:
        choices = f" [{' | '.join(argument.choices)}]" if argument.choices else ""
        print(f"{argument.name}:={argument.default}{choices}\n    {argument.meaning}")
    return {argument.name: argument.default for argument in known}
