"""`flatrope ...`: reads the command line, runs the command, writes its result."""

import argparse
import json
import sys
from typing import NoReturn

from flatrope_planner._version import __version__
from flatrope_planner.commands.benchmarks import add_benchmarks
from flatrope_planner.commands.command import (
    EXIT_BAD_INPUT,
    EXIT_CODE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    Result,
    prepare_folder_of,
)
from flatrope_planner.commands.doctor import add_doctor_command
from flatrope_planner.commands.drafts import add_checkpoint_commands
from flatrope_planner.commands.launching import add_launching_commands
from flatrope_planner.commands.output import output_that_may_go_unread
from flatrope_planner.commands.published import add_published_commands
from flatrope_planner.commands.recordings import add_recording_commands
from flatrope_planner.commands.training import add_training_commands
from flatrope_planner.errors import FlatropeError
from flatrope_planner.interruption import interrupt_when_asked_to_end


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    with output_that_may_go_unread():
        return _run(argv)


def _run(argv: list[str] | None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _parser(training=argv[:1] in (["train"], ["capture"])).parse_args(argv)
    # Asked to end in whichever way, a command ends what it has started.
    interrupt_when_asked_to_end()
    try:
        prepare_folder_of(arguments.json)
        result: Result = arguments.run(arguments)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    except FlatropeError as err:
        return _complain(err, EXIT_BAD_INPUT)
    except OSError as err:
        if err.filename is None:
            raise
        return _complain(f"{err.filename}: {err.strerror}", EXIT_BAD_INPUT)
    except MemoryError:
        return _complain("expected more memory than there is", EXIT_BAD_INPUT)
    except ModuleNotFoundError as err:
        return _complain(f"{err.name} is not installed: run `make setup`, or source ROS 2", EXIT_BAD_INPUT)
    except KeyboardInterrupt as err:
        # Some commands say what is kept.
        return _complain(": ".join(["interrupted", *map(str, err.args)]), EXIT_INTERRUPTED)
    return int(result.get(EXIT_CODE, EXIT_OK))


def _parser(*, training: bool) -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(prog="flatrope", description="Plan, drive, measure and train with flatrope_planner.")
    parser.add_argument("--version", action="version", version=f"flatrope {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_launching_commands(commands)
    add_doctor_command(commands)
    add_recording_commands(commands)
    bench = commands.add_parser("bench", help="measure", description="Measure.")
    add_benchmarks(bench.add_subparsers(metavar="WHAT", required=True))
    add_training_commands(commands, chosen=training)
    meaning = "look at drafts, convert them; write published targets as folders to be loaded"
    checkpoint = commands.add_parser("checkpoint", help=meaning, description="Drafts and targets on disk.")
    kinds = checkpoint.add_subparsers(metavar="WHAT", required=True)
    add_checkpoint_commands(kinds)
    add_published_commands(kinds)
    return parser


def _complain(problem: object, status: int) -> int:
    print(f"flatrope: {problem}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
