"""`flatrope doctor`: what is amiss with an installation, and what to do."""

import argparse
from typing import Any

from flatrope_planner.arguments import add_target_argument
from flatrope_planner.commands.command import Result, add_command


def add_doctor_command(commands: Any) -> None:
    """Add `doctor`."""
    doctor = add_command(commands, "doctor", _doctor, "check installation, middleware, models, inputs; say what to do")
    doctor.add_argument("--planner", metavar="NAME", help="a running planner, which must be there (default: planner)")
    add_target_argument(doctor)
    doctor.add_argument("--clean", action="store_true", help="first remove what ended processes left in shared memory")


def _doctor(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.doctor.checkup import check_up
    from flatrope_planner.doctor.shared_memory import clean

    if arguments.clean:
        removed = clean()
        print(f"removed from shared memory: {', '.join(removed) or 'nothing, there was nothing left over'}")
    return check_up(arguments.planner, arguments.target)
