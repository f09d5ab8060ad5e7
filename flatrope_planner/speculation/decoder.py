"""Writes a rationale: propose, verify, commit, again. Without proposals the same loop is plain greedy decoding."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor

from flatrope_planner.domain import Rationale, RationaleToken, SpeculationStats
from flatrope_planner.speculation.candidates import ROOT, Block, Candidates
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.target import DecodingState, Prompt, StepResult, Target

P = TypeVar("P", bound=Prompt)
S = TypeVar("S", bound=DecodingState)

TARGET_SOURCE = "target"
MILLISECONDS_PER_SECOND = 1e3


@dataclass(frozen=True)
class DecodedRationale(Generic[S]):
    """A rationale, and the state of the target behind it."""

    rationale: Rationale
    # What was written, end marks included.
    token_ids: tuple[int, ...]
    speculation: SpeculationStats
    # Committed up to and including the stop token: ready for `Target.act`.
    state: S
    # "prefill" and "reasoning".
    stage_ms: dict[str, float]


@dataclass
class _Draft:
    """A rationale in the making."""

    tokens: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    proposed: int = 0
    accepted: int = 0
    # Verification passes after the prefill.
    round: int = 0

    def add(self, token: int, source: str, margin: float) -> None:
        self.tokens.append(token)
        self.sources.append(source)
        self.rounds.append(self.round)
        self.margins.append(margin)


@dataclass(frozen=True)
class _Verified:
    """What a pass settled: rows of the block to keep, and the tokens chosen behind them."""

    # Rows of accepted candidates; row 0, the anchor, is always kept.
    rows: list[int]
    tokens: list[int]
    sources: list[str]
    margins: list[float]
    # Whether the last token was read in this pass; otherwise it is the next anchor.
    last_is_read: bool


class Decoder(Generic[P, S]):
    """Joins a target and a drafter."""

    def __init__(self, target: Target[P, S], drafter: Drafter | None = None) -> None:
        """Without a drafter, nothing is proposed."""
        self._target = target
        self._drafter: Drafter = drafter or NoDrafter()

    @torch.inference_mode()
    def decode(self, prompt: P) -> DecodedRationale[S]:
        """The target's greedy rationale for a prompt.

        Raises:
            InputError: when prompt and rationale do not fit into the target's cache.
        """
        started_s = time.perf_counter()
        draft = _Draft()
        self._drafter.begin(prompt.token_ids)
        candidates = self._propose(draft)
        state, result = self._target.prefill(prompt, candidates)
        prefilled_s = time.perf_counter()
        complete = self._write(state, result, candidates, draft)
        finished_s = time.perf_counter()
        stages = {
            "prefill": (prefilled_s - started_s) * MILLISECONDS_PER_SECOND,
            "reasoning": (finished_s - prefilled_s) * MILLISECONDS_PER_SECOND,
        }
        rationale = self._rationale(draft, complete)
        return DecodedRationale(rationale, tuple(draft.tokens), _statistics(draft), state, stages)

    def _write(self, state: S, result: StepResult, candidates: Candidates, draft: _Draft) -> bool:
        """Rounds until the stop token or the end of the budget; whether the target itself came to the end."""
        while True:
            verified = self._verify(result.logits, candidates)
            self._settle(state, result, verified, draft)
            if draft.tokens[-1] == self._target.stop_token:
                if not verified.last_is_read:
                    self._read(state, draft.tokens[-1:])
                return True
            if len(draft.tokens) >= self._target.token_budget:
                self._force_ending(state, draft)
                return False
            candidates = self._propose(draft)
            draft.round += 1
            result = self._target.step(state, Block.of(draft.tokens[-1], candidates))

    def _propose(self, draft: _Draft) -> Candidates:
        # One token of the budget is the target's own.
        candidates = self._drafter.propose(max(self._target.token_budget - len(draft.tokens) - 1, 0))
        draft.proposed += len(candidates.tokens)
        return candidates

    def _verify(self, logits: Tensor, candidates: Candidates) -> _Verified:
        """Follow the target's choices through the candidates for as long as these hold them.

        Args:
            logits: (n, vocabulary) behind the anchor and each candidate.
            candidates: the n - 1 tokens behind the anchor.
        """
        best, choice = logits.masked_fill(self._target.forbidden, -torch.inf).float().topk(2, dim=-1)
        children = {(p, t): i for i, (p, t) in enumerate(zip(candidates.parents, candidates.tokens, strict=True))}
        rows, tokens, sources, margins = list[int](), list[int](), list[str](), list[float]()
        at = ROOT
        while True:
            token = int(choice[at + 1, 0])
            tokens.append(token)
            margins.append(float(best[at + 1, 0] - best[at + 1, 1]))
            found = children.get((at, token))
            sources.append(TARGET_SOURCE if found is None else candidates.sources[found])
            if found is None:
                return _Verified(rows, tokens, sources, margins, last_is_read=False)
            rows.append(found + 1)
            if token == self._target.stop_token:
                return _Verified(rows, tokens, sources, margins, last_is_read=True)
            at = found

    def _settle(self, state: S, result: StepResult, verified: _Verified, draft: _Draft) -> None:
        """Commit what a pass settled and show it to the drafter."""
        self._target.commit(state, [0, *verified.rows])
        draft.accepted += len(verified.rows)
        for token, source, margin in zip(verified.tokens, verified.sources, verified.margins, strict=True):
            draft.add(token, source, margin)
        first = result.tapped.shape[1] - len(result.logits)
        read = [*range(first + 1), *(first + row for row in verified.rows)]
        self._drafter.observe(verified.tokens, result.tapped[:, read])

    def _force_ending(self, state: S, draft: _Draft) -> None:
        """Append the end marks that are missing, unasked."""
        ending = self._target.ending
        missing = ending[1:] if draft.tokens[-1] == ending[0] else ending
        self._read(state, [draft.tokens[-1], *missing])
        for token in missing:
            draft.add(token, TARGET_SOURCE, 0.0)

    def _read(self, state: S, tokens: Sequence[int]) -> None:
        """Commit tokens that are already decided."""
        self._target.step(state, Block.of(tokens[0], Candidates.chain(tokens[1:], TARGET_SOURCE)))
        self._target.commit(state, range(len(tokens)))

    def _rationale(self, draft: _Draft, complete: bool) -> Rationale:
        rows = zip(draft.tokens, draft.sources, draft.rounds, draft.margins, strict=True)
        tokens = tuple(RationaleToken(self._target.token_text(t), source, n, margin) for t, source, n, margin in rows)
        return Rationale(self._target.text(draft.tokens), tokens, complete)


def _statistics(draft: _Draft) -> SpeculationStats:
    return SpeculationStats(draft.round, draft.proposed, draft.accepted, committed=len(draft.tokens) - 1)
