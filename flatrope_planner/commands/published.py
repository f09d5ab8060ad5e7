"""`flatrope checkpoint codebook | autovla`: published files of targets, written anew where ours may not read them."""

import argparse
from pathlib import Path
from typing import Any

from flatrope_planner.commands.command import Result, add_command


def add_published_commands(commands: Any) -> None:
    """Add those of `checkpoint` that write targets."""
    codebook = add_command(commands, "codebook", _codebook, "write AutoVLA's codebook as safetensors")
    codebook.add_argument("source", type=Path, metavar="PKL", help="agent_vocab.pkl, which is read but never run")
    codebook.add_argument("out", type=Path, metavar="OUT", help="folder of the checkpoint")
    autovla = add_command(commands, "autovla", _autovla, "write a trained AutoVLA as a folder to be loaded")
    autovla.add_argument("source", type=Path, metavar="CKPT", help="of PyTorch Lightning, which is read but never run")
    autovla.add_argument("out", type=Path, metavar="OUT", help="empty or new folder")
    autovla.add_argument("--backbone", type=Path, required=True, metavar="DIR", help="the Qwen2.5-VL it began with")
    autovla.add_argument("--codebook", type=Path, required=True, metavar="PKL", help="agent_vocab.pkl")
    autovla.add_argument("--settings", type=Path, metavar="YAML", help="of the training; default: as published")


def _codebook(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import table
    from flatrope_planner.training.published_autovla import convert_codebook

    result = convert_codebook(arguments.source, arguments.out)
    print(table(result))
    return result


def _autovla(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import table
    from flatrope_planner.training.published_autovla import convert_checkpoint

    result = convert_checkpoint(
        arguments.source, arguments.backbone, arguments.codebook, arguments.out, arguments.settings
    )
    print(table(result))
    return result
