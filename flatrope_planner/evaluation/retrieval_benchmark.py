"""How far retrieval alone drafts recorded rationales: whole clips left out, a clip's earlier texts are the drive.

A text's first token is given. tau is the committed tokens behind it, end token and bonus tokens included, over rounds.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.clip_texts import Clip, read_clips
from flatrope_planner.progress import with_progress
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.candidates import ROOT, Candidates
from flatrope_planner.speculation.context_counts import ContextCounts
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.speculation.retrieval_drafter import RetrievalDrafter
from flatrope_planner.workers import run_in_workers

FOLDS = 10
DEPTH = 16
SHAPES = {"chain16": (Shape.CHAIN, 16), "tree32": (Shape.TREE, 32), "tree64": (Shape.TREE, 64)}
# Shape in which corpus and drive are tried alone.
ABLATED = "tree32"
CORPUS_ONLY, DRIVE_ONLY = "corpus_only", "drive_only"


@dataclass(frozen=True)
class NoPrompt:
    """A request of which nothing but the text is known."""

    token_ids: Sequence[int] = ()
    pinned: Sequence[int] = ()
    rope_delta: int = 0

    def rotary_positions(self) -> torch.Tensor:
        """No positions."""
        return torch.zeros(3, 0)


@dataclass(frozen=True)
class Tally:
    """Rounds of some texts."""

    # Committed tokens behind the first.
    committed: int = 0
    rounds: int = 0
    # Time spent on proposing, by the clock; processor time of it and of learning the texts.
    passed_s: float = 0.0
    processor_s: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        passed_s, processor_s = self.passed_s + other.passed_s, self.processor_s + other.processor_s
        return Tally(self.committed + other.committed, self.rounds + other.rounds, passed_s, processor_s)

    @property
    def tau(self) -> float:
        """Mean acceptance length."""
        return round(self.committed / self.rounds, 4) if self.rounds else 0.0

    @property
    def proposal_ms(self) -> float:
        """Time to propose once, by the clock."""
        return round(self.passed_s / self.rounds * 1e3, 3) if self.rounds else 0.0

    @property
    def proposal_processor_ms(self) -> float:
        """Processor time of a proposal, learning the texts included."""
        return round(self.processor_s / self.rounds * 1e3, 3) if self.rounds else 0.0


def run_retrieval_benchmark(corpus: Path, jobs: int) -> dict[str, Any]:
    """Draft every clip's texts with the clips of the other folds as the corpus.

    Raises:
        InputError: when the file is broken or has too few clips.
    """
    clips = read_clips(corpus)
    texts = [text for clip in clips for text in clip.texts]
    if len(clips) < 2 or not texts:
        msg = f"{corpus}: {len(clips)} clips with {len(texts)} texts, expected at least 2 clips and some text"
        raise InputError(msg)
    folds = min(FOLDS, len(clips))
    # Clips of a fold one after the other: a worker counts each fold's corpus once.
    tasks = [clip for fold in range(folds) for clip in range(fold, len(clips), folds)]
    done = dict(with_progress(run_in_workers(partial(_draft_clip, corpus), tasks, jobs), len(tasks), "clips"))
    tallies = [done[clip] for clip in range(len(clips))]
    return {
        **_scores(tallies),
        "halves": [_half(tallies, [clip.half == half for clip in clips]) for half in (0, 1)],
        "folds": _spread(tallies, folds),
        "ablation": {name: _total(tallies, name).tau for name in (CORPUS_ONLY, DRIVE_ONLY)},
        "mean_tokens": round(float(np.mean([len(text) for text in texts])), 3),
        "texts": len(texts),
        "clips": len(clips),
        "depth": DEPTH,
    }


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{'':<20}{'tau':>7}{'rounds':>9}{'a proposal':>13}{'processor':>13}{'halves':>15}{'folds':>16}"]
    for name, tau in result["tau"].items():
        fold, halves = result["folds"][name], [half["tau"][name] for half in result["halves"]]
        lines.append(
            f"{name:<20}{tau:>7.2f}{result['rounds'][name]:>9}{result['proposal_ms'][name]:>10.2f} ms"
            f"{result['proposal_processor_ms'][name]:>10.2f} ms{halves[0]:>8.2f}, {halves[1]:.2f}"
            f"{fold['least']:>9.2f} - {fold['most']:.2f}"
        )
    lines += [f"{f'{ABLATED}, {name}':<20}{tau:>7.2f}" for name, tau in result["ablation"].items()]
    lines.append(f"\n{result['texts']} texts of {result['clips']} clips, {result['mean_tokens']:.1f} tokens each")
    return "\n".join(lines)


def draft_texts(drafter: RetrievalDrafter, texts: Sequence[Sequence[int]], nodes: int, depth: int) -> Tally:
    """Write texts one after the other, as one drive; the target's text is known."""
    tally = Tally()
    # Asking for processor time may take as long as a proposal: once for all.
    began_s = time.process_time()
    for text in texts:
        # What a text begins with is given: nothing is to be proposed before.
        drafter.anticipate(NoPrompt(), 0, depth)
        drafter.begin(NoPrompt(), _nothing_tapped())
        tally += _draft_text(drafter, text, nodes, depth)
    return tally + Tally(processor_s=time.process_time() - began_s)


def _draft_text(drafter: RetrievalDrafter, text: Sequence[int], nodes: int, depth: int) -> Tally:
    drafter.observe(text[:1], _nothing_tapped())
    written, rounds, passed_s = 1, 0, 0.0
    while written < len(text):
        began_s = time.perf_counter()
        candidates = drafter.propose(nodes, depth)
        passed_s += time.perf_counter() - began_s
        # One token more than is accepted: the target's own.
        ahead = text[written : written + accepted(candidates, text[written:]) + 1]
        drafter.observe(ahead, _nothing_tapped())
        written, rounds = written + len(ahead), rounds + 1
    return Tally(len(text) - 1, rounds, passed_s)


def accepted(candidates: Candidates, text: Sequence[int]) -> int:
    """How many of a text's next tokens stand in a tree."""
    children = {(p, t): i for i, (p, t) in enumerate(zip(candidates.parents, candidates.tokens, strict=True))}
    at = ROOT
    for count, token in enumerate(text):
        found = children.get((at, token))
        if found is None:
            return count
        at = found
    return len(text)


def _draft_clip(path: Path, clip: int) -> dict[str, Tally]:
    texts, counts = _clips(path)[clip].texts, _counts_without(path, clip % min(FOLDS, len(_clips(path))))
    tallies = {}
    for name, (shape, nodes) in SHAPES.items():
        tallies[name] = draft_texts(RetrievalDrafter(counts, shape), texts, nodes, DEPTH)
    shape, nodes = SHAPES[ABLATED]
    alone = (draft_texts(RetrievalDrafter(counts, shape), [text], nodes, DEPTH) for text in texts)
    tallies[CORPUS_ONLY] = sum(alone, Tally())
    nothing = RationaleCorpus().context_counts()
    tallies[DRIVE_ONLY] = draft_texts(RetrievalDrafter(nothing, shape), texts, nodes, DEPTH)
    return tallies


@lru_cache(maxsize=1)
def _clips(path: Path) -> list[Clip]:
    return read_clips(path)


@lru_cache(maxsize=1)
def _counts_without(path: Path, fold: int) -> ContextCounts:
    clips = _clips(path)
    others = [clip for number, clip in enumerate(clips) if number % min(FOLDS, len(clips)) != fold]
    return RationaleCorpus.of(text for clip in others for text in clip.texts).context_counts()


def _scores(tallies: Sequence[dict[str, Tally]]) -> dict[str, Any]:
    totals = {name: _total(tallies, name) for name in SHAPES}
    return {
        "tau": {name: total.tau for name, total in totals.items()},
        "rounds": {name: total.rounds for name, total in totals.items()},
        "proposal_ms": {name: total.proposal_ms for name, total in totals.items()},
        "proposal_processor_ms": {name: total.proposal_processor_ms for name, total in totals.items()},
    }


def _half(tallies: Sequence[dict[str, Tally]], chosen: Sequence[bool]) -> dict[str, Any]:
    of_half = [each for each, belongs in zip(tallies, chosen, strict=True) if belongs]
    return {"clips": len(of_half), "tau": {name: _total(of_half, name).tau for name in SHAPES}}


def _spread(tallies: Sequence[dict[str, Tally]], folds: int) -> dict[str, Any]:
    spread = {}
    for name in SHAPES:
        taus = [_total(tallies[fold::folds], name).tau for fold in range(folds)]
        deviation = round(float(np.std(taus)), 4)
        spread[name] = {"tau": taus, "least": min(taus), "most": max(taus), "standard_deviation": deviation}
    return spread


def _total(tallies: Sequence[dict[str, Tally]], name: str) -> Tally:
    return sum((each[name] for each in tallies), Tally())


def _nothing_tapped() -> torch.Tensor:
    return torch.zeros(0, 0, 0)
