"""nano as a target, against transformers' own Qwen3-VL as the judge."""

from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_nano import CAMERAS, noise_observation, noise_picture, tiny_model, tiny_target, tiny_tokenizer

from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.slots import cache_argument
from flatrope_planner.speculation.target import StepResult
from flatrope_planner.vla.nano import NanoPrompt, NanoState, NanoTarget
from flatrope_planner.vla.prompt import build_prompt
from flatrope_planner.vla.vision import patchify

GRID = torch.tensor([[1, 10, 28]] * 4)


def pixel_values(pictures: torch.Tensor) -> torch.Tensor:
    """Patches as Qwen's processor lays them out: each still picture twice in time."""
    return patchify(pictures).reshape(-1, 3, 1, 256).expand(-1, 3, 2, 256).reshape(-1, 1536)


def pictures_of(observation: Observation) -> torch.Tensor:
    return torch.from_numpy(np.stack([f.image for frames in observation.frames.values() for f in frames]))


def begun(target: NanoTarget, prompt: NanoPrompt) -> tuple[NanoState, StepResult]:
    """The state behind a prompt, and what the pass said of its last token."""
    state, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    return state, read.block


@pytest.fixture(scope="module")
def target() -> NanoTarget:
    return tiny_target()


def test_vision_equals_transformers() -> None:
    model = tiny_model()
    pictures = torch.from_numpy(np.stack([noise_picture(i) for i in range(4)]))
    with torch.inference_mode():
        got = model.vision(pictures)
        want = model.vlm.model.visual(pixel_values(pictures), GRID)
    torch.testing.assert_close(got.tokens.flatten(0, 1), want.pooler_output, atol=1e-5, rtol=1e-4)
    for mine, theirs in zip(got.deepstack, want.deepstack_features, strict=True):
        torch.testing.assert_close(mine.flatten(0, 1), theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_greedy_rationale_equals_generate(seed: int) -> None:
    model, target = tiny_model(seed), tiny_target(seed)
    observation = noise_observation(seed)
    prompt = target.prepare(observation)
    decoded = Decoder(target).decode(prompt)

    ids = torch.tensor([list(prompt.token_ids)])
    generated = model.vlm.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == model.image_pad).int(),
        pixel_values=pixel_values(pictures_of(observation)),
        image_grid_thw=GRID,
        max_new_tokens=target.token_budget,
        do_sample=False,
        suppress_tokens=list(tiny_tokenizer().history_ids),
        eos_token_id=target.stop_token,
        pad_token_id=0,
    )[0, ids.shape[1] :].tolist()
    assert len(set(generated)) > 5
    assert list(decoded.token_ids[: len(generated)]) == generated


def test_reading_token_by_token_equals_one_pass_over_everything(target: NanoTarget) -> None:
    prompt = target.prepare(noise_observation(3))
    words = tiny_tokenizer().encode("Stop for the pedestrian who crosses from the left.")
    state, first = begun(target, prompt)
    rows = [first.logits[0]]
    for word in words:
        rows.append(target.step(state, Block.of(word, Candidates())).logits[0])
        target.commit(state, [0])
    _, at_once = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates.chain(words, "test")))
    torch.testing.assert_close(torch.stack(rows), at_once.block.logits, atol=1e-4, rtol=1e-4)


def test_branches_of_a_tree_do_not_see_each_other(target: NanoTarget) -> None:
    prompt = target.prepare(noise_observation(4))
    anchor, a, b, c = tiny_tokenizer().encode("Stop for the van")
    state, _ = begun(target, prompt)
    tree = Candidates(tokens=(a, b, c), parents=(-1, -1, 1), sources=("test",) * 3)
    logits = target.step(state, Block.of(anchor, tree)).logits
    chain = target.step(state, Block.of(anchor, Candidates.chain([b, c], "test"))).logits
    torch.testing.assert_close(logits[[0, 2, 3]], chain, atol=1e-4, rtol=1e-4)


def test_kept_rows_of_a_tree_are_the_same_as_a_chain(target: NanoTarget) -> None:
    prompt = target.prepare(noise_observation(4))
    anchor, a, b, c = tiny_tokenizer().encode("Stop for the van")
    following = []
    for candidates, kept in (
        (Candidates((a, b, c), (-1, -1, 1), ("test",) * 3), [0, 2, 3]),
        (Candidates.chain([b, c], "test"), [0, 1, 2]),
    ):
        state, _ = begun(target, prompt)
        target.step(state, Block.of(anchor, candidates))
        target.commit(state, kept)
        assert state.length == len(prompt.token_ids) + 3
        following.append(target.step(state, Block.of(a, Candidates())).logits)
    torch.testing.assert_close(*following, atol=1e-4, rtol=1e-4)


def test_requests_do_not_disturb_each_other(target: NanoTarget) -> None:
    decoder = Decoder(target)
    prompts = [target.prepare(noise_observation(seed)) for seed in (5, 6)]
    alone = [decoder.decode(prompt).token_ids for prompt in prompts]
    assert [decoder.decode(prompt).token_ids for prompt in reversed(prompts)] == alone[::-1]


def test_remembered_pictures_change_nothing_and_are_bounded() -> None:
    remembering, forgetful = tiny_target(), tiny_target()
    forgetful.vision_cache = type(forgetful.vision_cache)(remembering._encode, capacity=0)
    first, second = noise_observation(7), noise_observation(8)
    shared: dict[str, tuple[CameraFrame, ...]] = {
        camera: (CameraFrame(first.frames[camera][1].stamp_ns, first.frames[camera][1].image), frames[1])
        for camera, frames in second.frames.items()
    }
    following = Observation(second.t0_ns, shared, second.ego_history)
    remembering.prepare(first)
    assert remembering.vision_cache.misses == 4
    got, want = remembering.prepare(following), forgetful.prepare(following)
    assert (remembering.vision_cache.hits, remembering.vision_cache.misses) == (2, 6)
    assert torch.equal(got.features.tokens, want.features.tokens)
    assert all(torch.equal(a, b) for a, b in zip(got.features.deepstack, want.features.deepstack, strict=True))
    assert len(remembering.vision_cache) == 4
    for seed in range(20, 40):
        remembering.prepare(noise_observation(seed))
    assert len(remembering.vision_cache) == 2 * 2 * 11


@pytest.mark.parametrize("leap_ns", [10_000_000_000, -10_000_000_000])
def test_pictures_of_another_time_are_forgotten(leap_ns: int) -> None:
    target = tiny_target()
    target.prepare(noise_observation(7))
    other = noise_observation(8)
    frames = {
        camera: tuple(replace(frame, stamp_ns=frame.stamp_ns + leap_ns) for frame in pair)
        for camera, pair in other.frames.items()
    }
    target.prepare(replace(other, frames=frames))
    assert len(target.vision_cache) == 4


@pytest.mark.parametrize("every_s", [0.05, 0.1, 0.5])
def test_no_picture_is_encoded_twice_however_often_one_plans(every_s: float) -> None:
    target = tiny_target()
    shown = set()
    for tick in range(25):
        # Numbers of the pictures of cameras that take one every 0.05 s.
        newest = 10 + round(20 * every_s) * tick
        numbers = {
            camera: (start + newest - 10, start + newest) for camera, start in zip(CAMERAS, (0, 1000), strict=True)
        }
        frames = {
            camera: tuple(CameraFrame(50_000_000 * (number % 1000), noise_picture(number)) for number in pair)
            for camera, pair in numbers.items()
        }
        shown |= {number for pair in numbers.values() for number in pair}
        target.prepare(replace(noise_observation(0), frames=frames))
    assert target.vision_cache.misses == len(shown)


def test_equal_stamps_of_two_drives_are_not_taken_for_the_same_picture(target: NanoTarget) -> None:
    one, other = target.prepare(noise_observation(9)), target.prepare(noise_observation(10))
    assert not torch.equal(one.features.tokens, other.features.tokens)


def test_trajectories_are_drawn_by_seed(target: NanoTarget) -> None:
    state = Decoder(target).decode(target.prepare(noise_observation(11))).state
    one, other = target.act(state, seed=1, samples=2)
    again, _ = target.act(state, seed=1, samples=2)
    (different,) = target.act(state, seed=2, samples=1)
    np.testing.assert_array_equal(one.position_m, again.position_m)
    assert np.abs(one.position_m - other.position_m).max() > 1e-3
    assert np.abs(one.position_m - different.position_m).max() > 1e-3
    assert (one.speed_mps >= 0.0).all()
    middle, same = target.act(state, seed=None, samples=2)
    np.testing.assert_array_equal(middle.position_m, same.position_m)


def test_tapped_states_are_those_of_the_layers_asked_for() -> None:
    model = tiny_model()
    plain, tapping = NanoTarget(model, tiny_tokenizer()), NanoTarget(model, tiny_tokenizer(), tapped_layers=(2,))
    prompt = plain.prepare(noise_observation(12))
    block = Block.of(prompt.token_ids[-1], Candidates())
    assert plain.prefill(prompt, block)[1].tapped.shape == (0, len(prompt.token_ids) - 1, 48)
    assert tapping.prefill(prompt, block)[1].tapped.shape == (1, len(prompt.token_ids) - 1, 48)
    (_, untapped), (_, tapped) = begun(plain, prompt), begun(tapping, prompt)
    assert tapped.tapped.shape == (1, 1, 48)
    # Behind the last layer only the final norm and the head are left.
    with torch.inference_mode():
        logits = model.logits(model.vlm.model.language_model.norm(tapped.tapped[0, 0]))
    torch.testing.assert_close(logits, untapped.logits[0], atol=1e-5, rtol=1e-4)


def test_saved_weights_come_back(tmp_path: Path) -> None:
    model = tiny_model()
    tiny_tokenizer().save(tmp_path)
    model.config.save(tmp_path)
    save_file(
        {name: value.detach().clone() for name, value in model.named_parameters()}, tmp_path / "model.safetensors"
    )
    loaded, built = NanoTarget.load(tmp_path), NanoTarget(model, tiny_tokenizer())
    observation = noise_observation(13)
    assert loaded.observation_spec == built.observation_spec
    decoded = [Decoder(each).decode(each.prepare(observation)).token_ids for each in (loaded, built)]
    assert decoded[0] == decoded[1]


def test_missing_and_foreign_weights_are_refused(tmp_path: Path) -> None:
    tiny_tokenizer().save(tmp_path)
    with pytest.raises(SetupError, match=r"config\.json: no configuration of nano"):
        NanoTarget.load(tmp_path)
    tiny_model().config.save(tmp_path)
    with pytest.raises(SetupError, match=r"model\.safetensors: no weights of nano"):
        NanoTarget.load(tmp_path)
    save_file({"a": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(SetupError, match="do not fit the configuration"):
        NanoTarget.load(tmp_path)


def test_wrong_cameras_and_endless_prompts_are_refused(target: NanoTarget) -> None:
    observation = noise_observation(14)
    short = Observation(0, {"front_wide": observation.frames["front_wide"]}, observation.ego_history)
    with pytest.raises(InputError, match=r"pictures \{'front_wide': 2\}, expected"):
        target.prepare(short)
    prompt = target.prepare(observation)
    tokens = build_prompt(tiny_tokenizer(), 4, [0] * 48, "turn left, then right, " * 40)
    prompt = replace(prompt, tokens=tokens)
    with pytest.raises(InputError, match="more than 512; use a shorter command"):
        target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))


def test_the_cache_goes_by_the_name_that_this_version_of_transformers_knows() -> None:
    def renamed(inputs_embeds: object, cache: object = None, **_: object) -> None:
        """Newer versions."""

    def before(inputs_embeds: object, past_key_values: object = None, **_: object) -> None:
        """Older ones, which take `cache` among the rest and ignore it."""

    assert (cache_argument(renamed), cache_argument(before)) == ("cache", "past_key_values")
    text_model = tiny_model().vlm.model.language_model
    assert cache_argument(text_model.forward) in signature(text_model.forward).parameters
