"""Alpamayo's checkpoints against runs of NVIDIA's own code on the same files.

`alpamayo_recorded.npz` holds what `alpamayo_r1` (1cba38c) and `alpamayo1_5` (f42e594), with transformers 4.57.6 on a
CPU in float32, made of the checkpoints that `tiny_alpamayo` writes and of its cases: greedy text (top_k 1), and
trajectories from the noise of the case's seed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_alpamayo import CASES, observation, write_checkpoint

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.pictures import resized, target_size
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.request import VlaState
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.vision import patchify

RECORDED = np.load(Path(__file__).parent / "alpamayo_recorded.npz")


def recorded(target: AlpamayoTarget, case: str, name: str) -> NDArray[Any]:
    found: NDArray[Any] = RECORDED[f"{target.release.value}_{case}_{name}"]
    return found


def noise_of(case: str) -> torch.Tensor:
    torch.manual_seed(CASES[case].seed)
    return torch.randn(1, 64, 2)


@pytest.fixture(scope="module", params=list(Release), ids=lambda release: release.value)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AlpamayoTarget:
    checkpoint = write_checkpoint(tmp_path_factory.mktemp("alpamayo"), request.param, shards=2)
    return AlpamayoTarget.load(checkpoint, running=Running(CAMERA_NAMES, device="cpu"))


@pytest.fixture(scope="module")
def decoded(target: AlpamayoTarget) -> dict[str, DecodedRationale[VlaState]]:
    return {name: Decoder(target, None, 8).decode(target.prepare(observation(case))) for name, case in CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_prompts_are_theirs_token_by_token(target: AlpamayoTarget, case: str) -> None:
    assert list(target.prepare(observation(CASES[case])).token_ids) == recorded(target, case, "ids").tolist()


@pytest.mark.parametrize("case", CASES)
def test_greedy_texts_are_theirs(
    target: AlpamayoTarget, decoded: dict[str, DecodedRationale[VlaState]], case: str
) -> None:
    # Theirs goes on for one token behind the stop token.
    text = recorded(target, case, "text").tolist()
    assert list(decoded[case].token_ids) == text[: text.index(target.stop_token) + 1]
    assert decoded[case].rationale.text == str(recorded(target, case, "cot"))
    assert decoded[case].rationale.complete


@pytest.mark.parametrize("case", CASES)
def test_logits_are_theirs(target: AlpamayoTarget, case: str) -> None:
    prompt, text = target.prepare(observation(CASES[case])), recorded(target, case, "text").tolist()
    block = Block.of(prompt.token_ids[-1], Candidates.chain(text[:-1], ""))
    _, read = target.prefill(prompt, block)
    places = torch.from_numpy(recorded(target, case, "places").astype(np.int64))
    theirs = torch.from_numpy(recorded(target, case, "logits").astype(np.float32))
    torch.testing.assert_close(read.block.logits[:, places], theirs, atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("case", ["standing", "cruise", "tight", "fast"])
def test_trajectories_are_theirs(
    target: AlpamayoTarget, decoded: dict[str, DecodedRationale[VlaState]], case: str
) -> None:
    state, noise = decoded[case].state, noise_of(case)
    action = recorded(target, case, "action")
    np.testing.assert_allclose(target.scaled_actions(state, noise)[0], action, atol=1e-5)
    (trajectory,) = target.trajectories(state, noise)
    np.testing.assert_allclose(trajectory.position_m, recorded(target, case, "xyz"), atol=1e-4)
    np.testing.assert_allclose(trajectory.yaw_rad, recorded(target, case, "yaw"), atol=1e-5)


def test_several_trajectories_share_one_rationale(
    target: AlpamayoTarget, decoded: dict[str, DecodedRationale[VlaState]]
) -> None:
    state = decoded["standing"].state
    first, second = target.act(state, seed=0, samples=2)
    (alone,) = target.trajectories(state, noise_of("standing"))
    np.testing.assert_allclose(first.position_m, alone.position_m, atol=1e-5)
    assert np.abs(first.position_m - second.position_m).max() > 1e-2
    assert state.length == len(recorded(target, "standing", "ids")) + len(decoded["standing"].token_ids)


def test_guidance_is_theirs(target: AlpamayoTarget, decoded: dict[str, DecodedRationale[VlaState]]) -> None:
    prompt, written = target.prepare(observation(CASES["guided"])), decoded["guided"]
    if target.release is Release.R1:
        with pytest.raises(InputError, match="the prompt has no route"):
            target.without_route(prompt, written.token_ids)
        return
    plain = target.without_route(prompt, written.token_ids)
    assert plain.length < written.state.length
    guided = target.guided_actions(written.state, plain, noise_of("guided"), 1.5)
    np.testing.assert_allclose(guided[0], recorded(target, "guided", "action"), atol=1e-5)
    assert (guided - target.scaled_actions(written.state, noise_of("guided"))).abs().max() > 1e-3


@pytest.mark.parametrize("case", ["tight", "fast"])
def test_pictures_are_resized_as_by_the_processor(target: AlpamayoTarget, case: str) -> None:
    frames = observation(CASES[case]).frames
    size = target_size(CASES[case].height_px, CASES[case].width_px, 4096, 16384)
    assert (np.array(size) // 16).tolist() == recorded(target, case, "grid")[1:].tolist()
    pictures = np.stack([resized(frame.image, size) for camera in CASES[case].cameras for frame in frames[camera]])
    patches = patchify(torch.from_numpy(pictures)).flatten(0, 1)
    # Theirs shows each still picture twice in time.
    doubled = patches.reshape(-1, 3, 1, 256).expand(-1, 3, 2, 256).reshape(-1, 1536)
    np.testing.assert_allclose(doubled[::7, ::53], recorded(target, case, "pixels"), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "size"),
    [((1080, 1920), (320, 576)), ((900, 1600), (320, 576)), ((160, 448), (256, 704)), ((512, 512), (416, 416))],
)
def test_sizes_are_whole_merged_patches_within_the_pixels(given: tuple[int, int], size: tuple[int, int]) -> None:
    assert target_size(*given, 163_840, 196_608) == size


def test_a_line_is_no_picture() -> None:
    with pytest.raises(InputError, match="expected sides that differ less than 200-fold"):
        target_size(1, 400, 4096, 16384)
