"""`flatrope train target`: from nothing to weights that can ship."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from flatrope_planner.simulation.world import Split
from flatrope_planner.training.export import export
from flatrope_planner.training.making import make_samples
from flatrope_planner.training.options import TargetTrainingOptions
from flatrope_planner.training.target import TargetTrainer, train
from flatrope_planner.training.vocabulary import learn_vocabulary
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.nano import observation_spec
from flatrope_planner.vla.tokenizer import TOKENIZER_FILE, NanoTokenizer

# In order; each needs those before it.
STAGES = ("data", "tokenizer", "train", "export")


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flatrope train target`."""
    plain = TargetTrainingOptions(Path("out/train/target"), Path("out/train/nano"))
    parser.add_argument("--work", type=Path, default=plain.work, help="samples and checkpoints (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=plain.out, help="finished weights (default: %(default)s)")
    parser.add_argument("--stage", choices=(*STAGES, "all"), default="all", help="do only this (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=plain.steps, help="training steps (default: %(default)s)")
    parser.add_argument(
        "--episodes", type=int, default=plain.episodes, help="episodes of each family (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=plain.seed, help="of weights and order (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=plain.jobs, help="processor cores to use (default: %(default)s)")


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
    """Run one stage, or all that are still to be done; an interrupted run goes on where it stopped."""
    result: dict[str, object] = {}
    if stage in ("data", "all"):
        result["episodes_made"] = _make_data(options)
    if stage in ("tokenizer", "all") and not (options.work / TOKENIZER_FILE).is_file():
        result["vocabulary"] = _learn_vocabulary(options)
    if stage in ("train", "all"):
        trainer = train(options, NanoConfig.load(options.work), NanoTokenizer.load(options.work))
        result |= {"steps": trainer.optimiser.step_count, "finished": trainer.finished}
        if trainer.latest is not None:
            result |= asdict(trainer.latest)
        if not trainer.finished:
            print(f"stopped at step {trainer.optimiser.step_count}; run the same command again to go on")
            return result
    if stage in ("export", "all"):
        _export(options)
        result["weights"] = str(options.out)
    return result


def _make_data(options: TargetTrainingOptions) -> int:
    spec = observation_spec(NanoConfig(0))
    made = make_samples(options.held_out, options.held_out_episodes, Split.VAL, spec, options.jobs)
    return made + make_samples(options.samples, options.episodes, Split.TRAIN, spec, options.jobs)


def _learn_vocabulary(options: TargetTrainingOptions) -> int:
    config, tokenizer = learn_vocabulary(options.samples)
    config.save(options.work)
    tokenizer.save(options.work)
    return tokenizer.size


def _export(options: TargetTrainingOptions) -> None:
    config, tokenizer = NanoConfig.load(options.work), NanoTokenizer.load(options.work)
    trainer = TargetTrainer(options, config, tokenizer)
    facts = {"training steps": trainer.optimiser.step_count, "episodes": 8 * options.episodes, "seed": options.seed}
    export(options.out, trainer.optimiser.average, config, tokenizer, facts)
