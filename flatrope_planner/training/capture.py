"""Traces of a target: its own greedy texts, end marks included, and its hidden states while it writes them."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.target import DecodingState, Prompt, Target
from flatrope_planner.training.traces import Trace

# Tokens whose probabilities are noted at each place.
LIKELIEST = 8

P = TypeVar("P", bound=Prompt)
S = TypeVar("S", bound=DecodingState)


def trace_of(target: Target[P, S], prompt: P, text: tuple[int, ...]) -> Trace:
    """What goes on in a target that writes `text`, end marks included, behind a prompt."""
    _, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates.chain(text[:-1], "")))
    likeliest = (
        read.block.logits.masked_fill(target.forbidden, -torch.inf).float().log_softmax(-1).topk(LIKELIEST, dim=-1)
    )
    count = len(prompt.token_ids)
    behind = torch.arange(count, count + len(text)).expand(3, -1) + prompt.rope_delta
    return Trace(
        tokens=torch.tensor([*prompt.token_ids, *text]),
        prompt=count,
        positions=torch.cat([prompt.rotary_positions(), behind], dim=1),
        # A drive has many: those of a target on a GPU do not stay there.
        tapped=torch.cat([read.tapped, read.block.tapped], dim=1).cpu(),
        pinned=torch.tensor(list(prompt.pinned)),
        likeliest=likeliest.indices.cpu(),
        log_probability=likeliest.values.cpu(),
    )


def capture(target: Target[P, S], prompts: Iterable[P]) -> Iterator[Trace]:
    """Write behind each prompt, greedily and without a draft."""
    decoder = Decoder(target)
    for prompt in prompts:
        yield trace_of(target, prompt, own_tokens(decoder.decode(prompt), target.token_budget))


def own_tokens(decoded: DecodedRationale[S], token_budget: int) -> tuple[int, ...]:
    """What the target itself has written: not the end marks that a spent budget has forced."""
    return decoded.token_ids if decoded.rationale.complete else decoded.token_ids[:token_budget]
