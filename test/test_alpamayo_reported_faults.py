"""Faults of other engines that depend on pictures (see `test_reported_faults`), tried on both layouts of Alpamayo.

Judge is transformers' own `generate` on the checkpoint's Qwen3-VL, which gets the pictures as its processor would.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from test_alpamayo_exactness import bits
from tiny_alpamayo import CASES, observation, write_checkpoint
from torch import Tensor

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.block_drafter import BlockDrafter
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.drafter import Drafter
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.eagle_drafter import EagleDrafter
from flatrope_planner.speculation.hybrid import GuessingDrafter
from flatrope_planner.speculation.medusa import MedusaConfig, MedusaDrafter, MedusaHeads
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.training.capture import trace_of
from flatrope_planner.vla.alpamayo.cameras import in_order
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.pictures import resized, target_size
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.vision import patchify
from flatrope_planner.vla.vision_cache import VisionCache

LONG, BLOCK = 14, 8
TAPS = (1, 3)
# Two cameras; one with larger pictures; two with small ones that are blown up: prompts of three lengths and deltas.
REQUESTS = ("standing", "tight", "fast")
Text = tuple[int, ...]


@dataclass(frozen=True)
class Judged:
    """A target, prompts of which no two have pictures of one size, and what transformers writes behind them."""

    target: AlpamayoTarget
    prompts: dict[str, VlaPrompt]
    texts: dict[str, Text]
    # Of transformers' forward pass.
    inputs: dict[str, dict[str, Tensor]]


def judge_inputs(target: AlpamayoTarget, case: str) -> dict[str, Tensor]:
    """The pictures as Qwen's processor lays them out: each still one twice in time."""
    frames = observation(CASES[case]).frames
    height, width = target_size(CASES[case].height_px, CASES[case].width_px, 4096, 16384)
    pictures = np.stack([resized(frame.image, (height, width)) for name in in_order(frames) for frame in frames[name]])
    patches = patchify(torch.from_numpy(pictures))
    doubled = patches.reshape(-1, 3, 1, 256).expand(-1, 3, 2, 256).reshape(-1, 1536)
    ids = torch.tensor([target.prepare(observation(CASES[case])).token_ids])
    return {
        "pixel_values": doubled,
        "image_grid_thw": torch.tensor([[1, height // 16, width // 16]] * len(pictures)),
        "mm_token_type_ids": (ids == target.image_pad).int(),
    }


def generated(target: AlpamayoTarget, prompt: VlaPrompt, inputs: dict[str, Tensor], budget: int = LONG) -> Text:
    ids = torch.tensor([prompt.token_ids])
    out = target.vlm.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=budget,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        suppress_tokens=target.forbidden.nonzero().flatten().tolist(),
        **inputs,
    )
    return tuple(out[0, ids.shape[1] :].tolist())


@pytest.fixture(scope="module", params=list(Release), ids=lambda release: release.value)
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    checkpoint = write_checkpoint(tmp_path_factory.mktemp("alpamayo"), request.param)
    target = AlpamayoTarget.load(checkpoint, TAPS, Running(CAMERA_NAMES, device="cpu"))
    # Never written, so that texts are as long as the budget unless a test says where they end.
    target.forbidden[target.stop_token] = True
    target.token_budget = LONG
    prompts = {case: target.prepare(observation(CASES[case])) for case in REQUESTS}
    inputs = {case: judge_inputs(target, case) for case in REQUESTS}
    texts = {case: generated(target, prompts[case], inputs[case]) for case in REQUESTS}
    assert len(set(texts.values())) == len({prompt.rope_delta for prompt in prompts.values()}) == len(REQUESTS)
    assert all(len(set(text)) > 4 for text in texts.values())
    return Judged(target, prompts, texts, inputs)


@contextmanager
def ending_at(target: AlpamayoTarget, stop: int) -> Iterator[None]:
    before, target.stop_token = target.stop_token, stop
    try:
        yield
    finally:
        target.stop_token = before


@contextmanager
def spending(target: AlpamayoTarget, budget: int) -> Iterator[None]:
    before, target.token_budget = target.token_budget, budget
    try:
        yield
    finally:
        target.token_budget = before


def knowing(target: AlpamayoTarget, text: Text, right: float, branches: int = 1, **how: Any) -> RehearsedDrafter:
    return RehearsedDrafter(text, len(target.forbidden), Rehearsal(right, branches, 1, **how))


@pytest.mark.parametrize(("width", "fixed_shape"), [(1, True), (2, False), (5, True), (5, False), (13, True)])
def test_01_02_05_texts_are_generates_in_blocks_of_any_size(judged: Judged, width: int, fixed_shape: bool) -> None:
    for case in REQUESTS:
        drafter = knowing(judged.target, judged.texts[case], 0.7, 1 + width % 2)
        spoken = Decoder(judged.target, drafter, width, fixed_shape=fixed_shape).decode(judged.prompts[case])
        assert spoken.token_ids == judged.texts[case]
        assert bool(spoken.speculation.accepted) == (width > 1)


def test_03_a_token_lies_in_the_slot_of_its_sequence_index(judged: Judged) -> None:
    for case in REQUESTS:
        prompt, target = judged.prompts[case], judged.target
        decoded = Decoder(target, knowing(target, judged.texts[case], 0.7, 3), 16).decode(prompt)
        read = (*prompt.token_ids, *decoded.token_ids[:-1])
        assert decoded.state.length == len(read)
        with torch.inference_mode():
            inputs = judged.inputs[case]
            types = torch.nn.functional.pad(inputs["mm_token_type_ids"], (0, len(decoded.token_ids) - 1))
            judge = target.vlm(torch.tensor([read]), use_cache=True, **{**inputs, "mm_token_type_ids": types})
        keys, values = decoded.state.cache.committed()
        for layer, key, value in zip(judge.past_key_values.layers, keys, values, strict=True):
            torch.testing.assert_close(key, layer.keys, atol=1e-3, rtol=1e-3)
            torch.testing.assert_close(value, layer.values, atol=1e-3, rtol=1e-3)


def test_04_positions_behind_pictures_are_the_index_and_the_delta(judged: Judged) -> None:
    target = judged.target
    for case in REQUESTS:
        prompt, read = judged.prompts[case], list[Tensor]()
        hook = target.vlm.get_decoder().register_forward_pre_hook(
            lambda _, __, given, read=read: read.append(given["position_ids"]), with_kwargs=True
        )
        try:
            plain = Decoder(target, None, 1, fixed_shape=False).decode(prompt)
        finally:
            hook.remove()
        ids = torch.tensor([[*prompt.token_ids, *plain.token_ids]])
        wanted, delta = target.vlm.model.get_rope_index(
            ids,
            mm_token_type_ids=(ids == target.image_pad).int(),
            image_grid_thw=judged.inputs[case]["image_grid_thw"],
        )
        assert prompt.rope_delta == int(delta) < 0
        got = torch.cat([positions[-3:, 0] for positions in read], dim=1)
        assert torch.equal(got, wanted[:, 0, : got.shape[1]])
        assert got.shape[1] == ids.shape[1] - 1


def test_06_pictures_matter_over_more_than_one_round(judged: Judged) -> None:
    target, prompt = judged.target, judged.prompts["standing"]
    others = observation(replace(CASES["standing"], seed=7))
    changed = replace(prompt, features=target.prepare(others).features)
    assert judged.prompts["standing"].token_ids == target.prepare(others).token_ids
    inputs = {**judged.inputs["standing"]}
    pictures = np.stack([f.image for camera in in_order(others.frames) for f in others.frames[camera]])
    patches = patchify(torch.from_numpy(pictures)).reshape(-1, 3, 1, 256).expand(-1, 3, 2, 256)
    inputs["pixel_values"] = patches.reshape(-1, 1536)
    # Drafted with the text of the other pictures: wrong, sooner or later, and never taken over.
    spoken = Decoder(target, knowing(target, judged.texts["standing"], 1.0), BLOCK).decode(changed)
    assert spoken.token_ids == generated(target, prompt, inputs) != judged.texts["standing"]
    assert spoken.speculation.rounds > 2


@pytest.mark.parametrize("place", range(BLOCK + 2))
def test_07_an_end_token_at_each_offset_of_a_block_is_the_last(judged: Judged, place: int) -> None:
    case = next(case for case in REQUESTS if judged.texts[case][place] not in judged.texts[case][:place])
    target, prompt, text = judged.target, judged.prompts[case], judged.texts[case]
    with ending_at(target, text[place]):
        for anticipates in (True, False):
            drafter = knowing(target, text, 1.0, anticipates=anticipates)
            decoded = Decoder(target, drafter, BLOCK).decode(prompt)
            assert decoded.token_ids == text[: place + 1]
            assert decoded.rationale.complete
            assert decoded.state.length == len(prompt.token_ids) + place + 1


@pytest.mark.parametrize("place", [0, 3, BLOCK])
def test_07_the_backbones_end_token_ends_a_text_and_stays_unread(judged: Judged, place: int) -> None:
    target, prompt, text = judged.target, judged.prompts["fast"], judged.texts["fast"]
    first = text.index(text[place])
    target.eos_tokens = frozenset([text[place]])
    try:
        for anticipates in (True, False):
            drafter = knowing(target, text, 1.0, anticipates=anticipates)
            decoded = Decoder(target, drafter, BLOCK).decode(prompt)
            assert decoded.token_ids == text[: first + 1]
            assert not decoded.rationale.complete
            assert decoded.state.length == len(prompt.token_ids) + first
    finally:
        target.eos_tokens = frozenset()


class Interrupted(RehearsedDrafter):
    """Has other requests decoded whenever it is asked."""

    others: Sequence[tuple[Decoder[VlaPrompt, VlaState], VlaPrompt]] = ()
    overheard: list[DecodedRationale[VlaState]]

    def propose(self, nodes: int, depth: int) -> Candidates:
        self.overheard += [decoder.decode(prompt) for decoder, prompt in self.others]
        return super().propose(nodes, depth)


def test_08_requests_with_pictures_of_other_sizes_take_turns(judged: Judged) -> None:
    """The positions' delta belongs to the request, and so do its pictures."""
    target, texts, prompts = judged.target, judged.texts, judged.prompts
    with spending(target, 10):
        plain = {case: Decoder(target, None, BLOCK).decode(prompts[case]) for case in REQUESTS}
        drafter = Interrupted(texts["standing"], len(target.forbidden), Rehearsal(0.6, 2, 1))
        drafter.overheard = []
        drafter.others = [
            (Decoder(target, knowing(target, texts[case], 0.6), BLOCK), prompts[case]) for case in ("tight", "fast")
        ]
        assert bits(Decoder(target, drafter, BLOCK).decode(prompts["standing"])) == bits(plain["standing"])
    assert len(drafter.overheard) > 4
    for place, decoded in enumerate(drafter.overheard):
        assert bits(decoded) == bits(plain[("tight", "fast")[place % 2]])


def test_08_rows_of_requests_read_alternately(judged: Judged) -> None:
    target, anchors = judged.target, {case: prompt.token_ids[-1] for case, prompt in judged.prompts.items()}
    states = {
        case: target.prefill(judged.prompts[case], Block.of(anchors[case], Candidates()).padded(8))[0]
        for case in REQUESTS
    }
    places = dict.fromkeys(REQUESTS, 0)
    for turn in range(3):
        for request, case in enumerate(REQUESTS):
            text, place, count = judged.texts[case], places[case], 1 + request * turn
            block = Block.of(text[place], Candidates.chain(text[place + 1 : place + count], "")).padded(8)
            logits = target.step(states[case], block).logits.masked_fill(target.forbidden, -torch.inf)
            assert tuple(logits.argmax(-1)[:count].tolist()) == text[place + 1 : place + count + 1]
            target.commit(states[case], range(count))
            places[case] += count
    assert places == {"standing": 3, "tight": 6, "fast": 9}


@pytest.mark.parametrize("budget", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, LONG])
def test_10_no_budget_is_overrun(judged: Judged, budget: int) -> None:
    target, prompt, text = judged.target, judged.prompts["fast"], judged.texts["fast"]
    with spending(target, budget):
        for drafter in (None, knowing(target, text, 1.0), knowing(target, text, 0.5, 2, anticipates=False)):
            decoded = Decoder(target, drafter, BLOCK).decode(prompt)
            assert decoded.token_ids == text[:budget]
            assert (decoded.state.length, decoded.state.unread) == (len(prompt.token_ids) + budget - 1, 1)


def networks(target: AlpamayoTarget, scheme: RotaryScheme = RotaryScheme.FLAT) -> list[GuessingDrafter]:
    """Random drafts of each kind."""
    torch.manual_seed(0)
    section = target.mrope_section if scheme is RotaryScheme.MROPE else None
    hidden, vocabulary = target.sizes.hidden, target.sizes.vocab_size
    how: dict[str, Any] = {"scheme": scheme, "mrope_section": section, "heads": 4, "head_dim": 16, "intermediate": 48}
    block = BlockDraft(BlockDraftConfig(hidden, vocabulary, TAPS, block_size=4, predecessor_rank=4, **how))
    eagle = EagleDraft(EagleDraftConfig(hidden, vocabulary, TAPS, **how))
    medusa = MedusaHeads(MedusaConfig(hidden, TAPS, heads=3))
    with torch.no_grad():
        for weight in (*block.parameters(), *eagle.parameters(), *medusa.parameters()):
            if weight.ndim > 1:
                weight.copy_(torch.randn(weight.shape) * 0.2)
    # Most of the vocabulary is numbers of trajectories: a draft that nobody has taught would propose nothing else.
    head = torch.nn.Linear(hidden, vocabulary, bias=False)
    with torch.no_grad():
        head.weight.copy_(target.vlm.lm_head.weight * ~target.forbidden[:, None])
    parts = replace(target.parts, head=head)
    return [BlockDrafter(block, parts), EagleDrafter(eagle, parts), MedusaDrafter(medusa, parts)]


KINDS = pytest.mark.parametrize("kind", range(3), ids=["block", "eagle3", "medusa"])


@KINDS
def test_11_a_request_does_not_depend_on_the_one_before(judged: Judged, kind: int) -> None:
    target = judged.target

    def seen(drafter: GuessingDrafter, case: str) -> tuple[Text, tuple[int, ...], Candidates]:
        decoded = Decoder(target, drafter, BLOCK).decode(judged.prompts[case])
        return decoded.token_ids, decoded.speculation.acceptance_histogram, drafter.propose(7, 7)

    with spending(target, 4):
        fresh = {case: seen(networks(target)[kind], case) for case in REQUESTS}
        drafter = networks(target)[kind]
        for case in (*REQUESTS, *reversed(REQUESTS)):
            assert seen(drafter, case) == fresh[case]
            assert fresh[case][0] == judged.texts[case][:4]


def test_12_numbers_of_trajectories_are_neither_proposed_nor_taken(judged: Judged) -> None:
    target, prompt = judged.target, judged.prompts["standing"]
    number = int(target.forbidden.nonzero()[0])
    head = target.vlm.lm_head.weight
    before = head[number].clone()
    wanted = judged.texts["standing"][0]
    try:
        # Were it allowed, it would be written in place of the first token.
        with torch.no_grad():
            head[number] = head[wanted] * 1.5
        eager = RehearsedDrafter([number] * LONG, len(target.forbidden), Rehearsal(1.0))
        decoded = Decoder(target, eager, BLOCK).decode(prompt)
        assert decoded.token_ids == judged.texts["standing"]
        assert (decoded.speculation.proposed, decoded.speculation.prefill_proposed) == (0, 0)
    finally:
        with torch.no_grad():
            head[number] = before


@KINDS
def test_13_remembered_pictures_change_neither_text_nor_acceptance(judged: Judged, kind: int) -> None:
    target, moment = judged.target, observation(CASES["tight"])
    cache = target.vision_cache
    results = []
    try:
        with spending(target, 6):
            for capacity in (16, 0):
                target.vision_cache = VisionCache(target._encode, capacity)
                drafter = networks(target)[kind]
                for _ in range(2):
                    decoded = Decoder(target, drafter, BLOCK).decode(target.prepare(moment))
                    results.append((bits(decoded), decoded.speculation, drafter.propose(7, 7)))
                assert target.vision_cache.hits == capacity // 4
    finally:
        target.vision_cache = cache
    assert all(result == results[0] for result in results)


class Overheard(RehearsedDrafter):
    """Lets a network listen to a request in which much is accepted and much is not."""

    network: GuessingDrafter

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        super().begin(prompt, tapped)
        self.network.begin(prompt, tapped)

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        super().observe(tokens, tapped)
        self.network.observe(tokens, tapped)


def context_of(drafter: GuessingDrafter) -> list[Tensor]:
    if isinstance(drafter, BlockDrafter):
        return [part for layer in drafter._context for part in layer]
    assert isinstance(drafter, EagleDrafter)
    assert drafter._context is not None
    return list(drafter._context)


@pytest.mark.parametrize("scheme", list(RotaryScheme))
@pytest.mark.parametrize("kind", range(2), ids=["block", "eagle3"])
def test_15_16_what_a_draft_remembers_is_what_it_would_compute_from_scratch(
    judged: Judged, kind: int, scheme: RotaryScheme
) -> None:
    target, prompt, text = judged.target, judged.prompts["tight"], judged.texts["tight"]
    overheard = Overheard(text, len(target.forbidden), Rehearsal(0.6, 2, 1))
    overheard.network, afresh = networks(target, scheme)[kind], networks(target, scheme)[kind]
    Decoder(target, overheard, 16).decode(prompt)
    trace = trace_of(target, prompt, text)
    afresh.begin(prompt, trace.tapped[:, : trace.prompt - 1])
    afresh.observe(text, trace.tapped[:, trace.prompt - 1 :])
    for mine, theirs in zip(context_of(overheard.network), context_of(afresh), strict=True):
        assert mine.shape[2] == len(prompt.token_ids) - 1 + len(text)
        torch.testing.assert_close(mine, theirs, atol=1e-3, rtol=1e-3)


def test_17_states_are_tapped_behind_the_layers_and_what_pictures_add_to_them(judged: Judged) -> None:
    target, prompt = judged.target.tapping((0, 1, 2)), judged.prompts["fast"]
    _, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids])
        levels = target.vlm(ids, output_hidden_states=True, **judged.inputs["fast"]).hidden_states
    for place in range(3):
        torch.testing.assert_close(read.tapped[place], levels[place + 1][0, :-1], atol=1e-3, rtol=1e-3)


def test_pictures_features_are_added_in_the_prefill_and_never_again(judged: Judged) -> None:
    """DeepStack: more than the image tokens themselves, on the first layers, at the image tokens' places alone."""
    target, prompt = judged.target, judged.prompts["standing"]
    seen = list[tuple[int, Tensor | None]]()
    hook = target.vlm.get_decoder().register_forward_pre_hook(
        lambda _, __, given: seen.append((given["inputs_embeds"].shape[1], given.get("visual_pos_masks"))),
        with_kwargs=True,
    )
    try:
        decoded = Decoder(target, knowing(target, judged.texts["standing"], 0.5), BLOCK).decode(prompt)
    finally:
        hook.remove()
    first, *later = seen
    assert decoded.speculation.rounds == len(later) > 2
    assert all(mask is None and rows == BLOCK for rows, mask in later)
    assert first[1] is not None
    assert first[1][0].nonzero().flatten().tolist() == np.flatnonzero(prompt.tokens.ids == target.image_pad).tolist()
    # They matter.
    features = prompt.features
    blank = replace(features, deepstack=tuple(level * 0.0 for level in features.deepstack))
    logits = [
        target.prefill(replace(prompt, features=given), Block.of(prompt.token_ids[-1], Candidates()))[1].block.logits
        for given in (features, blank)
    ]
    assert (logits[0] - logits[1]).abs().max() > 0.1


def test_what_looks_like_a_patch_is_a_token_like_others(judged: Judged) -> None:
    """Pictures fill the prompt's own places alone, though somebody proposes their token."""
    target, prompt = judged.target, judged.prompts["standing"]
    eager = RehearsedDrafter([target.image_pad] * BLOCK, len(target.forbidden), Rehearsal(1.0))
    guessed = Decoder(target, eager, BLOCK).decode(prompt)
    assert guessed.speculation.prefill_proposed == BLOCK - 1
    assert guessed.token_ids == judged.texts["standing"]
    # Read in one pass with the prompt, or behind it: the same.
    text = (target.image_pad, judged.texts["standing"][0])
    _, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates.chain(text, "")))
    state, _ = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    behind = target.step(state, Block.of(text[0], Candidates.chain(text[1:], "")))
    torch.testing.assert_close(read.block.logits[1:], behind.logits, atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("branches", [1, 2])
def test_a_text_of_patches_is_generates_too(judged: Judged, branches: int) -> None:
    """Prompt lookup then copies from the midst of the pictures."""
    target, prompt, inputs = judged.target, judged.prompts["standing"], judged.inputs["standing"]
    head = target.vlm.lm_head.weight
    before = head[target.image_pad].clone()
    try:
        with torch.no_grad():
            head[target.image_pad] = head[judged.texts["standing"][2]] * 1.2
        text = generated(target, prompt, inputs)
        assert target.image_pad in text[:-1]
        drafters: list[Drafter] = [PromptLookupDrafter(), knowing(target, text, 1.0 / branches, branches)]
        for drafter in drafters:
            spoken = Decoder(target, drafter, BLOCK).decode(prompt)
            assert spoken.token_ids == text
            assert spoken.speculation.proposed > 0
    finally:
        with torch.no_grad():
            head[target.image_pad] = before


@KINDS
@pytest.mark.parametrize("scheme", list(RotaryScheme))
def test_networks_change_no_bit(judged: Judged, kind: int, scheme: RotaryScheme) -> None:
    target = judged.target
    with spending(target, 8):
        for case in ("fast",):
            plain = Decoder(target, None, BLOCK).decode(judged.prompts[case])
            spoken = Decoder(target, networks(target, scheme)[kind], BLOCK).decode(judged.prompts[case])
            assert bits(spoken) == bits(plain)
            assert spoken.speculation.proposed > 0


def test_23_drafts_with_wrong_rotary_sections_are_refused_when_made(judged: Judged) -> None:
    target = judged.target
    assert sum(target.mrope_section or ()) == 8
    for section in ((4, 2, 1), (4, 4), (8, 0)):
        config = BlockDraftConfig(
            target.sizes.hidden,
            target.sizes.vocab_size,
            TAPS,
            heads=4,
            head_dim=16,
            scheme=RotaryScheme.MROPE,
            mrope_section=section,
        )
        with pytest.raises(ValueError, match="three numbers of pairs that add up to 8"):
            BlockDraft(config)
