"""Speculation changes no bit of what AutoVLA writes, rationale and actions, whoever proposes; numbers are reports'.

The numbers are those of `test_reported_faults`: faults of other engines that depend on pictures and on M-RoPE.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_autovla import CASES, observation, write_checkpoint
from torch import Tensor

from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.block_drafter import BlockDrafter
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.exactness import self_test
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.capture import trace_of
from flatrope_planner.vla.autovla.target import AutoVlaTarget
from flatrope_planner.vla.request import VlaState
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.vision_cache import VisionCache

# The budget ends the first one's text.
MOMENTS = {name: observation(CASES[name]) for name in ("cruise", "tight")}
TAPS = (1, 3)
BUDGET = 24
Text = tuple[int, ...]


def rehearsed(right: float, branches: int) -> Callable[[Text, AutoVlaTarget], Drafter]:
    return lambda text, target: RehearsedDrafter(text, len(target.forbidden), Rehearsal(right, branches, 1))


def flatrope(_: Text, target: AutoVlaTarget) -> Drafter:
    """Untrained: wrong nearly always, but by what it sees."""
    torch.manual_seed(0)
    sizes = target.sizes
    config = BlockDraftConfig(
        hidden=sizes.hidden,
        intermediate=96,
        heads=4,
        kv_heads=2,
        head_dim=16,
        tapped_layers=TAPS,
        vocab_size=sizes.vocab_size,
        theta=target.rope_theta,
        scheme=RotaryScheme.FLAT,
    )
    return BlockDrafter(BlockDraft(config).eval(), target.parts)


PROPOSERS: dict[str, Callable[[Text, AutoVlaTarget], Drafter]] = {
    "oracle": rehearsed(1.0, 1),
    "always wrong": rehearsed(0.0, 1),
    "random tree": rehearsed(0.6, 3),
    "prompt lookup": lambda *_: PromptLookupDrafter(),
    "flatrope": flatrope,
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("autovla"))


def loaded(checkpoint: Path, precision: torch.dtype) -> AutoVlaTarget:
    made = AutoVlaTarget.load(checkpoint, TAPS, Running(precision=precision, device="cpu"))
    made.token_budget = BUDGET
    return made


def alone(target: AutoVlaTarget) -> Callable[[str], DecodedRationale[VlaState]]:
    return cache(lambda moment: Decoder(target, None, 16).decode(target.prepare(MOMENTS[moment])))


Alone = tuple[AutoVlaTarget, Callable[[str], DecodedRationale[VlaState]]]


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=str)
def either(request: pytest.FixtureRequest, checkpoint: Path) -> Alone:
    """A target in either precision, and what it writes alone."""
    made = loaded(checkpoint, request.param)
    return made, alone(made)


@pytest.fixture(scope="module")
def target(checkpoint: Path) -> AutoVlaTarget:
    return loaded(checkpoint, torch.float32)


@pytest.fixture(scope="module")
def plain(target: AutoVlaTarget) -> Callable[[str], DecodedRationale[VlaState]]:
    return alone(target)


def bits(decoded: DecodedRationale[VlaState]) -> tuple[Text, list[float], list[bytes]]:
    """Tokens, margins, and the keys and values behind them."""
    keys, values = decoded.state.cache.committed()
    stored = [part.contiguous().view(torch.int16).numpy().tobytes() for part in (*keys, *values)]
    return decoded.token_ids, [token.margin for token in decoded.rationale.tokens], stored


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("proposer", PROPOSERS)
def test_what_is_proposed_changes_no_bit(either: Alone, moment: str, proposer: str) -> None:
    target, plain = either
    own, prompt = plain(moment), target.prepare(MOMENTS[moment])
    drafter = PROPOSERS[proposer](own.token_ids, target)
    guessed = Decoder(target, drafter, 16).decode(prompt)
    assert bits(guessed) == bits(own)
    assert guessed.state.written == list(guessed.token_ids)
    if proposer == "oracle":
        assert guessed.speculation.rounds <= len(own.token_ids) // 16 + 1
        sources = {token.source for token in guessed.rationale.tokens if token.text.startswith("<action_")}
        assert drafter.name in sources
    if proposer == "flatrope":
        assert guessed.speculation.proposed > 0
    ours, theirs = (target.act(each.state, None, 1)[0] for each in (guessed, own))
    assert np.array_equal(ours.position_m, theirs.position_m)


def test_the_self_test_finds_nothing(either: Alone) -> None:
    target, _ = either
    assert self_test(target, target.prepare(MOMENTS["tight"]), 9) == []


def test_texts_hold_rationale_actions_and_an_end(plain: Callable[[str], DecodedRationale[VlaState]]) -> None:
    cut, whole = plain("cruise"), plain("tight")
    assert not cut.rationale.complete
    assert whole.rationale.complete
    assert sum(token.text.startswith("<action_") for token in whole.rationale.tokens) > 3


# vllm #54928, z-lab/dflash #159.
@pytest.mark.parametrize("width", [2, 3, 5, 13])
def test_01_02_blocks_of_any_size(
    target: AutoVlaTarget, plain: Callable[[str], DecodedRationale[VlaState]], width: int
) -> None:
    prompt = target.prepare(MOMENTS["tight"])
    drafter = rehearsed(0.8, 2)(plain("tight").token_ids, target)
    assert bits(Decoder(target, drafter, width).decode(prompt)) == bits(Decoder(target, None, width).decode(prompt))


# vllm #54498, #10350, sglang #19730: slots are indices, positions are index and delta, in every round.
def test_03_04_06_slots_and_positions_behind_videos(target: AutoVlaTarget) -> None:
    prompt, read = target.prepare(MOMENTS["tight"]), list[Tensor]()
    assert prompt.rope_delta < 0

    def note(_: object, __: object, inputs: dict[str, Tensor]) -> None:
        read.append(inputs["position_ids"])

    hook = target.vlm.model.language_model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        decoded = Decoder(target, None, 1, fixed_shape=False).decode(prompt)
    finally:
        hook.remove()
    assert decoded.state.length == len(prompt.token_ids) + len(decoded.token_ids)
    assert read[0].shape[-1] == len(prompt.token_ids)
    for place, positions in enumerate(read[1:]):
        assert positions.flatten().tolist() == [len(prompt.token_ids) + prompt.rope_delta + place] * 3


# sglang #17276, and what plain transformers makes of the same prompt and text.
def test_05_transformers_writes_the_same(target: AutoVlaTarget) -> None:
    prompt = target.prepare(MOMENTS["tight"])
    decoded = Decoder(target, rehearsed(0.5, 2)((), target), 8).decode(prompt)
    ids = torch.tensor([[*prompt.token_ids, *decoded.token_ids]])
    before = len(prompt.token_ids)
    embeds = target.vlm.get_input_embeddings()(ids)
    embeds = embeds.masked_scatter((ids == target.image_pad)[..., None], prompt.features.tokens)
    behind = torch.arange(before, ids.shape[1]).expand(3, 1, -1) + prompt.rope_delta
    positions = torch.cat([prompt.rotary_positions()[:, None], behind], dim=2)
    with torch.inference_mode():
        hidden = target.vlm.model.language_model(inputs_embeds=embeds, position_ids=positions).last_hidden_state
        judged = target.vlm.lm_head(hidden[0, before - 1 : -1]).argmax(-1)
    assert judged.tolist() == list(decoded.token_ids)


# HF #47912: an end in the middle of a block.
def test_07_nothing_is_written_behind_the_end(
    target: AutoVlaTarget, plain: Callable[[str], DecodedRationale[VlaState]]
) -> None:
    text = plain("tight").token_ids
    further = (*text, *text)
    for width in (2, 3, 5, 8, 9):
        decoded = Decoder(target, rehearsed(1.0, 1)(further, target), width).decode(target.prepare(MOMENTS["tight"]))
        assert decoded.token_ids == text


# The same for the backbone's own end, which AutoVLA's code stops at, too.
def test_07_the_end_of_a_sequence_ends_a_text_without_completing_it(
    target: AutoVlaTarget, plain: Callable[[str], DecodedRationale[VlaState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, prompt = plain("tight").token_ids, target.prepare(MOMENTS["tight"])
    assert target.token_text(*target.eos_tokens) == "<|endoftext|>"
    end = text.index(text[5])
    monkeypatch.setattr(target, "eos_tokens", frozenset({text[5]}))
    own = Decoder(target, None, 8).decode(prompt)
    assert own.token_ids == (*text[: end + 1], target.stop_token)
    assert not own.rationale.complete
    assert bits(Decoder(target, rehearsed(1.0, 1)(text, target), 8).decode(prompt)) == bits(own)
    assert own.state.written == list(own.token_ids)


# ArcticInference #153, vllm #16087: budgets that a block does not fit into.
@pytest.mark.parametrize("budget", [1, 7, 8, 9])
def test_10_budgets_at_the_edge_of_a_block(
    target: AutoVlaTarget, plain: Callable[[str], DecodedRationale[VlaState]], budget: int
) -> None:
    target.token_budget = budget
    try:
        prompt = target.prepare(MOMENTS["tight"])
        text = plain("tight").token_ids
        decoded = Decoder(target, rehearsed(1.0, 1)(text, target), 8).decode(prompt)
        assert decoded.token_ids == (*text[:budget], target.stop_token)
        assert not decoded.rationale.complete
        assert bits(decoded) == bits(Decoder(target, None, 8).decode(prompt))
    finally:
        target.token_budget = BUDGET


# llama.cpp #27342: a second request of another length; another number of videos.
def test_11_requests_do_not_touch_each_other(
    target: AutoVlaTarget, plain: Callable[[str], DecodedRationale[VlaState]]
) -> None:
    decoder = Decoder(target, PromptLookupDrafter(), 16)
    for moment in ("tight", "cruise", "tight"):
        assert bits(decoder.decode(target.prepare(MOMENTS[moment]))) == bits(plain(moment))


# vllm #47930 and others: what is remembered of pictures changes neither text nor tau.
def test_13_remembered_pictures_change_nothing(target: AutoVlaTarget) -> None:
    remembered = target.prepare(MOMENTS["tight"])
    misses = target.vision_cache.misses
    again = target.prepare(MOMENTS["tight"])
    assert target.vision_cache.misses == misses
    known, target.vision_cache = target.vision_cache, VisionCache(target._encode, capacity=0)
    fresh = target.prepare(MOMENTS["tight"])
    target.vision_cache = known
    decoded = [Decoder(target, PromptLookupDrafter(), 16).decode(each) for each in (remembered, again, fresh)]
    assert bits(decoded[0]) == bits(decoded[1]) == bits(decoded[2])
    assert len({each.speculation.rounds for each in decoded}) == 1


def test_13_a_frame_that_moves_on_is_read_anew(target: AutoVlaTarget) -> None:
    """A pair of frames is remembered as a pair: the same frames in other pairs are other pictures."""
    seen = MOMENTS["tight"]
    moved: dict[str, tuple[CameraFrame, ...]] = {}
    moved |= {camera: (frames[1], frames[2], frames[3], frames[3]) for camera, frames in seen.frames.items()}
    later = target.prepare(Observation(seen.t0_ns, moved, seen.ego_history))
    assert not torch.equal(later.features.tokens, target.prepare(seen).features.tokens)


# vllm #14649: what a draft is shown while a text is written is what one pass over all of it would show.
def test_15_tapped_states_are_those_of_one_pass(target: AutoVlaTarget) -> None:
    prompt, shown = target.prepare(MOMENTS["tight"]), list[Tensor]()

    class Listener(NoDrafter):
        def begin(self, prompt: object, tapped: Tensor) -> None:
            shown.append(tapped)

        def observe(self, tokens: object, tapped: Tensor) -> None:
            shown.append(tapped)

    decoded = Decoder(target, Listener(), 1).decode(prompt)
    trace = trace_of(target, prompt, decoded.token_ids)
    heard = torch.cat(shown, dim=1)
    assert heard.shape[1] == len(prompt.token_ids) + len(decoded.token_ids) - 1
    torch.testing.assert_close(heard, trace.tapped[:, : heard.shape[1]], atol=1e-3, rtol=1e-3)
    assert trace.pinned.tolist() == list(prompt.pinned)


# (ours): a prompt that the cache has no room for is refused before anything is read.
def test_25_prompts_without_room_are_refused(target: AutoVlaTarget) -> None:
    seen = MOMENTS["tight"]
    wordy = Observation(seen.t0_ns, seen.frames, seen.ego_history, "turn left and " * 2000)
    with pytest.raises(InputError, match=r"prompt: \d+ tokens, more than 2048; use a shorter command"):
        Decoder(target, None, 8).decode(target.prepare(wordy))
