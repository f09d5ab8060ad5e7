"""Writes a rationale: propose, verify, commit, again. Without proposals the same loop is plain greedy decoding.

Every pass of the target has one shape whatever is proposed: a block is filled up to a number of rows. So what the
target computes for a token, and with it the text, does not depend on the drafter (docs/architecture.md).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from flatrope_planner.domain import Rationale, RationaleToken, SpeculationStats
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.opening import Opening
from flatrope_planner.speculation.sampler import Sampler
from flatrope_planner.speculation.sampling import Sampling
from flatrope_planner.speculation.slots import MAX_WIDTH
from flatrope_planner.speculation.target import DecodingState, Prompt, StepResult, Target
from flatrope_planner.speculation.verification import Verified, verify
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
    # Committed up to and including the stop token; without the last token where it is to stay unread.
    state: S
    # "prefill"; "reasoning", from the first token to the last, and of it "draft" and "verify"; "handover": reading what
    # of the end marks no round has read, for whoever goes on from the state.
    stage_ms: dict[str, float]


class Decoder(Generic[P, S]):
    """Joins a target and a drafter."""

    def __init__(
        self,
        target: Target[P, S],
        drafter: Drafter | None = None,
        width: int = 1,
        *,
        fixed_shape: bool = True,
        sampling: Sampling | None = None,
    ) -> None:
        """Without a drafter, nothing is proposed.

        Args:
            target: whose greedy text is written.
            drafter: who proposes.
            width: tokens of a block: the anchor and at most `width - 1` candidates.
            sampling: how a text is drawn; None: it is the greedy one.
            fixed_shape: fill blocks up; without, a pass is as small as what is proposed, and exact only up to rounding.

        Raises:
            InputError: when there is no room for the anchor, or more than a cache has.
        """
        if not 1 <= width <= MAX_WIDTH:
            msg = f"decoder: width {width}, expected 1 to {MAX_WIDTH}"
            raise InputError(msg)
        self._target, self._width, self._sampling = target, width, sampling
        self._sampler: Sampler | None = None
        self._rows = -(-width // ROW_STEP) * ROW_STEP if fixed_shape else 1
        self._drafter: Drafter = drafter or NoDrafter()

    @torch.inference_mode()
    def decode(self, prompt: P, sampling: Sampling | None = None) -> DecodedRationale[S]:
        """The target's rationale for a prompt: the greedy one, or the one that sampling draws with its seed.

        Args:
            prompt: what is asked.
            sampling: in place of the decoder's own.

        Raises:
            InputError: when prompt and rationale do not fit into the target's cache.
        """
        clock = _Clock()
        writing = Writing()
        drawing = sampling or self._sampling
        self._sampler = None if drawing is None else Sampler(drawing)
        state, opening = self._open(prompt, writing)
        prefill_s = clock.lap()
        last_is_read = self._write(state, opening, writing, clock)
        written_s = clock.passed_s
        complete = writing.tokens[-1] == self._target.stop_token
        if not last_is_read:
            state.unread = self._finish(state, writing, complete=complete)
        stages_s = {"prefill": prefill_s, "reasoning": written_s - prefill_s, "handover": clock.passed_s - written_s}
        stages_s |= {"draft": clock.draft_s, "verify": clock.verify_s}
        return DecodedRationale(
            self._rationale(writing, complete),
            tuple(writing.tokens),
            writing.statistics(self._drafter.name),
            state,
            {stage: duration_s * MILLISECONDS_PER_SECOND for stage, duration_s in stages_s.items()},
        )

    def _open(self, prompt: P, writing: Writing) -> tuple[S, Opening[P]]:
        """Read the prompt, and with it what its text may begin with."""
        nodes, depth = self._room(writing)
        candidates = self._drafter.anticipate(prompt, nodes, depth).pruned(nodes, depth, self._target.forbidden)
        state, read = self._target.prefill(prompt, self._block(prompt.token_ids[-1], candidates))
        opening = Opening(prompt, read, self._verify(read.block, candidates, writing))
        writing.add(opening.verified.choices[:1], len(candidates.tokens), len(opening.verified.rows))
        opening.show(self._drafter)
        return state, opening

    def _write(self, state: S, opening: Opening[P], writing: Writing, clock: "_Clock") -> bool:
        """Rounds until a token that ends the text or the end of the budget; whether the last token has been read."""
        last_is_read = False
        ends = {self._target.stop_token, *self._target.eos_tokens}
        while writing.tokens[-1] not in ends and len(writing.tokens) < self._target.token_budget:
            writing.round += 1
            last_is_read = self._round(state, opening, writing, clock)
        return last_is_read

    def _round(self, state: S, opening: Opening[P], writing: Writing, clock: "_Clock") -> bool:
        """Propose, verify and commit once; whether the last token of the text has been read."""
        clock.lap()
        candidates = self._propose(opening.foreseen if writing.round == 1 else Candidates(), writing)
        clock.draft_s += clock.lap()
        result = self._target.step(state, self._block(writing.tokens[-1], candidates))
        verified = self._verify(result, candidates, writing)
        clock.verify_s += clock.lap()
        self._target.commit(state, [0, *verified.rows])
        writing.add(verified.choices, len(candidates.tokens), len(verified.rows))
        if writing.round == 1:
            opening.show_next(self._drafter, verified, result)
        else:
            self._drafter.observe(verified.tokens, result.tapped[:, verified.read_rows])
        clock.draft_s += clock.lap()
        return verified.last_is_read

    def _room(self, writing: Writing) -> tuple[int, int]:
        """How many candidates the next block takes, and how deep: one token of the budget is the target's own."""
        return self._width - 1, max(self._target.token_budget - len(writing.tokens) - 1, 0)

    def _propose(self, foreseen: Candidates, writing: Writing) -> Candidates:
        nodes, depth = self._room(writing)
        candidates = foreseen.pruned(nodes, depth, self._target.forbidden)
        known = len(candidates.tokens)
        if known < min(nodes, depth) and self._target.stop_token not in candidates.tokens:
            candidates = candidates.followed_by(self._drafter.propose(nodes - known, depth - known))
        return candidates.pruned(nodes, depth, self._target.forbidden)

    def _block(self, anchor: int, candidates: Candidates) -> Block:
        block = Block.of(anchor, candidates)
        return block.padded(max(self._rows, len(block.tokens)))

    def _verify(self, result: StepResult, candidates: Candidates, writing: Writing) -> Verified:
        scores = result.logits
        if self._sampler is not None:
            rows = 1 + len(candidates.tokens)
            places = [len(writing.tokens) + int(depth) for depth in Block.of(0, candidates).offsets]
            scores = self._sampler.scores(scores[:rows].masked_fill(self._target.forbidden, -torch.inf), places)
        target = self._target
        return verify(scores, candidates, target.forbidden, target.stop_token, target.eos_tokens)

    def _finish(self, state: S, writing: Writing, *, complete: bool) -> int:
        """Read what no round has read of the text's end; how many tokens stay unread."""
        appends = bool(self._target.ending)
        # Where nothing is appended, the last token that a budget allows is not read either, whatever it is.
        if not appends and (not complete or len(writing.tokens) == self._target.token_budget):
            return 1
        self._read(state, [writing.tokens[-1], *([] if complete else self._force_ending(writing))])
        return 0

    def _force_ending(self, writing: Writing) -> tuple[int, ...]:
        """Append the end marks that are missing, unasked; these."""
        ending = self._target.ending
        missing = ending[1:] if writing.tokens[-1] == ending[0] else ending
        writing.force([Choice(token, TARGET_SOURCE, 0.0) for token in missing])
        return missing

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
