"""AutoVLA's checkpoints against runs of its published code on the same files.

`autovla_recorded.npz` holds what AutoVLA (c9c66f3), with transformers 4.49.0 on a CPU in float32, made of the
checkpoint that `tiny_autovla` writes and of its cases: prompts with and without reasoning, positions, prepared
pictures, greedy text without repetition penalty, and what its action tokenizer made of that text and of random actions.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_alpamayo import history
from tiny_autovla import ACTIONS, CASES, observation, outlines, tokenizer, write_checkpoint

from flatrope_planner.domain import EgoHistory, Floats, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.planning.driven_arc import DrivenArc
from flatrope_planner.planning.plan_validator import refusal
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.vla.autovla.cameras import CAMERAS
from flatrope_planner.vla.autovla.codebook import Codebook
from flatrope_planner.vla.autovla.ego_motion import EgoMotion, ego_motion
from flatrope_planner.vla.autovla.pictures import patches_of, resized, target_size
from flatrope_planner.vla.autovla.prompt import VideoSlot, motion_text, prompt_text
from flatrope_planner.vla.autovla.target import STEPS, AutoVlaTarget
from flatrope_planner.vla.autovla.trajectory import trajectory_of
from flatrope_planner.vla.autovla.vocabulary import action_token
from flatrope_planner.vla.prompt import mrope_positions
from flatrope_planner.vla.target import Running

RECORDED = np.load(Path(__file__).parent / "autovla_recorded.npz")


def recorded(case: str, name: str) -> NDArray[Any]:
    found: NDArray[Any] = RECORDED[f"{case}_{name}"]
    return found


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("autovla"), shards=2)


@pytest.fixture(scope="module")
def target(checkpoint: Path) -> AutoVlaTarget:
    loaded = AutoVlaTarget.load(checkpoint, running=Running(device="cpu"))
    loaded.token_budget = 40
    return loaded


@pytest.mark.parametrize("case", CASES)
def test_prompts_and_positions_are_theirs_token_by_token(target: AutoVlaTarget, case: str) -> None:
    prompt = target.prepare(observation(CASES[case]))
    assert list(prompt.token_ids) == recorded(case, "ids").tolist()
    assert prompt.tokens.positions.tolist() == recorded(case, "positions").tolist()


def test_a_prompt_without_reasoning_is_theirs(tmp_path: Path) -> None:
    direct = write_checkpoint(tmp_path, changes={"autovla": {"use_cot": False, "min_pixels": 4704, "max_pixels": 9408}})
    prompt = AutoVlaTarget.load(direct).prepare(observation(CASES["cruise"]))
    assert list(prompt.token_ids) == recorded("cruise", "direct_ids").tolist()


@pytest.mark.parametrize("case", CASES)
def test_greedy_texts_and_their_trajectories_are_theirs(target: AutoVlaTarget, case: str) -> None:
    decoded = Decoder(target, None, 8).decode(target.prepare(observation(CASES[case])))
    text = recorded(case, "text").tolist()
    assert list(decoded.token_ids)[:40] == text[:40]
    assert decoded.rationale.complete == (text[-1] == target.stop_token)
    np.testing.assert_allclose(
        Codebook(outlines()[:, -1]).roll_out(target.actions(text)), recorded(case, "trajectory"), atol=1e-5
    )
    if decoded.rationale.complete:
        (planned,) = target.act(decoded.state, None, 1)
        np.testing.assert_allclose(planned.position_m[4:50:5, :2], recorded(case, "trajectory")[:, :2], atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_logits_are_theirs(target: AutoVlaTarget, case: str) -> None:
    prompt, text = target.prepare(observation(CASES[case])), recorded(case, "text").tolist()
    _, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates.chain(text[:30], "")))
    places = torch.from_numpy(RECORDED["places"].astype(np.int64))
    theirs = torch.from_numpy(recorded(case, "logits")[:31])
    torch.testing.assert_close(read.block.logits[: len(theirs), places], theirs, atol=1e-4, rtol=0.0)


@pytest.mark.parametrize("case", ["tight", "fast"])
def test_pictures_are_theirs_to_the_bit(case: str) -> None:
    seen, patches = observation(CASES[case]).frames, []
    for camera in CAMERAS:
        pictures = [frame.image for frame in seen[camera]]
        height, width, _ = pictures[0].shape
        size = target_size(height, width, 4704, 9408)
        assert [2, *(side // 14 for side in size)] == recorded(case, "grid")[0].tolist()
        small = [resized(picture, size) for picture in pictures]
        patches += [patches_of(np.stack(small[:2])), patches_of(np.stack(small[2:]))]
    assert np.array_equal(np.concatenate(patches)[::35, ::212], recorded(case, "pixels"))


@pytest.mark.parametrize(
    ("given", "size"), [((1080, 1920), (224, 420)), ((900, 1600), (224, 420)), ((70, 90), (308, 392))]
)
def test_sizes_are_whole_merged_patches_within_the_pixels(given: tuple[int, int], size: tuple[int, int]) -> None:
    assert target_size(*given, 109_760, 109_760) == size


def test_pictures_of_no_use() -> None:
    with pytest.raises(InputError, match="expected sides that differ less than 200-fold"):
        target_size(1, 400, 4096, 16384)
    with pytest.raises(InputError, match="does not fit into 4704 pixels of whole patches"):
        target_size(40, 4000, 4096, 4704)


def test_actions_roll_out_as_theirs() -> None:
    codebook = Codebook(outlines()[:, -1])
    for actions, theirs in zip(RECORDED["sequences"].tolist(), RECORDED["rolled"], strict=True):
        np.testing.assert_allclose(codebook.roll_out(actions), theirs, atol=1e-5)


def test_action_tokens_are_spelt_as_theirs(target: AutoVlaTarget) -> None:
    actions = RECORDED["sequences"][1].tolist()
    text = str(RECORDED["action_text"])
    assert "".join(map(action_token, actions)) == text
    ids = target._tokenizer.encode(text)
    assert target.actions(ids) == actions
    assert ids[0] == tokenizer(0).get_vocab_size() + actions[0]


def test_a_half_turn_by_quarter_turns() -> None:
    """Each action drives 10 m and turns a quarter left: after four the ego is back where it was."""
    quarter = np.array([[-1.0, 2.4], [1.0, 2.4], [1.0, -2.4], [-1.0, -2.4]], np.float32) + np.array([10.0, 0.0])
    poses = Codebook(quarter[None].astype(np.float32)).roll_out([0] * 4)
    np.testing.assert_allclose(poses[:, :2], [[10, 0], [10, 10], [0, 10], [0, 0]], atol=1e-5)
    np.testing.assert_allclose(np.cos(poses[:, 2]), [0, -1, 0, 1], atol=1e-6)


def test_missing_actions_rest_and_further_ones_are_left_out(target: AutoVlaTarget) -> None:
    first = target._tokenizer.actions.start
    assert target.actions([3, first + 5, 4, first + 6, target.stop_token]) == [5, 6, *[0] * 8]
    assert target.actions(range(first, first + 30)) == list(range(STEPS))


def test_a_rationale_is_what_stands_before_the_actions(target: AutoVlaTarget) -> None:
    thought = "<think>\nStop for the pedestrian.\n</think>\n<answer>\nThe final output action is: "
    ids = target._tokenizer.encode(f"{thought}{action_token(3)}{action_token(0)}\n</answer><|im_end|>")
    assert target.text(ids) == thought.strip()
    assert target.text(target._tokenizer.encode("Stop.<|im_end|>")) == "Stop."
    assert target.text([]) == ""


def test_the_ego_motion_is_pinned(target: AutoVlaTarget) -> None:
    prompt = target.prepare(observation(CASES["cruise"]))
    pinned = target._tokenizer.decode([prompt.token_ids[place] for place in prompt.pinned])
    assert pinned == motion_text(ego_motion(history(8.0, 0.01)), "turn left")


@pytest.mark.parametrize(
    ("speed", "curvature", "said"), [(0.0, 0.0, (0.0, 0.0)), (8.0, 0.01, (8.0, 0.64)), (4.0, 0.15, (4.0, 2.4))]
)
def test_the_ego_motion_is_that_of_the_drive(speed: float, curvature: float, said: tuple[float, float]) -> None:
    motion = ego_motion(history(speed, curvature))
    assert motion.speed_mps == pytest.approx(said[0], rel=0.005, abs=1e-6)
    assert motion.acceleration_mps2 == pytest.approx(said[1], rel=0.01, abs=1e-6)


def test_braking_is_an_acceleration() -> None:
    time_s = np.arange(-15, 1) * 0.1
    position = np.stack([6.0 * time_s - time_s**2, 0 * time_s, 0 * time_s], axis=1)
    motion = ego_motion(EgoHistory(position, np.tile(np.eye(3), (16, 1, 1))))
    assert motion.speed_mps == pytest.approx(6.0, rel=0.01)
    assert motion.acceleration_mps2 == pytest.approx(2.0, rel=0.05)


def test_words_of_a_prompt() -> None:
    said = motion_text(EgoMotion(-1.23456, 0.5), "TURN Left")
    assert said.startswith(
        "The current velocity of the vehicle is 1.235 m/s, and the current acceleration is 0.500 m/s²"
    )
    assert "The driving instruction is: turn left. Based" in said
    assert "The driving instruction is: unknown. Based" in motion_text(EgoMotion(0.0, 0.0), None)
    text = prompt_text([VideoSlot(0, 1, 1, 1), VideoSlot(2, 1, 1, 1)], said, reasons=False, numbered=True)
    assert "at 2 Hz.Video 2: <|vision_start|><|video_pad|><|vision_end|>The current" in text
    assert "The second video presents the front-right view" in text
    assert "Video" not in prompt_text([VideoSlot(0, 1, 1, 1)], said, reasons=True)


def test_positions_go_on_behind_the_highest() -> None:
    """A video of one token a frame spans more in time than in width: Qwen2.5-VL's code counts on behind that."""
    ids = np.array([1, 9, 9, 9, 1])
    positions = mrope_positions(ids, 9, [VideoSlot(0, 3, 1, 1).places(stride=2)])
    assert positions.tolist() == [[0, 1, 3, 5, 6], [0, 1, 1, 1, 6], [0, 1, 1, 1, 6]]


def poses_of(speed: float, curvature: float = 0.0) -> Floats:
    """Every half second of a drive along a circle."""
    way = speed * 0.5 * np.arange(1, STEPS + 1)
    yaw = way * curvature
    if not curvature:
        return np.stack([way, 0 * way, yaw], axis=1)
    return np.stack([np.sin(yaw) / curvature, (1 - np.cos(yaw)) / curvature, yaw], axis=1)


@pytest.mark.parametrize(("speed", "curvature"), [(10.0, 0.0), (10.0, 0.02), (5.0, -0.1), (0.0, 0.0)])
def test_a_steady_drive_stays_one(speed: float, curvature: float) -> None:
    planned = trajectory_of(poses_of(speed, curvature), speed)
    time_s = np.arange(1, 51) * 0.1
    radius = np.inf if not curvature else 1 / curvature
    expected = speed * time_s if not curvature else radius * np.sin(speed * time_s * curvature)
    np.testing.assert_allclose(planned.position_m[:50, 0], expected, atol=2e-3)
    np.testing.assert_allclose(planned.speed_mps, speed, atol=0.03)
    np.testing.assert_allclose(planned.yaw_rad[:50], speed * time_s * curvature, atol=2e-3)
    assert refusal(planned, DrivenArc(speed, curvature)) == ""
    # Behind the plan, straight on.
    np.testing.assert_allclose(np.diff(planned.yaw_rad[49:]), 0.0)
    np.testing.assert_allclose(np.hypot(*np.diff(planned.position_m[49:, :2], axis=0).T), speed * 0.1, atol=3e-3)


def stopping(from_mps: float, decel: float) -> Floats:
    time_s = np.minimum(0.5 * np.arange(1, STEPS + 1), from_mps / decel)
    way = from_mps * time_s - decel * time_s**2 / 2
    return np.stack([way, 0 * way, 0 * way], axis=1)


def test_a_stop_comes_to_rest_and_never_reverses() -> None:
    planned = trajectory_of(stopping(6.0, 2.4), 6.0)
    assert (np.diff(planned.position_m[:, 0]) >= -1e-9).all()
    assert (planned.speed_mps > -1e-9).all()
    np.testing.assert_allclose(planned.speed_mps[30:], 0.0, atol=1e-9)
    assert planned.position_m[-1, 0] == pytest.approx(7.5)
    assert refusal(planned, DrivenArc(6.0, 0.0)) == ""


def test_a_stop_in_the_steps_of_a_codebook_is_one() -> None:
    """A codebook that tells every 8 cm apart: at rest the poses seem to creep to and fro."""
    poses = stopping(6.0, 2.4)
    poses[:, 0] += 0.04 * (-1.0) ** np.arange(STEPS)
    planned = trajectory_of(poses, 6.0)
    assert (np.diff(planned.position_m[:, 0]) >= -1e-9).all()
    assert np.abs(planned.position_m[4:50:5, 0] - poses[:, 0]).max() < 0.1
    assert refusal(planned, DrivenArc(6.0, 0.0)) == ""


def test_whoever_stands_and_then_goes_does_not_roll_back() -> None:
    way = np.maximum(0.5 * np.arange(1, STEPS + 1) - 2.0, 0.0) ** 2
    planned: Trajectory = trajectory_of(np.stack([way, 0 * way, 0 * way], axis=1), 0.0)
    assert (np.diff(planned.position_m[:, 0]) >= -1e-9).all()
    assert refusal(planned, DrivenArc(0.0, 0.0)) == ""


def test_a_plan_that_reverses_keeps_its_heading() -> None:
    planned = trajectory_of(poses_of(-1.0), -1.0)
    np.testing.assert_allclose(planned.speed_mps, -1.0, atol=1e-9)
    np.testing.assert_allclose(planned.yaw_rad, 0.0, atol=1e-9)


def test_actions_of_a_trajectory_lead_to_its_speeds_and_headings() -> None:
    poses = Codebook(outlines()[:, -1]).roll_out(RECORDED["sequences"][2].tolist())
    planned = trajectory_of(poses, 5.0)
    np.testing.assert_allclose(5.0 + np.cumsum(planned.action[:, 0]) * 0.1, planned.speed_mps, atol=1e-9)
    assert np.isfinite(planned.action).all()
    assert len(outlines()) == ACTIONS
