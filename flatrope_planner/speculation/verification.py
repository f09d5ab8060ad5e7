"""The verification step: which candidates are the target's own choices."""

from dataclasses import dataclass

import torch
from torch import Tensor

from flatrope_planner.speculation.candidates import ROOT, Candidates
from flatrope_planner.speculation.writing import TARGET_SOURCE, Choice


@dataclass(frozen=True)
class Verified:
    """What a pass settled."""

    # Rows of accepted candidates; row 0, the anchor, is always kept.
    rows: list[int]
    # Tokens behind the anchor: the accepted ones, then the bonus, which has not been read yet.
    choices: list[Choice]
    # Whether the last token was read in this pass; otherwise it is the next anchor.
    last_is_read: bool

    @property
    def tokens(self) -> list[int]:
        """Tokens behind the anchor."""
        return [choice.token for choice in self.choices]

    @property
    def read_rows(self) -> list[int]:
        """The row behind which each of these tokens was chosen."""
        return [0, *self.rows][: len(self.choices)]


def verify(
    logits: Tensor,
    candidates: Candidates,
    forbidden: Tensor,
    stop_token: int,
    eos_tokens: frozenset[int] = frozenset(),
) -> Verified:
    """Follow the target's greedy choices through the candidates for as long as these hold them.

    Args:
        logits: (rows, vocabulary) behind the anchor and each candidate; rows that fill the block up may follow.
        candidates: the tokens behind the anchor.
        forbidden: bool (vocabulary,): tokens that are never chosen.
        stop_token: nothing is accepted behind it.
        eos_tokens: other tokens that end a text; they stay unread, so none is accepted.
    """
    best, chosen = logits.masked_fill(forbidden, -torch.inf).float().topk(2, dim=-1)
    token_of, margin_of = chosen[:, 0].tolist(), (best[:, 0] - best[:, 1]).tolist()
    children = {(p, t): i for i, (p, t) in enumerate(zip(candidates.parents, candidates.tokens, strict=True))}
    rows, choices = list[int](), list[Choice]()
    at = ROOT
    while True:
        token = token_of[at + 1]
        found = None if token in eos_tokens else children.get((at, token))
        source = TARGET_SOURCE if found is None else candidates.sources[found]
        choices.append(Choice(token, source, margin_of[at + 1]))
        if found is None:
            return Verified(rows, choices, last_is_read=False)
        rows.append(found + 1)
        if token == stop_token:
            return Verified(rows, choices, last_is_read=True)
        at = found
