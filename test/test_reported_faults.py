"""Faults of other engines, as reported in their trackers: each is tried here. Tests are numbered, to be spoken of.

Targets are a tiny Qwen3-VL, which transformers' own `generate` judges, and the tiny nano for what needs its drafts.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from test_block_draft import MODEL as NANO_MODEL
from test_block_draft import PARTS, TAPS, TARGET, new_draft
from test_huggingface import IMAGE, VOCABULARY, qwen3_vl, sharpened, with_pictures
from test_token_drafts import eagle, medusa
from tiny_nano import noise_observation, tiny_tokenizer
from torch import Tensor

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.block_drafter import BlockDrafter
from flatrope_planner.speculation.canary import WINDOW
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.checkpoints.speculators import SpeculatorsLayout
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.speculation.drafter import NoDrafter
from flatrope_planner.speculation.eagle_drafter import EagleDrafter
from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
from flatrope_planner.speculation.huggingface import CausalLMTarget, ModelPrompt, ModelState
from flatrope_planner.speculation.hybrid import GuessingDrafter
from flatrope_planner.speculation.medusa import MedusaDrafter
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.rotary import DraftRotary, RotaryScheme
from flatrope_planner.speculation.slots import MAX_WIDTH
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.training.capture import trace_of
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.nano import SHIPPED_WEIGHTS, NanoPrompt, NanoState, NanoTarget
from flatrope_planner.vla.prompt import build_prompt
from flatrope_planner.vla.vision_cache import VisionCache

# Never written, so that texts are as long as the budget unless a test says where they end.
STOP, FORBIDDEN = 2, (2, 5, 6)
LONG, BLOCK = 48, 8
# Pictures behind which a varied text is written with clear margins; some others end in a loop or in a tie.
SEEDS = (0, 1, 3, 6, 7, 11, 13, 14)
# Between a token and the next likeliest one. What is smaller, the order of sums may turn: it differs from CPU to CPU.
LEAST_MARGIN = 1e-4
Decoded = DecodedRationale[ModelState]


torch.manual_seed(3)
MODEL = sharpened(qwen3_vl())


def target(budget: int = LONG, stop: int = STOP, forbidden: Sequence[int] = FORBIDDEN) -> CausalLMTarget:
    return CausalLMTarget(MODEL, (stop,), budget, forbidden=forbidden, tapped_layers=(0, 2))


@cache
def pictures(seed: int = 0) -> ModelPrompt:
    return with_pictures(MODEL, seed)


def generated(prompt: ModelPrompt, budget: int = LONG, suppressed: Sequence[int] = FORBIDDEN) -> tuple[int, ...]:
    """What transformers writes, without a stop token."""
    ids = torch.tensor([prompt.token_ids])
    out = MODEL.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == IMAGE).int(),
        max_new_tokens=budget,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        suppress_tokens=list(suppressed),
        output_scores=True,
        return_dict_in_generate=True,
        **prompt.inputs,
    )
    for scores in out.scores:
        first, second = scores[0].topk(2).values.tolist()
        assert first - second > LEAST_MARGIN, "these pictures do not tell right from wrong: choose others"
    return tuple(out.sequences[0, ids.shape[1] :].tolist())


@cache
def text(seed: int = 0) -> tuple[int, ...]:
    """The judge's."""
    written = generated(pictures(seed))
    assert len(set(written)) > 10
    return written


def knowing(right: float, seed: int = 0, branches: int = 1, *, anticipates: bool = True) -> RehearsedDrafter:
    return RehearsedDrafter(text(seed), VOCABULARY, Rehearsal(right, branches, seed, anticipates))


def bits(decoded: Decoded | DecodedRationale[NanoState]) -> tuple[tuple[int, ...], list[float], list[bytes]]:
    keys, values = decoded.state.cache.committed()
    margins = [token.margin for token in decoded.rationale.tokens]
    return decoded.token_ids, margins, [part.numpy().tobytes() for part in (*keys, *values)]


# vllm #54928, sglang #38009: greedy text differs from token 30 on, even with one candidate.
@pytest.mark.parametrize("candidates", range(1, BLOCK + 1))
def test_01_long_texts_stay_the_same_with_any_number_of_candidates(candidates: int) -> None:
    for seed in SEEDS[:2]:
        plain = Decoder(target(), None, candidates + 1).decode(pictures(seed))
        spoken = Decoder(target(), knowing(0.7, seed), candidates + 1).decode(pictures(seed))
        assert plain.token_ids == (*text(seed), STOP)
        assert bits(spoken) == bits(plain)
        assert spoken.speculation.rounds < plain.speculation.rounds


# z-lab/dflash #159: blocks of five differ from token 29 on.
@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 8, 13])
@pytest.mark.parametrize("branches", [1, 3])
def test_02_long_texts_stay_the_same_in_blocks_of_any_size(width: int, branches: int) -> None:
    for fixed_shape in (True, False):
        drafter = knowing(0.8, 0, branches)
        spoken = Decoder(target(), drafter, width, fixed_shape=fixed_shape).decode(pictures())
        assert spoken.token_ids == (*text(), STOP)
        assert spoken.speculation.accepted > 0


# vllm #54498, #54519, #54716: slots of the cache taken from rotary positions.
def test_03_a_token_lies_in_the_slot_of_its_sequence_index() -> None:
    prompt = pictures()
    assert prompt.rope_delta < 0
    decoded = Decoder(target(), knowing(0.7, branches=3), 16).decode(prompt)
    whole = (*prompt.token_ids, *decoded.token_ids)
    assert decoded.state.length == len(whole)
    ids = torch.tensor([whole])
    with torch.inference_mode():
        judge = MODEL(input_ids=ids, mm_token_type_ids=(ids == IMAGE).int(), use_cache=True, **prompt.inputs)
    keys, values = decoded.state.cache.committed()
    for layer, key, value in zip(judge.past_key_values.layers, keys, values, strict=True):
        torch.testing.assert_close(key, layer.keys, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(value, layer.values, atol=1e-3, rtol=1e-3)


# vllm #10350: the delta of Qwen-VL's positions lost behind the prompt.
def test_04_positions_behind_pictures_are_the_index_and_the_delta() -> None:
    prompt, read = pictures(), list[Tensor]()

    def note(_: object, __: object, inputs: dict[str, Tensor]) -> None:
        read.append(inputs["position_ids"])

    hook = MODEL.get_decoder().register_forward_pre_hook(note, with_kwargs=True)
    try:
        plain = Decoder(target(), None, 1, fixed_shape=False).decode(prompt)
    finally:
        hook.remove()
    ids = torch.tensor([[*prompt.token_ids, *plain.token_ids]])
    types, grid = (ids == IMAGE).int(), prompt.inputs["image_grid_thw"]
    wanted, delta = MODEL.model.get_rope_index(ids, mm_token_type_ids=types, image_grid_thw=grid)
    assert prompt.rope_delta == int(delta)
    # The last axes: of three or four, time, height and width are the last.
    got = torch.cat([positions[-3:, 0] for positions in read], dim=1)
    assert torch.equal(got, wanted[:, 0, : got.shape[1]])
    assert got.shape[1] >= ids.shape[1] - 1
    behind = torch.arange(len(prompt.token_ids), got.shape[1]) + prompt.rope_delta
    assert torch.equal(got[:, len(prompt.token_ids) :], behind.expand(3, -1))


# sglang #17276: other texts from Qwen3-VL with EAGLE-3.
@pytest.mark.parametrize("right", [0.5, 0.9])
def test_05_texts_behind_pictures_are_generates_with_and_without_drafts(right: float) -> None:
    for seed in SEEDS[:3]:
        plain = Decoder(target(), None, BLOCK).decode(pictures(seed))
        spoken = Decoder(target(), knowing(right, seed), BLOCK).decode(pictures(seed))
        assert spoken.token_ids == plain.token_ids == (*text(seed), STOP)


# sglang #19730: positions empty and pictures not passed on behind the first round.
def test_06_pictures_matter_over_more_than_one_round() -> None:
    prompt, others = pictures(0), pictures(1).inputs
    changed = ModelPrompt(prompt.token_ids, others, prompt.positions)
    # Drafted with the text of the other pictures: wrong, sooner or later, and never taken over.
    spoken = Decoder(target(), knowing(1.0), BLOCK).decode(changed)
    assert spoken.token_ids == (*generated(changed), STOP)
    assert spoken.token_ids[:LONG] != text()
    assert spoken.speculation.rounds > 2


# transformers #47912, #47931, #31301, ipex-llm #11896: an end token accepted, and writing goes on.
@pytest.mark.parametrize("place", range(BLOCK + 2))
def test_07_an_end_token_at_each_offset_of_a_block_is_the_last(place: int) -> None:
    # A seed whose text brings a new token at this place; the drafter, and the target too, would go on behind it.
    seed = next(seed for seed in SEEDS if text(seed)[place] not in text(seed)[:place])
    prompt, stop = pictures(seed), text(seed)[place]
    decoded = Decoder(target(stop=stop), knowing(1.0, seed, anticipates=False), BLOCK).decode(prompt)
    assert decoded.token_ids == text(seed)[: place + 1]
    assert decoded.rationale.complete
    assert decoded.state.length == len(prompt.token_ids) + place + 1
    assert decoded.speculation.rounds == -(-place // BLOCK)
    anticipated = Decoder(target(stop=stop), knowing(1.0, seed), BLOCK).decode(prompt)
    assert anticipated.token_ids == decoded.token_ids


# transformers #46790: prompt lookup fails without a stop token.
def test_08_without_a_stop_token_in_reach_the_budget_ends_a_text() -> None:
    for drafter in (NoDrafter(), PromptLookupDrafter(), knowing(0.7)):
        decoded = Decoder(target(), drafter, BLOCK).decode(pictures())
        assert decoded.token_ids == (*text(), STOP)
        assert not decoded.rationale.complete


# ArcticInference #153, vllm #16087, #57941, #57964: blocks beyond the greatest length.
@pytest.mark.parametrize("budget", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1])
def test_10_no_budget_is_overrun_and_the_cache_is_full_in_the_end(budget: int) -> None:
    prompt = pictures()
    for drafter in (NoDrafter(), knowing(1.0), knowing(1.0, anticipates=False), knowing(0.5, branches=2)):
        short = target(budget)
        decoded = Decoder(short, drafter, BLOCK).decode(prompt)
        assert decoded.token_ids == (*text()[:budget], STOP)
        assert decoded.state.length == len(prompt.token_ids) + budget + 1
        # Not one place is left, and none was missing.
        with pytest.raises(InputError, match="does not fit"):
            short.step(decoded.state, Block.of(1, Candidates()))


def networks() -> list[GuessingDrafter]:
    return [BlockDrafter(new_draft(), PARTS), EagleDrafter(eagle(), PARTS), MedusaDrafter(medusa(), PARTS)]


def seen_by(drafter: GuessingDrafter, prompt: NanoPrompt) -> tuple[tuple[int, ...], tuple[int, ...], Candidates]:
    """A request's text, what its rounds accepted, and what the drafter would say behind it."""
    decoded = Decoder(TARGET, drafter, BLOCK).decode(prompt)
    return decoded.token_ids, decoded.speculation.acceptance_histogram, drafter.propose(7, 7)


# llama.cpp #27342, #22105: a draft that still holds the request before.
@pytest.mark.parametrize("kind", range(3), ids=["block", "eagle3", "medusa"])
def test_11_a_request_does_not_depend_on_the_one_before(kind: int) -> None:
    words = "Keep distance to the van ahead because it is braking."
    long = replace(TARGET.prepare(noise_observation(0)), tokens=build_prompt(tiny_tokenizer(), 4, [500] * 48, words))
    short = TARGET.prepare(noise_observation(1))
    assert len(long.token_ids) > len(short.token_ids) + 5
    fresh = {id(prompt): seen_by(networks()[kind], prompt) for prompt in (long, short)}
    drafter = networks()[kind]
    for prompt in (long, short, long, short):
        assert seen_by(drafter, prompt) == fresh[id(prompt)]
    # A request that ends with its first token leaves nothing behind either.
    TARGET.token_budget, before = 1, TARGET.token_budget
    try:
        assert Decoder(TARGET, drafter, BLOCK).decode(short).speculation.rounds == 0
    finally:
        TARGET.token_budget = before
    assert seen_by(drafter, long) == fresh[id(long)]


# Atlas-Inf #21: verified by the raw likeliest token, masks left out.
def test_12_forbidden_tokens_are_neither_proposed_nor_taken() -> None:
    prompt, wanted = pictures(), text()[3]
    suppressed = (*FORBIDDEN, wanted)
    judge = generated(prompt, suppressed=suppressed)
    assert wanted in text()
    assert wanted not in judge
    # The drafter wants the forbidden token where the target would, had it been allowed to.
    decoded = Decoder(target(forbidden=suppressed), knowing(1.0), BLOCK).decode(prompt)
    assert decoded.token_ids == (*judge, STOP)
    eager = RehearsedDrafter([wanted] * LONG, VOCABULARY, Rehearsal(1.0))
    stats = Decoder(target(forbidden=suppressed), eager, BLOCK).decode(prompt).speculation
    assert (stats.proposed, stats.prefill_proposed) == (0, 0)


# vllm #47930, #54027, #54094, z-lab/dflash #165, omlx #1441: a hit in a cache loses what the draft reads.
@pytest.mark.parametrize("kind", range(3), ids=["block", "eagle3", "medusa"])
def test_13_remembered_pictures_change_neither_text_nor_acceptance(kind: int) -> None:
    remembering, forgetful = (NanoTarget(NANO_MODEL, tiny_tokenizer(), TAPS) for _ in range(2))
    forgetful.vision_cache = VisionCache(forgetful._encode, 0)
    results = []
    for nano in (remembering, forgetful):
        nano.token_budget = TARGET.token_budget
        drafter = networks()[kind]
        for _ in range(2):
            decoded = Decoder(nano, drafter, BLOCK).decode(nano.prepare(noise_observation(0)))
            results.append((bits(decoded), decoded.speculation, drafter.propose(7, 7)))
    assert (remembering.vision_cache.hits, forgetful.vision_cache.hits) == (4, 0)
    assert all(result == results[0] for result in results)


class Overheard(RehearsedDrafter):
    """Lets a network listen to a request in which much is accepted and much is not."""

    def __init__(self, network: GuessingDrafter, written: Sequence[int]) -> None:
        super().__init__(written, len(TARGET.forbidden), Rehearsal(0.6, 2, 1))
        self._network = network
        self.pieces: list[int] = []

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        super().begin(prompt, tapped)
        self._network.begin(prompt, tapped)
        self.pieces.clear()

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        super().observe(tokens, tapped)
        self._network.observe(tokens, tapped)
        self.pieces.append(len(tokens))


# vllm #14649: a draft's keys never replaced by those of true states.
@pytest.mark.parametrize("kind", range(2), ids=["block", "eagle3"])
def test_15_what_a_draft_remembers_is_what_it_would_compute_from_scratch(kind: int) -> None:
    prompt = TARGET.prepare(noise_observation(0))
    written = Decoder(TARGET, None, 16).decode(prompt).token_ids[: TARGET.token_budget]
    network, afresh = networks()[kind], networks()[kind]
    overheard = Overheard(network, written)
    Decoder(TARGET, overheard, 16).decode(prompt)
    assert len(overheard.pieces) > 2
    assert max(overheard.pieces) > 1
    # One pass of the target over everything, taken in at once.
    trace = trace_of(TARGET, prompt, written)
    afresh.begin(prompt, trace.tapped[:, : trace.prompt - 1])
    afresh.observe(written, trace.tapped[:, trace.prompt - 1 :])
    for mine, theirs in zip(_context(network), _context(afresh), strict=True):
        assert mine.shape[2] == len(prompt.token_ids) - 1 + len(written)
        torch.testing.assert_close(mine, theirs, atol=1e-3, rtol=1e-3)


def _context(drafter: GuessingDrafter) -> list[Tensor]:
    if isinstance(drafter, BlockDrafter):
        return [part for layer in drafter._context for part in layer]
    assert isinstance(drafter, EagleDrafter)
    assert drafter._context is not None
    return list(drafter._context)


# vllm #53063, #54373: the draft turned by the target's rotary layout, without an error.
def test_16_rotary_positions_are_the_drafts_own_and_a_wrong_scheme_is_refused(tmp_path: Path) -> None:
    for scheme in RotaryScheme:
        save_draft(tmp_path / scheme.value, new_draft(scheme), TARGET.fingerprint)
        loaded = load_draft(tmp_path / scheme.value, TARGET.fingerprint).draft
        assert loaded.config == new_draft(scheme).config
        assert loaded.rotary.scheme is scheme
    # The target counts in three axes; a file that mixes both is refused.
    path = tmp_path / "mrope" / "config.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "rope_scaling": None}))
    with pytest.raises(SetupError, match=r"flatrope.scheme is 'mrope', expected 'flat'"):
        load_draft(tmp_path / "mrope", TARGET.fingerprint)


# The same, seen from outside; and ollama #17865, mlx-serve #224, vllm #34607, #22935: a draft silently not used.
@pytest.mark.parametrize("silent", [False, True])
def test_16_22_a_draft_that_is_no_use_is_told_of(silent: bool) -> None:
    nano = NanoTarget(NANO_MODEL, tiny_tokenizer(), TAPS)
    nano.token_budget = 5
    # Random weights stand for a draft that counts wrongly: no error, and never right.
    drafter = NoGuesses() if silent else BlockDrafter(new_draft(), nano.parts)
    reasoner = Reasoner(nano, drafter, BLOCK, Exactness(ExactnessMode.TOLERANT))
    for number in range(WINDOW):
        assert reasoner.health.problem == ""
        reasoner.decode(nano.prepare(noise_observation(number % 3)))
    assert ("proposed nothing" if silent else "hardly ever right") in reasoner.health.problem
    assert reasoner.health.speculating


class NoGuesses(NoDrafter):
    name = "silent"


# lmdeploy #4991: tapped layers guessed, or one off.
def test_17_tapped_layers_are_those_of_the_file_and_speculators_counts_one_on(tmp_path: Path) -> None:
    config = BlockDraftConfig(
        48, 130, (0, 2), heads=4, kv_heads=2, head_dim=12, feature_norm=False, predecessor_rank=0, mask_token=7
    )
    assert SpeculatorsLayout().write_config(config, None)["aux_hidden_state_layer_ids"] == [1, 3]
    save_draft(tmp_path, new_draft(), TARGET.fingerprint)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    assert content["dflash_config"]["target_layer_ids"] == [0, 2]
    for given, found in (([1, 2], (1, 2)), ([2, 0], (2, 0))):
        path.write_text(json.dumps({**content, "dflash_config": {"target_layer_ids": given}}))
        assert load_draft(tmp_path, TARGET.fingerprint).draft.config.tapped_layers == found
    path.write_text(json.dumps({**content, "dflash_config": {}}))
    with pytest.raises(SetupError, match="target_layer_ids"):
        load_draft(tmp_path, TARGET.fingerprint)
    # Behind layer i, not before it: the list of hidden states begins with the embeddings.
    prompt = pictures()
    _, read = target().prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    ids = torch.tensor([prompt.token_ids])
    with torch.inference_mode():
        types = (ids == IMAGE).int()
        levels = MODEL(input_ids=ids, mm_token_type_ids=types, output_hidden_states=True, **prompt.inputs).hidden_states
    torch.testing.assert_close(read.tapped[0], levels[1][0, :-1], atol=1e-3, rtol=1e-3)


# panbanda/higgs #204: tokens committed behind the end.
def test_19_counts_and_text_end_where_the_text_ends() -> None:
    seed, place = next((s, p) for s in SEEDS for p in (5, 6) if text(s)[p] not in text(s)[:p])
    cut = target(stop=text(seed)[place])
    decoded = Decoder(cut, knowing(1.0, seed, anticipates=False), BLOCK).decode(pictures(seed))
    stats = decoded.speculation
    # Seven proposed, and those behind the end neither accepted nor counted.
    assert (stats.rounds, stats.proposed, stats.accepted, stats.committed) == (1, 7, place, place)
    assert stats.acceptance_histogram == (*[0] * place, 1)
    assert decoded.rationale.text == str([*text(seed)[:place]])
    assert len(decoded.rationale.tokens) == place + 1
    spent = Decoder(target(BLOCK + 2), knowing(1.0, anticipates=False), BLOCK).decode(pictures())
    # Nine behind the first one: a block of eight, and one more; the end mark has won no round.
    assert (spent.speculation.rounds, spent.speculation.committed) == (2, BLOCK + 1)
    assert spent.rationale.text == str([*text()[: BLOCK + 2]])
    assert spent.token_ids[-1] == STOP


# transformers #27540: tests in which nothing is ever accepted, or in one round alone.
def test_20_everything_and_nothing_and_something_is_accepted_over_several_rounds() -> None:
    stats = {}
    for name, drafter in {
        "oracle": knowing(1.0, anticipates=False),
        "always-wrong": knowing(0.0),
        "random": knowing(0.5, branches=2),
    }.items():
        decoded = Decoder(target(), drafter, BLOCK).decode(pictures())
        assert decoded.token_ids == (*text(), STOP)
        stats[name] = decoded.speculation
    # 47 tokens behind the first one: five full blocks, then seven.
    assert stats["oracle"].acceptance_histogram == (0,) * 6 + (1, 5)
    assert stats["always-wrong"].acceptance_histogram == (LONG - 1,)
    assert stats["random"].rounds > 5
    assert stats["random"].acceptance_histogram[0] > 0
    assert len(stats["random"].acceptance_histogram) > 2


# vllm-ascend #14453, #14666: M-RoPE refused at the first picture only.
def test_23_rotary_sections_that_do_not_fit_are_refused_when_loaded(tmp_path: Path) -> None:
    save_draft(tmp_path, new_draft(RotaryScheme.MROPE), TARGET.fingerprint)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    for section in ([2, 2, 1], [3, 3], [6, 0]):
        path.write_text(json.dumps({**content, "rope_scaling": {**content["rope_scaling"], "mrope_section": section}}))
        with pytest.raises(SetupError, match="three numbers of pairs that add up to 6"):
            load_draft(tmp_path, TARGET.fingerprint)
    with pytest.raises(ValueError, match="three numbers of pairs that add up to 6"):
        DraftRotary(RotaryScheme.MROPE, 12, 1e4, (2, 2, 3))
    # The target's own as well.
    shipped = json.loads((SHIPPED_WEIGHTS / "config.json").read_text())
    path.write_text(json.dumps({**shipped, "mrope_section": [6, 5, 4]}))
    with pytest.raises(SetupError, match="head_dim is twice the sum of mrope_section"):
        NanoConfig.load(tmp_path)


# Ours: a cache without room for the last block.
@pytest.mark.parametrize("width", [0, -3, MAX_WIDTH + 1])
def test_25_a_block_that_no_cache_has_room_for_is_refused_at_once(width: int) -> None:
    with pytest.raises(InputError, match=f"width {width}, expected 1 to {MAX_WIDTH}"):
        Decoder(target(), None, width)
    with pytest.raises(InputError, match=f"width {width}, expected 1 to {MAX_WIDTH}"):
        Reasoner(target(), NoDrafter(), width, Exactness())


def test_25_the_widest_block_fits_behind_the_last_token() -> None:
    for budget in (1, 3):
        decoded = Decoder(target(budget), knowing(0.5, branches=40), MAX_WIDTH).decode(pictures())
        assert decoded.token_ids == (*text()[:budget], STOP)


class Interrupted(RehearsedDrafter):
    """Has another request decoded whenever it is asked."""

    other: Decoder[ModelPrompt, ModelState]
    overheard: list[Decoded]

    def propose(self, nodes: int, depth: int) -> Candidates:
        self.overheard.append(self.other.decode(pictures(1)))
        return super().propose(nodes, depth)


def test_requests_that_take_turns_do_not_disturb_each_other() -> None:
    shared = target(20)
    plain = [Decoder(shared, None, BLOCK).decode(pictures(seed)) for seed in (0, 1)]
    drafter = Interrupted(text(0), VOCABULARY, Rehearsal(0.6, 2))
    drafter.other, drafter.overheard = Decoder(shared, knowing(0.6, 1), BLOCK), []
    assert bits(Decoder(shared, drafter, BLOCK).decode(pictures(0))) == bits(plain[0])
    assert len(drafter.overheard) > 3
    assert all(bits(decoded) == bits(plain[1]) for decoded in drafter.overheard)


def test_rows_of_two_requests_read_alternately() -> None:
    """Token by token, with unequal progress: one request a token, the other what a block of its text brings."""
    shared = target(20)
    opened = [shared.prefill(pictures(s), Block.of(pictures(s).token_ids[-1], Candidates()).padded(8)) for s in (0, 1)]
    states, places = [state for state, _ in opened], [0, 0]
    for turn in range(4):
        for request, count in ((0, 1), (1, turn + 1)):
            part = text(request)[places[request] : places[request] + count]
            block = Block.of(part[0], Candidates.chain(part[1:], "")).padded(8)
            logits = shared.step(states[request], block).logits.masked_fill(shared.forbidden, -torch.inf)
            places[request] += count
            following = text(request)[places[request] - count + 1 : places[request] + 1]
            assert tuple(logits.argmax(-1)[:count].tolist()) == following
            shared.commit(states[request], range(count))
    assert places == [4, 10]
    assert [state.length for state in states] == [len(pictures(s).token_ids) + places[s] for s in (0, 1)]
