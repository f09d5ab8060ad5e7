"""Teaches Medusa heads what stands how many places ahead."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.medusa import MedusaHeads
from flatrope_planner.training.draft_scoring import DraftLoss, DraftScore, Truth, score_guesses
from flatrope_planner.training.objective import IGNORED
from flatrope_planner.training.traces import Trace


@dataclass(frozen=True)
class MedusaBatch:
    """All places of some texts."""

    # float (N, hidden): states that led to a token.
    states: Tensor
    # Of the tokens behind it, (N, heads).
    truth: Truth


class MedusaLearner:
    """Medusa heads and the parts of the target that they borrow."""

    def __init__(self, heads: MedusaHeads, parts: BorrowedParts) -> None:
        """Teach `heads`."""
        self.network = heads
        self._parts = parts

    def batch(self, traces: Sequence[Trace], rng: np.random.Generator) -> MedusaBatch:
        """All places of each text."""
        del rng
        rows = [self._row(trace) for trace in traces]
        states, labels, likeliest, log_probability = (torch.cat(part) for part in zip(*rows, strict=True))
        return MedusaBatch(states, Truth(labels, likeliest, log_probability))

    def disturbed(self, trace: Trace, rng: np.random.Generator) -> Trace:
        """The text as it is."""
        del rng
        return trace

    def score(self, batch: MedusaBatch, kind: DraftLoss) -> DraftScore:
        """How well the heads guess."""
        return score_guesses(self._parts.logits(self._parts.normed(self.network(batch.states))), batch.truth, kind)

    def _row(self, trace: Trace) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        tokens, prompt = trace.tokens.long(), trace.prompt
        last = len(tokens) - 1
        # The state of token i has led to token i + 1; head k guesses token i + 2 + k.
        index = torch.arange(prompt - 1, last)
        answer = index[:, None] + 2 + torch.arange(self.network.config.heads)
        within = (answer - prompt).clamp(max=last - prompt)
        labels = tokens[answer.clamp(max=last)].masked_fill(answer > last, IGNORED)
        return trace.tapped[-1, index].float(), labels, trace.likeliest.long()[within], trace.log_probability[within]
