"""Writes a rationale: propose, verify, commit, again. Without proposals the same loop is plain greedy decoding.

Every pass of the target has one shape whatever is proposed: a block is filled up to a number of rows. So what the
target computes for a token, and with it the text, does not depend on the drafter (docs/architecture.md).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from flatrope_planner.domain import Rationale, RationaleToken, SpeculationStats
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import ROOT, Block, Candidates
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.target import DecodingState, Prompt, Target
from flatrope_planner.speculation.writing import TARGET_SOURCE, Choice, Writing

P = TypeVar("P", bound=Prompt)
S = TypeVar("S", bound=DecodingState)

MILLISECONDS_PER_SECOND = 1e3
# Rows of a pass come in multiples of this: matrix products then treat all rows alike.
ROW_STEP = 8


@dataclass(frozen=True)
class DecodedRationale(Generic[S]):
    """A rationale, and the state of the target behind it."""

    rationale: Rationale
    # What was written, end marks included.
    token_ids: tuple[int, ...]
    speculation: SpeculationStats
    # Committed up to and including the stop token.
    state: S
    # "prefill", "reasoning", and of the latter "draft" and "verify".
    stage_ms: dict[str, float]


@dataclass(frozen=True)
class _Verified:
    """What a pass settled."""

    # Rows of accepted candidates; row 0, the anchor, is always kept.
    rows: list[int]
    choices: list[Choice]
    # Whether the last token was read in this pass; otherwise it is the next anchor.
    last_is_read: bool


class Decoder(Generic[P, S]):
    """Joins a target and a drafter."""

    def __init__(
        self, target: Target[P, S], drafter: Drafter | None = None, width: int = 1, *, fixed_shape: bool = True
    ) -> None:
        """Without a drafter, nothing is proposed.

        Args:
            target: whose greedy text is written.
            drafter: who proposes.
            width: tokens of a block: the anchor and at most `width - 1` candidates.
            fixed_shape: fill blocks up; without, a pass is as small as what is proposed, and exact only up to rounding.

        Raises:
            InputError: when there is no room for the anchor.
        """
        if width < 1:
            msg = f"decoder: width {width}, expected at least 1"
            raise InputError(msg)
        self._target, self._width = target, width
        self._rows = -(-width // ROW_STEP) * ROW_STEP if fixed_shape else 1
        self._drafter: Drafter = drafter or NoDrafter()

    @torch.inference_mode()
    def decode(self, prompt: P) -> DecodedRationale[S]:
        """The target's greedy rationale for a prompt.

        Raises:
            InputError: when prompt and rationale do not fit into the target's cache.
        """
        clock = _Clock()
        writing = Writing()
        state, tapped = self._target.prefill(prompt)
        self._drafter.begin(prompt, tapped)
        # The first token, too, comes from a pass of the common shape; what it tells beyond that token is won.
        verified = self._round(state, prompt.token_ids[-1], writing, _Clock())
        prefill_s = clock.lap()
        complete = self._write(state, verified, writing, clock)
        stages_s = {"prefill": prefill_s, "reasoning": clock.passed_s - prefill_s}
        stages_s |= {"draft": clock.draft_s, "verify": clock.verify_s}
        return DecodedRationale(
            self._rationale(writing, complete),
            tuple(writing.tokens),
            writing.statistics(self._drafter.name),
            state,
            {stage: duration_s * MILLISECONDS_PER_SECOND for stage, duration_s in stages_s.items()},
        )

    def _write(self, state: S, verified: _Verified, writing: Writing, clock: "_Clock") -> bool:
        """Rounds until the stop token or the end of the budget; whether the target itself came to the end."""
        while True:
            if writing.tokens[-1] == self._target.stop_token:
                if not verified.last_is_read:
                    self._read(state, writing.tokens[-1:])
                return True
            if len(writing.tokens) >= self._target.token_budget:
                self._force_ending(state, writing)
                return False
            writing.round += 1
            verified = self._round(state, writing.tokens[-1], writing, clock)

    def _round(self, state: S, anchor: int, writing: Writing, clock: "_Clock") -> _Verified:
        """Propose, verify and commit once."""
        clock.lap()
        candidates = self._propose(writing)
        clock.draft_s += clock.lap()
        result = self._target.step(state, self._block(anchor, candidates))
        verified = self._verify(result.logits, candidates)
        clock.verify_s += clock.lap()
        self._target.commit(state, [0, *verified.rows])
        writing.add(verified.choices, len(candidates.tokens), len(verified.rows))
        tokens = [choice.token for choice in verified.choices]
        self._drafter.observe(tokens, result.tapped[:, [0, *verified.rows]])
        clock.draft_s += clock.lap()
        return verified

    def _propose(self, writing: Writing) -> Candidates:
        # One token of the budget is the target's own.
        depth = max(self._target.token_budget - len(writing.tokens) - 1, 0)
        nodes = self._width - 1
        if not nodes or not depth:
            return Candidates()
        return self._drafter.propose(nodes, depth).pruned(nodes, depth, self._target.forbidden)

    def _block(self, anchor: int, candidates: Candidates) -> Block:
        block = Block.of(anchor, candidates)
        return block.padded(max(self._rows, len(block.tokens)))

    def _verify(self, logits: Tensor, candidates: Candidates) -> _Verified:
        """Follow the target's choices through the candidates for as long as these hold them.

        Args:
            logits: (width, vocabulary) behind the anchor and each candidate.
            candidates: the tokens behind the anchor.
        """
        best, chosen = logits.masked_fill(self._target.forbidden, -torch.inf).float().topk(2, dim=-1)
        token_of, margin_of = chosen[:, 0].tolist(), (best[:, 0] - best[:, 1]).tolist()
        children = {(p, t): i for i, (p, t) in enumerate(zip(candidates.parents, candidates.tokens, strict=True))}
        rows, choices = list[int](), list[Choice]()
        at = ROOT
        while True:
            token = token_of[at + 1]
            found = children.get((at, token))
            source = TARGET_SOURCE if found is None else candidates.sources[found]
            choices.append(Choice(token, source, margin_of[at + 1]))
            if found is None:
                return _Verified(rows, choices, last_is_read=False)
            rows.append(found + 1)
            if token == self._target.stop_token:
                return _Verified(rows, choices, last_is_read=True)
            at = found

    def _force_ending(self, state: S, writing: Writing) -> None:
        """Append the end marks that are missing, unasked."""
        ending = self._target.ending
        missing = ending[1:] if writing.tokens[-1] == ending[0] else ending
        self._read(state, [writing.tokens[-1], *missing])
        writing.append([Choice(token, TARGET_SOURCE, 0.0) for token in missing])

    def _read(self, state: S, tokens: Sequence[int]) -> None:
        """Commit tokens that are already decided."""
        for start in range(0, len(tokens), self._rows):
            part = tokens[start : start + self._rows]
            self._target.step(state, self._block(part[0], Candidates.chain(part[1:], TARGET_SOURCE)))
            self._target.commit(state, range(len(part)))

    def _rationale(self, writing: Writing, complete: bool) -> Rationale:
        tokens = tuple(
            RationaleToken(self._target.token_text(choice.token), choice.source, number, choice.margin)
            for choice, number in writing.written
        )
        return Rationale(self._target.text(writing.tokens), tokens, complete)


class _Clock:
    """Time since its creation, and in laps."""

    def __init__(self) -> None:
        self._began_s = self._lap_s = time.perf_counter()
        self.draft_s = self.verify_s = 0.0

    def lap(self) -> float:
        """Seconds since the last lap."""
        now_s = time.perf_counter()
        passed_s, self._lap_s = now_s - self._lap_s, now_s
        return passed_s

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began_s
