"""Speculation changes no bit of what an Alpamayo writes, in either precision and whoever proposes."""

from collections.abc import Callable

import pytest
import torch
from tiny_alpamayo import CASES, observation, write_checkpoint

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.domain import Observation
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.drafter import Drafter
from flatrope_planner.speculation.exactness import self_test
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.request import VlaState
from flatrope_planner.vla.target import Running

# Texts of 24 tokens, where the budget ends one, and of 18.
MOMENTS = [observation(CASES[name]) for name in ("standing", "fast")]
Text = tuple[int, ...]


def rehearsed(right: float, branches: int) -> Callable[[Text, int], Drafter]:
    return lambda text, vocabulary: RehearsedDrafter(text, vocabulary, Rehearsal(right, branches, 1))


PROPOSERS: dict[str, Callable[[Text, int], Drafter]] = {
    "oracle": rehearsed(1.0, 1),
    "always wrong": rehearsed(0.0, 1),
    "random chain": rehearsed(0.7, 1),
    "random tree": rehearsed(0.6, 3),
    "prompt lookup": lambda *_: PromptLookupDrafter(),
}


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=str)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AlpamayoTarget:
    checkpoint = write_checkpoint(tmp_path_factory.mktemp("alpamayo"))
    loaded = AlpamayoTarget.load(checkpoint, (1, 3), Running(CAMERA_NAMES, request.param, "cpu"))
    loaded.token_budget = 24
    return loaded


def bits(decoded: DecodedRationale[VlaState]) -> tuple[Text, list[float], list[bytes]]:
    """Tokens, margins, and the keys and values behind them."""
    keys, values = decoded.state.cache.committed()
    stored = [part.view(torch.int16).numpy().tobytes() for part in (*keys, *values)]
    return decoded.token_ids, [token.margin for token in decoded.rationale.tokens], stored


@pytest.mark.parametrize("moment", MOMENTS, ids=["budget", "own end"])
@pytest.mark.parametrize("proposer", PROPOSERS)
def test_what_is_proposed_changes_no_bit(target: AlpamayoTarget, moment: Observation, proposer: str) -> None:
    prompt = target.prepare(moment)
    plain = Decoder(target, None, 16).decode(prompt)
    guessed = Decoder(target, PROPOSERS[proposer](plain.token_ids, len(target.forbidden)), 16).decode(prompt)
    assert bits(guessed) == bits(plain)
    if proposer == "oracle":
        assert guessed.speculation.rounds <= len(plain.token_ids) // 16 + 1
    noise = torch.randn(2, 64, 2, generator=torch.Generator().manual_seed(0))
    ours, alone = (target.scaled_actions(each.state, noise) for each in (guessed, plain))
    assert torch.equal(ours, alone)


def test_the_self_test_finds_nothing(target: AlpamayoTarget) -> None:
    assert self_test(target, target.prepare(MOMENTS[0]), 9) == []


def test_numbers_of_trajectories_are_never_written(target: AlpamayoTarget) -> None:
    forbidden = target.forbidden.nonzero().flatten()
    assert len(forbidden) == 4000
    prompt = target.prepare(MOMENTS[1])
    guesser = RehearsedDrafter([int(forbidden[5])] * 20, len(target.forbidden), Rehearsal(1.0, 1))
    decoded = Decoder(target, guesser, 8).decode(prompt)
    assert decoded.speculation.proposed == 0
    assert not set(decoded.token_ids) & set(forbidden.tolist())


def test_remembered_pictures_change_nothing(target: AlpamayoTarget) -> None:
    first, again = target.prepare(MOMENTS[0]), target.prepare(MOMENTS[0])
    misses = target.vision_cache.misses
    assert target.prepare(MOMENTS[0]).tokens.ids.tolist() == first.tokens.ids.tolist()
    assert target.vision_cache.misses == misses
    assert torch.equal(first.features.tokens, again.features.tokens)
