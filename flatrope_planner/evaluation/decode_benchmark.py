"""Every way to write a rationale side by side: plain greedy, `generate`, its prompt lookup, every drafter.

nano drives scenes of three splits; at each of its observations all write, one after the other, so that speeds can be
compared. Drafters live through a whole drive, as they do in the planner.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from flatrope_planner.domain import Observation, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.decode_contestants import CHAIN_WIDTH, Contestant, contestants
from flatrope_planner.evaluation.generate_reference import GenerateReference, Written, is_same
from flatrope_planner.evaluation.workers import run_in_workers
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, UNSEEN_FAMILIES, Family, Split
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.training.collection import collect
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget

# Scenes of a split: val has trained families with seeds of their own, on-shelf trained families outside the trained
# ranges, off-shelf the families never trained on.
SPLITS: dict[str, tuple[Split, Sequence[Family]]] = {
    "val": (Split.VAL, TRAINED_FAMILIES),
    "on_shelf": (Split.ON_SHELF, TRAINED_FAMILIES),
    "off_shelf": (Split.VAL, UNSEEN_FAMILIES),
}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
GENERATE, GENERATE_LOOKUP = "generate", "generate-prompt-lookup"


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


@dataclass(frozen=True)
class Line:
    """How one contestant wrote one rationale."""

    # The same text as the engine alone at the same width, and as `generate`.
    identical: bool
    identical_generate: bool
    committed: int
    rounds: int
    proposed: int
    accepted: int
    foreseen: int
    # Fewest rounds in which a text of this length can be written.
    fewest_rounds: int
    reasoning_s: float
    draft_s: float = 0.0


# By contestant, one for each moment.
Lines = dict[str, list[Line]]


def run_decode_benchmark(options: DecodeOptions) -> dict[str, Any]:
    """Let all write at every moment.

    Raises:
        InputError: if there is nothing to measure.
        SetupError: when weights or drafts are missing or do not fit.
    """
    if options.episodes < 1 or options.moments < 1:
        msg = f"{options.episodes} episodes of {options.moments} moments, expected at least one of one"
        raise InputError(msg)
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
        self._generate = GenerateReference(self.target)
        self._lookup = GenerateReference(self.target, lookup_tokens=CHAIN_WIDTH - 1)

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
        judge = self._generate.write(observation, prompt)
        yield GENERATE, _line_of_generate(judge, judge, plain, reach=1)
        copied = self._lookup.write(observation, prompt)
        yield GENERATE_LOOKUP, _line_of_generate(copied, judge, plain, reach=CHAIN_WIDTH)
        alone = {CHAIN_WIDTH: plain}
        for name, contestant in self._contestants.items():
            width = contestant.width
            if width not in alone:
                alone[width] = Decoder(self.target, None, width).decode(prompt)
            drafter = contestant.drafter_for(plain.token_ids)
            decoded = Decoder(contestant.target, drafter, width).decode(prompt)
            yield name, _line(decoded, alone[width], judge, contestant)


def _line(
    decoded: DecodedRationale[NanoState], alone: DecodedRationale[NanoState], judge: Written, contestant: Contestant
) -> Line:
    stats = decoded.speculation
    return Line(
        identical=decoded.token_ids == alone.token_ids,
        identical_generate=is_same(judge, decoded.token_ids),
        committed=stats.committed,
        rounds=stats.rounds,
        proposed=stats.proposed,
        accepted=stats.accepted,
        foreseen=stats.prefill_accepted,
        fewest_rounds=-(-stats.committed // contestant.reach),
        reasoning_s=decoded.stage_ms["reasoning"] * 1e-3,
        draft_s=decoded.stage_ms["draft"] * 1e-3,
    )


def _line_of_generate(written: Written, judge: Written, plain: DecodedRationale[NanoState], reach: int) -> Line:
    """`reach`: most tokens a pass may bring."""
    committed = len(written.tokens) - 1
    return Line(
        identical=is_same(written, plain.token_ids),
        identical_generate=written.tokens == judge.tokens,
        committed=committed,
        rounds=written.passes,
        proposed=0,
        accepted=0,
        foreseen=0,
        fewest_rounds=-(-committed // reach),
        reasoning_s=written.reasoning_s,
    )


def _result(options: DecodeOptions, done: Mapping[Drive, Lines]) -> dict[str, Any]:
    splits = {
        split: {
            precision: _summaries([lines for d, lines in done.items() if (d.split, d.precision) == (split, precision)])
            for precision in options.precisions
        }
        for split in options.splits
    }
    # The headline: the first split at the first precision, but identity over everything.
    first = splits[options.splits[0]][options.precisions[0]]
    everything, exact = _joined(done.values()), _joined(lines for d, lines in done.items() if d.precision == "float32")
    drafters = {}
    for name, summary in first.items():
        identical_generate = _share(line.identical_generate for line in exact[name]) if exact else None
        identical = _share(line.identical for line in everything[name])
        drafters[name] = {**summary, "identical": identical, "identical_hf_fp32": identical_generate}
    return {
        "drafters": drafters,
        "tau_ceiling": {name: summary["tau_ceiling"] for name, summary in first.items()},
        "rationales": len(everything["none"]),
        "split": options.splits[0],
        "precision": options.precisions[0],
        "splits": splits,
        "episodes": options.episodes,
        "moments": options.moments,
    }


def _joined(parts: Iterable[Lines]) -> Lines:
    joined: Lines = defaultdict(list)
    for lines in parts:
        for name, some in lines.items():
            joined[name] += some
    return dict(joined)


def _summaries(parts: Sequence[Lines]) -> dict[str, dict[str, float]]:
    joined = _joined(parts)
    return {name: _summary(lines, joined[GENERATE], joined["none"]) for name, lines in joined.items()}


def _summary(lines: Sequence[Line], generate: Sequence[Line], plain: Sequence[Line]) -> dict[str, float]:
    committed, rounds = sum(line.committed for line in lines), sum(line.rounds for line in lines)
    proposed, reasoning_s = sum(line.proposed for line in lines), sum(line.reasoning_s for line in lines)
    return {
        "tau": round(committed / rounds, 3) if rounds else 0.0,
        "tau_ceiling": round(committed / max(sum(line.fewest_rounds for line in lines), 1), 3),
        "rounds": round(rounds / len(lines), 3),
        "acceptance_rate": round(sum(line.accepted for line in lines) / proposed, 4) if proposed else 0.0,
        "foreseen": round(sum(line.foreseen for line in lines) / len(lines), 3),
        "identical": _share(line.identical for line in lines),
        "identical_generate": _share(line.identical_generate for line in lines),
        "reasoning_ms": round(reasoning_s / len(lines) * 1e3, 2),
        "draft_ms": round(sum(line.draft_s for line in lines) / len(lines) * 1e3, 2),
        "speedup": round(sum(line.reasoning_s for line in generate) / reasoning_s, 3),
        "speedup_plain": round(sum(line.reasoning_s for line in plain) / reasoning_s, 3),
    }


def _share(marks: Iterable[bool]) -> float:
    known = list(marks)
    return sum(known) / len(known) if known else 0.0


def table(result: dict[str, Any]) -> str:
    """The headline as text, then the mean acceptance lengths by split and precision."""
    head = ("tau", "ceiling", "rounds", "accepted", "identical", "as HF fp32", "reasoning", "speed")
    lines = [f"{result['split']}, {result['precision']}, {result['rationales']} rationales in all"]
    lines.append(f"{'':<24}" + "".join(f"{word:>11}" for word in head))
    for name, row in result["drafters"].items():
        exact = "" if row["identical_hf_fp32"] is None else f"{row['identical_hf_fp32']:.1%}"
        lines.append(
            f"{name:<24}{row['tau']:>11.2f}{row['tau_ceiling']:>11.2f}{row['rounds']:>11.2f}"
            f"{row['acceptance_rate']:>11.1%}{row['identical']:>11.1%}{exact:>11}"
            f"{row['reasoning_ms']:>8.1f} ms{row['speedup']:>10.2f}x"
        )
    columns = [(split, precision) for split, of in result["splits"].items() for precision in of]
    lines.append("\n" + f"{'tau':<24}" + "".join(f"{split + ' ' + precision:>20}" for split, precision in columns))
    for name in result["drafters"]:
        taus = [result["splits"][split][precision][name]["tau"] for split, precision in columns]
        lines.append(f"{name:<24}" + "".join(f"{tau:>20.2f}" for tau in taus))
    return "\n".join(lines)
