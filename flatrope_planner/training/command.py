"""`flatrope train target`: from nothing to weights that can ship."""

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from flatrope_planner.arguments import COUNT, JOBS, SEED, output_folder
from flatrope_planner.errors import InputError
from flatrope_planner.folder_lock import locked
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Split
from flatrope_planner.training.export import export
from flatrope_planner.training.making import Drives, make_samples
from flatrope_planner.training.options import TargetTrainingOptions
from flatrope_planner.training.replacing import check_replaceable
from flatrope_planner.training.samples import list_shards
from flatrope_planner.training.target import TargetTrainer, train
from flatrope_planner.training.vocabulary import learn_vocabulary
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.nano import observation_spec
from flatrope_planner.vla.tokenizer import TOKENIZER_FILE, NanoTokenizer

# In order; each needs those before it.
STAGES = ("data", "tokenizer", "train", "practice", "export")


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flatrope train target`."""
    plain = TargetTrainingOptions(Path("out/train/target"), Path("out/train/nano"))
    parser.add_argument(
        "--work", type=output_folder, default=plain.work, help="samples, checkpoints (default: %(default)s)"
    )
    parser.add_argument("--out", type=output_folder, default=plain.out, help="finished weights (default: %(default)s)")
    parser.add_argument("--stage", choices=(*STAGES, "all"), default="all", help="do only this (default: %(default)s)")
    parser.add_argument("--steps", type=COUNT, default=plain.steps, help="training steps (default: %(default)s)")
    parser.add_argument(
        "--episodes", type=COUNT, default=plain.episodes, help="episodes of each family (default: %(default)s)"
    )
    parser.add_argument("--seed", type=SEED, default=plain.seed, help="of weights and order (default: %(default)s)")
    parser.add_argument("--jobs", type=JOBS, default=plain.jobs, help="processor cores to use (default: %(default)s)")


def options_of(arguments: argparse.Namespace) -> TargetTrainingOptions:
    """The parsed command line as options."""
    return TargetTrainingOptions(
        work=arguments.work,
        out=arguments.out,
        steps=arguments.steps,
        episodes=arguments.episodes,
        seed=arguments.seed,
        jobs=arguments.jobs,
    )


def train_target(options: TargetTrainingOptions, stage: str = "all") -> Mapping[str, object]:
    """Run one stage, or all that are still to be done; an interrupted run goes on where it stopped.

    Raises:
        InputError: when another model is where the weights are to be written, or another run is at work in the folder.
    """
    check_replaceable(options.out, NanoConfig.load, "a nano")
    # What is being trained may be exported meanwhile.
    with nullcontext() if stage == "export" else locked(options.work):
        return _train_target(options, stage)


def _train_target(options: TargetTrainingOptions, stage: str) -> Mapping[str, object]:
    result: dict[str, object] = {}
    if stage in ("data", "all"):
        result["episodes_made"] = _make_data(options)
    if stage in ("tokenizer", "all") and not (options.work / TOKENIZER_FILE).is_file():
        result["vocabulary"] = _learn_vocabulary(options)
    interrupted = _train_and_practise(options) if stage == "all" else None
    if interrupted is not None:
        return _interrupted(interrupted)
    if stage == "practice":
        result["episodes_practised"] = _practise(options, _rounds_practised(options))
    if stage in ("train", "all"):
        trainer = train(options, *_learnt_before(options))
        result |= {"steps": trainer.optimiser.step_count, "finished": trainer.finished}
        if trainer.latest is not None:
            result |= asdict(trainer.latest)
        if not trainer.finished:
            return {**result, **_interrupted(trainer)}
    if stage in ("export", "all"):
        _export(options, options.out)
        result["weights"] = str(options.out)
    return result


def _train_and_practise(options: TargetTrainingOptions) -> TargetTrainer | None:
    """All rounds of practice and the training before each; the trainer if it was interrupted."""
    for number, step in enumerate(options.practice_steps):
        trainer = train(replace(options, stop_at=step), *_learnt_before(options))
        if trainer.optimiser.step_count < step:
            return trainer
        # Beyond the step, practice is over.
        if trainer.optimiser.step_count == step:
            _practise(options, number)
    return None


def _interrupted(trainer: TargetTrainer) -> dict[str, object]:
    print(f"stopped at step {trainer.optimiser.step_count}; run the same command again to go on")
    return {"steps": trainer.optimiser.step_count, "finished": False}


def _make_data(options: TargetTrainingOptions) -> int:
    spec = observation_spec(NanoConfig(0))
    held_out = Drives(options.held_out, range(options.held_out_episodes), Split.VAL, spec)
    taught = Drives(options.samples, range(options.episodes), Split.TRAIN, spec)
    return make_samples(held_out, options.jobs) + make_samples(taught, options.jobs)


def _rounds_practised(options: TargetTrainingOptions) -> int:
    """Complete rounds of practice."""
    return len(list_shards(options.practice)) // (len(TRAINED_FAMILIES) * options.practice_episodes)


def _practise(options: TargetTrainingOptions, number: int) -> int:
    """Let the half-trained nano drive, in scenes of this round's own, which the teacher has not shown."""
    student = options.work / f"student-{number}"
    _export(options, student)
    first = options.episodes + number * options.practice_episodes
    seeds = range(first, first + options.practice_episodes)
    drives = Drives(options.practice, seeds, Split.TRAIN, observation_spec(NanoConfig(0)), student)
    return make_samples(drives, options.jobs)


def _learn_vocabulary(options: TargetTrainingOptions) -> int:
    config, tokenizer = learn_vocabulary(options.samples)
    config.save(options.work)
    tokenizer.save(options.work)
    return tokenizer.size


def _learnt_before(options: TargetTrainingOptions) -> tuple[NanoConfig, NanoTokenizer]:
    return NanoConfig.load(options.work), NanoTokenizer.load(options.work)


def _export(options: TargetTrainingOptions, directory: Path) -> None:
    config, tokenizer = _learnt_before(options)
    trainer = TargetTrainer(options, config, tokenizer)
    if not trainer.optimiser.step_count:
        msg = f"{options.work}: nothing has been trained there yet, expected a checkpoint of --stage train"
        raise InputError(msg)
    facts = {
        "training steps": trainer.optimiser.step_count,
        "episodes driven by the reference driver": len(TRAINED_FAMILIES) * options.episodes,
        "episodes driven by nano itself": len(list_shards(options.practice)),
        "seed": options.seed,
    }
    export(directory, trainer.optimiser.average, config, tokenizer, facts)
