"""Every way to write a rationale side by side: plain greedy, `generate`, its prompt lookup, every drafter.

nano drives scenes of three splits; at each of its observations all write, one after the other, so that speeds can be
compared. Drafters live through a whole drive, as they do in the planner.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from flatrope_planner.domain import Observation, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.decode_contestants import CHAIN_WIDTH, contestants
from flatrope_planner.evaluation.decode_scores import (
    GENERATE,
    GENERATE_LOOKUP,
    Line,
    Lines,
    headline,
    headline_table,
    joined,
    line_of,
    line_of_generate,
    summaries,
)
from flatrope_planner.evaluation.generate_reference import GenerateReference, nano_inputs, nano_rules
from flatrope_planner.evaluation.nano_weights import check_nano_weights
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, UNSEEN_FAMILIES, Family, Split
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.training.collection import collect
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget
from flatrope_planner.workers import run_in_workers

# Scenes of a split: val has trained families with seeds of their own, on-shelf trained families outside the trained
# ranges, off-shelf the families never trained on.
SPLITS: dict[str, tuple[Split, Sequence[Family]]] = {
    "val": (Split.VAL, TRAINED_FAMILIES),
    "on_shelf": (Split.ON_SHELF, TRAINED_FAMILIES),
    "off_shelf": (Split.VAL, UNSEEN_FAMILIES),
}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# The one at which `generate` must agree to the last token.
EXACT_PRECISION = "float32"


@dataclass(frozen=True)
class DecodeOptions:
    """What to measure."""

    splits: tuple[str, ...] = tuple(SPLITS)
    precisions: tuple[str, ...] = tuple(PRECISIONS)
    # Drives of each family, and most moments of a drive.
    episodes: int = 1
    moments: int = 16
    jobs: int = 2
    weights: Path | None = None
    # Further trained drafts by name.
    drafts: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Drive:
    """One scene at one precision."""

    split: str
    family: Family
    seed: int
    precision: str


def run_decode_benchmark(options: DecodeOptions) -> dict[str, Any]:
    """Let all write at every moment.

    Raises:
        InputError: if there is nothing to measure, or the weights are not nano's.
        SetupError: when weights or drafts are missing or do not fit.
    """
    if options.episodes < 1 or options.moments < 1:
        msg = f"{options.episodes} episodes of {options.moments} moments, expected at least one of one"
        raise InputError(msg)
    check_nano_weights(options.weights)
    # Whatever is wrong with a draft is said now, not by a worker.
    contestants(NanoTarget.load(options.weights), options.weights, options.drafts)
    drives = [
        Drive(split, family, seed, precision)
        for precision in options.precisions
        for split in options.splits
        for seed in range(options.episodes)
        for family in SPLITS[split][1]
    ]
    work = partial(_write_drive, options)
    done = dict(with_progress(run_in_workers(work, drives, options.jobs), len(drives), "drives"))
    return _result(options, {drive: done[drive] for drive in drives})


def _write_drive(options: DecodeOptions, drive: Drive) -> Lines:
    stage = _stage(options.weights, tuple(options.drafts.items()), drive.precision)
    stage.begin_drive()
    lines: Lines = defaultdict(list)

    def plan(observation: Observation) -> Trajectory:
        prompt = stage.target.prepare(observation)
        plain = stage.plain(prompt)
        if len(lines["none"]) < options.moments:
            for name, line in stage.write(observation, prompt, plain):
                lines[name].append(line)
        (trajectory,) = stage.target.act(plain.state, None, 1)
        return trajectory

    split, _ = SPLITS[drive.split]
    for _ in collect(drive.family, drive.seed, stage.target.observation_spec, split, plan):
        if len(lines["none"]) >= options.moments:
            break
    return dict(lines)


@cache
def _stage(weights: Path | None, drafts: tuple[tuple[str, Path], ...], precision: str) -> "_Stage":
    """Target and contestants, loaded once in each process."""
    torch.set_num_threads(1)
    return _Stage(weights, dict(drafts), PRECISIONS[precision])


class _Stage:
    """Where all write, one after the other."""

    def __init__(self, weights: Path | None, drafts: Mapping[str, Path], precision: torch.dtype) -> None:
        self.target = NanoTarget.load(weights, precision=precision)
        self._contestants = contestants(self.target, weights, drafts)
        rules = nano_rules(self.target)
        self._generate = GenerateReference(self.target.vlm, rules)
        self._lookup = GenerateReference(self.target.vlm, rules, lookup_tokens=CHAIN_WIDTH - 1)

    def begin_drive(self) -> None:
        """Nobody remembers the drive before."""
        for contestant in self._contestants.values():
            contestant.drafter_for(()).reset()

    def plain(self, prompt: NanoPrompt) -> DecodedRationale[NanoState]:
        """The engine alone."""
        return Decoder(self.target, None, CHAIN_WIDTH).decode(prompt)

    def write(
        self, observation: Observation, prompt: NanoPrompt, plain: DecodedRationale[NanoState]
    ) -> Iterator[tuple[str, Line]]:
        """All contestants at one moment."""
        inputs = nano_inputs(self.target, observation, prompt)
        judge = self._generate.write(prompt.token_ids, inputs)
        yield GENERATE, line_of_generate(judge, judge, plain)
        copied = self._lookup.write(prompt.token_ids, inputs)
        yield GENERATE_LOOKUP, line_of_generate(copied, judge, plain, reach=CHAIN_WIDTH)
        alone = {CHAIN_WIDTH: plain}
        for name, contestant in self._contestants.items():
            width = contestant.width
            if width not in alone:
                alone[width] = Decoder(self.target, None, width).decode(prompt)
            drafter = contestant.drafter_for(plain.token_ids)
            decoded = Decoder(contestant.target, drafter, width).decode(prompt)
            yield name, line_of(decoded, alone[width], judge, contestant.reach)


def _result(options: DecodeOptions, done: Mapping[Drive, Lines]) -> dict[str, Any]:
    splits = {
        split: {
            precision: summaries(lines for d, lines in done.items() if (d.split, d.precision) == (split, precision))
            for precision in options.precisions
        }
        for split in options.splits
    }
    split, precision = options.splits[0], options.precisions[0]
    exact = joined(lines for drive, lines in done.items() if drive.precision == EXACT_PRECISION)
    return {
        **headline(splits[split][precision], joined(done.values()), exact),
        "split": split,
        "precision": precision,
        "splits": splits,
        "episodes": options.episodes,
        "moments": options.moments,
    }


def table(result: dict[str, Any]) -> str:
    """The headline as text, then the mean acceptance lengths by split and precision."""
    lines = [f"{result['split']}, {result['precision']}, {result['rationales']} rationales in all"]
    lines.append(headline_table(result["drafters"]))
    columns = [(split, precision) for split, of in result["splits"].items() for precision in of]
    lines.append("\n" + f"{'tau':<24}" + "".join(f"{split + ' ' + precision:>20}" for split, precision in columns))
    for name in result["drafters"]:
        taus = [result["splits"][split][precision][name]["tau"] for split, precision in columns]
        lines.append(f"{name:<24}" + "".join(f"{tau:>20.2f}" for tau in taus))
    return "\n".join(lines)
