"""The promise: what is proposed never changes a bit of what the target computes, chain or tree, in any precision."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from tiny_nano import noise_observation, tiny_model, tiny_tokenizer

from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget

PRECISIONS = (torch.float32, torch.bfloat16)
SEEDS = range(2)


def guessing(
    text: Sequence[int], target: NanoTarget, right: float, branches: int = 1, seed: int = 0
) -> RehearsedDrafter:
    return RehearsedDrafter(text, len(target.forbidden), Rehearsal(right, branches, seed))


def bits(decoded: DecodedRationale[NanoState]) -> tuple[tuple[int, ...], list[float], list[bytes]]:
    """Tokens, margins, and the keys and values behind them."""
    keys, values = decoded.state.cache.committed()
    stored = [part.view(torch.int16).numpy().tobytes() for part in (*keys, *values)]
    return decoded.token_ids, [token.margin for token in decoded.rationale.tokens], stored


@pytest.fixture(scope="module", params=PRECISIONS, ids=str)
def target(request: pytest.FixtureRequest) -> NanoTarget:
    return NanoTarget(tiny_model().to(request.param), tiny_tokenizer(), tapped_layers=(0, 2))


@cache
def alone(target: NanoTarget, width: int, seed: int) -> tuple[NanoPrompt, DecodedRationale[NanoState]]:
    """What a target writes alone."""
    prompt = target.prepare(noise_observation(seed))
    return prompt, Decoder(target, None, width).decode(prompt)


@pytest.mark.parametrize(("right", "branches"), [(1.0, 1), (0.0, 1), (0.7, 1), (0.8, 3), (0.5, 2)])
@pytest.mark.parametrize("width", [3, 8, 16, 33])
def test_speculation_changes_no_bit(target: NanoTarget, right: float, branches: int, width: int) -> None:
    for seed in SEEDS:
        prompt, plain = alone(target, width, seed)
        guesser = guessing(plain.token_ids, target, right, branches, seed)
        guessed = Decoder(target, guesser, width).decode(prompt)
        assert bits(guessed) == bits(plain)
        if right == 1.0:
            assert guessed.speculation.rounds <= len(plain.token_ids) // width + 1
        if right == 0.0 and branches == 1:
            assert guessed.speculation.accepted <= 2


def test_the_stop_token_ends_a_rationale_at_any_place_of_a_block(target: NanoTarget) -> None:
    prompt = target.prepare(noise_observation(1))
    plain = Decoder(target, None, 8).decode(prompt)
    stop = plain.token_ids[5]
    target.stop_token, before = stop, target.stop_token
    try:
        ends = plain.token_ids.index(stop) + 1
        for start in range(ends):
            text = [*plain.token_ids[:ends], 1, 2, 3]
            late = guessing([0] * start + text[start:], target, 1.0)
            assert Decoder(target, late, 8).decode(prompt).token_ids == plain.token_ids[:ends]
    finally:
        target.stop_token = before


@pytest.mark.parametrize("budget", [1, 2, 7, 8, 9, 16])
def test_the_budget_ends_a_rationale_whatever_is_proposed(target: NanoTarget, budget: int) -> None:
    prompt = target.prepare(noise_observation(2))
    whole = Decoder(target, None, 8).decode(prompt).token_ids
    target.token_budget = budget
    try:
        plain = Decoder(target, None, 8).decode(prompt)
        for right in (1.0, 0.6):
            guesser = guessing(whole, target, right, 2, 3)
            assert bits(Decoder(target, guesser, 8).decode(prompt)) == bits(plain)
        assert plain.token_ids == (*whole[:budget], *target.ending)
    finally:
        del target.token_budget


def test_forbidden_tokens_are_neither_proposed_nor_written(target: NanoTarget) -> None:
    prompt = target.prepare(noise_observation(3))
    history = tiny_tokenizer().history_ids
    guesser = guessing([history.start] * 80, target, 1.0)
    decoded = Decoder(target, guesser, 8).decode(prompt)
    assert decoded.speculation.proposed == 0
    assert not set(decoded.token_ids) & set(history)
