"""`flatrope checkpoint ...`: drafts on disk."""

import argparse
from pathlib import Path
from typing import Any

from flatrope_planner.arguments import add_target_argument
from flatrope_planner.commands.command import Result, add_command


def add_checkpoint_commands(commands: Any) -> None:
    """Add all of `checkpoint`."""
    inspect = add_command(
        commands, "inspect", _checkpoint_inspect, "what a draft's files hold, and whether it fits the target"
    )
    inspect.add_argument("draft", type=Path, metavar="DIR", help="folder of a draft")
    convert = add_command(commands, "convert", _checkpoint_convert, "write a draft in another layout")
    convert.add_argument("draft", type=Path, metavar="DIR", help="folder of a draft")
    convert.add_argument("out", type=Path, metavar="OUT", help="empty or new folder")
    layouts = "flatrope, z-lab, speculators or eagle3"
    convert.add_argument("--to", default="flatrope", metavar="LAYOUT", help=f"{layouts} (default: %(default)s)")
    for parser in (inspect, convert):
        parser.add_argument(
            "--tapped-layers", metavar="1,9,17", help="the target's layers the draft reads, where its files do not say"
        )
        add_target_argument(parser)


def _checkpoint_inspect(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import inspect_draft, layers_named, table

    result = inspect_draft(arguments.draft, layers_named(arguments.tapped_layers), arguments.target)
    print(table(result))
    return result


def _checkpoint_convert(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import convert_draft, layers_named, table

    layers = layers_named(arguments.tapped_layers)
    result = convert_draft(arguments.draft, arguments.out, arguments.to, layers, arguments.target)
    print(table(result))
    return result
