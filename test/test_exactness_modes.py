"""Modes of exactness, the self-test and the canary, on targets that keep the promise and on one that breaks it."""

from collections.abc import Sequence

import pytest
import torch
from test_decoder import PROMPT, TEXT, Scripted, ToyPrompt, ToyState, ToyTarget, chain
from tiny_nano import noise_observation, tiny_target

from flatrope_planner.domain import SpeculationStats
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.canary import WINDOW, Canary
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.exactness import Divergence, ExactDecoder, Exactness, ExactnessMode, self_test
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.target import StepResult


class Unsteady(ToyTarget):
    """Writes 21 in place of 13 when it reads more than one candidate at once: what a kernel that is not exact does."""

    def step(self, state: ToyState, block: Block) -> StepResult:
        result = super().step(state, block)
        crowded = sum(parent >= 0 for parent in block.parents) > 1
        if crowded:
            result.logits[result.logits[:, 13] > 0.0, 21] = 2.75
        return result


def test_an_audit_finds_a_difference_tells_it_and_ends_speculation() -> None:
    drafter = Scripted(chain(10, 11, 12), chain(10, 11, 12))
    decoder = ExactDecoder(Unsteady(), drafter, 8, Exactness(ExactnessMode.AUDIT, 1))
    assert decoder.speculating
    assert decoder.decode(ToyPrompt()).token_ids == TEXT
    assert decoder.divergences == [Divergence(3, 21, 13, 2.5)]
    assert not decoder.speculating
    assert decoder.decode(ToyPrompt()).speculation.proposed == 0


def test_an_audit_that_never_comes_is_refused() -> None:
    with pytest.raises(InputError, match="audit_every is 0, expected at least 1"):
        Exactness(ExactnessMode.AUDIT)


def test_only_every_so_many_rationales_are_audited() -> None:
    decoder = ExactDecoder(ToyTarget(), Scripted(), 8, Exactness(ExactnessMode.AUDIT, 3))
    for _ in range(7):
        assert decoder.decode(ToyPrompt()).token_ids == TEXT
    assert decoder.audited == 2
    assert decoder.speculating


def test_a_tolerant_decoder_counts_and_goes_on() -> None:
    drafter = Scripted(*[chain(10, 11, 12)] * 2)
    decoder = ExactDecoder(Unsteady(), drafter, 8, Exactness(ExactnessMode.TOLERANT, 1))
    decoder.decode(ToyPrompt())
    assert len(decoder.divergences) == 1
    assert decoder.speculating


def test_tolerant_passes_are_as_small_as_what_is_proposed() -> None:
    target = ToyTarget()
    decoder = ExactDecoder(target, Scripted(chain(10, 11), chain(13)), 8, Exactness(ExactnessMode.TOLERANT))
    assert decoder.decode(ToyPrompt()).token_ids == TEXT
    # Two with the prompt; these, the bonus and a third one behind the anchor; the anchor alone.
    assert target.widths == {3, 4, 1}


def test_the_self_test_knows_an_exact_target_from_one_that_is_not() -> None:
    assert self_test(ToyTarget(), ToyPrompt(), 16) == []
    assert self_test(Unsteady(), ToyPrompt(), 16)
    nano = tiny_target()
    assert self_test(nano, nano.prepare(noise_observation(0)), 16) == []


@pytest.mark.parametrize(
    ("statistics", "draft_ms", "words"),
    [
        (SpeculationStats(14, 0, 0, 14), 1.0, "proposed nothing"),
        (SpeculationStats(14, 90, 0, 14), 1.0, "hardly ever right: 1.00 tokens a round"),
        # Alone it would take 15 / 4 of the 40 ms.
        (SpeculationStats(4, 28, 11, 15), 141.0, "costs more than it saves: 141 ms of drafting and 40 ms of verifying"),
        (SpeculationStats(4, 28, 11, 15), 141.0, "alone it would be about 150 ms"),
        (SpeculationStats(4, 28, 11, 15), 100.0, ""),
        # All was written with the prompt.
        (SpeculationStats(0, 0, 0, 12, prefill_proposed=12, prefill_accepted=12), 900.0, ""),
    ],
)
def test_the_canary_complains_of_a_draft_that_is_of_no_use(
    statistics: SpeculationStats, draft_ms: float, words: str
) -> None:
    canary = Canary()
    for _ in range(WINDOW - 1):
        canary.watch(statistics, {"draft": draft_ms, "verify": 40.0})
    assert canary.complaint() == ""
    canary.watch(statistics, {"draft": draft_ms, "verify": 40.0})
    assert words in canary.complaint()
    assert bool(words) == bool(canary.complaint())


def test_prompt_lookup_copies_what_followed_the_same_words() -> None:
    class Prompt(ToyPrompt):
        token_ids: Sequence[int] = (7, 8, 9, 4, 8, 9, 5, 6, 8, 9)

    drafter = PromptLookupDrafter()
    drafter.begin(Prompt(Prompt.token_ids), torch.zeros(0, 9, 1))
    # The latest place where 8 9 stood.
    assert drafter.propose(3, 9).tokens == (5, 6, 8)
    assert drafter.propose(9, 2).tokens == (5, 6)
    drafter.observe([4], torch.zeros(0, 1, 1))
    assert drafter.propose(2, 9).tokens == (8, 9)
    drafter.observe([99], torch.zeros(0, 1, 1))
    assert drafter.propose(2, 9).tokens == ()
    assert Decoder(ToyTarget(), PromptLookupDrafter(), 8).decode(ToyPrompt(PROMPT)).token_ids == TEXT
