"""`flatrope capture` and `flatrope train ...`."""

import argparse
from typing import Any

from flatrope_planner.commands.command import Result, add_command


def add_training_commands(commands: Any, *, chosen: bool) -> None:
    """Add `train` and `capture`; they get their options only when `chosen`: these need torch."""
    train = commands.add_parser("train", help="train", description="Train.").add_subparsers(
        metavar="WHAT", required=True
    )
    target = add_command(train, "target", _train_target, "make nano from nothing; an interrupted run goes on")
    draft = add_command(train, "draft", _train_draft, "train a draft on a target's traces; an interrupted run goes on")
    corpus = add_command(train, "corpus", _train_corpus, "gather the texts of a target's traces, for retrieval")
    capture = add_command(commands, "capture", _capture, "write down what a target writes and what goes on in it")
    if chosen:
        _add_training_arguments(target, draft, corpus, capture)


def _add_training_arguments(
    target: argparse.ArgumentParser,
    draft: argparse.ArgumentParser,
    corpus: argparse.ArgumentParser,
    capture: argparse.ArgumentParser,
) -> None:
    """Options whose defaults stand in modules that load PyTorch."""
    from flatrope_planner.training.capture_command import add_capture_arguments
    from flatrope_planner.training.command import add_target_arguments
    from flatrope_planner.training.corpus_command import add_corpus_arguments
    from flatrope_planner.training.draft_command import add_draft_arguments

    add_target_arguments(target)
    add_draft_arguments(draft)
    add_corpus_arguments(corpus)
    add_capture_arguments(capture)


def _train_target(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.command import options_of, train_target

    return train_target(options_of(arguments), arguments.stage)


def _train_draft(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.draft_command import command_of, train_draft

    return train_draft(command_of(arguments))


def _train_corpus(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.corpus_command import write_corpus

    return write_corpus(arguments.traces, arguments.out)


def _capture(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.capture_command import CaptureOptions, capture

    options = CaptureOptions(arguments.out, arguments.target, arguments.episodes, arguments.jobs, arguments.device)
    return capture(options)
