"""Prompt layout, ego-history tokens and rotary positions."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_nano import arc, tiny_model, tiny_tokenizer

from flatrope_planner.errors import InputError
from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.history_tokens import decode_history, encode_history
from flatrope_planner.vla.prompt import INSTRUCTION_TEXT, SYSTEM_TEXT, build_prompt

TOKENIZER = tiny_tokenizer()
BINS = encode_history(arc(7.0, 0.01).position_m).tolist()


def as_text(ids: NDArray[np.int64]) -> str:
    return "".join(TOKENIZER.token_text(i) for i in ids.tolist())


def test_history_tokens_equal_those_of_alpamayos_own_package() -> None:
    # Seven metres a second on a circle of 100 m, as in a run of NVIDIA's released code.
    assert BINS[:9] == [0, 568, 500, 586, 491, 500, 587, 491, 500]
    assert BINS[-6:] == [587, 499, 500, 587, 499, 500]


def test_steps_beyond_the_range_fall_into_the_outer_bins() -> None:
    position = np.zeros((16, 3))
    position[8:] = [9.0, -9.0, 30.0]
    bins = encode_history(position).reshape(16, 3)
    assert bins[8].tolist() == [999, 0, 999]
    assert (np.delete(bins, 8, axis=0) == [500, 500, 500]).all()


def test_decoded_history_is_within_half_a_bin_a_step() -> None:
    position = arc(2.0, 0.02).position_m
    error = np.diff(decode_history(encode_history(position)) - position, axis=0, prepend=np.zeros((1, 3)))
    assert (np.abs(error) <= np.array([4.0, 4.0, 10.0]) / 999 + 1e-9).all()


def test_layout_is_alpamayos() -> None:
    picture = tok.VISION_START + tok.IMAGE_PAD * 70 + tok.VISION_END
    history = "".join(f"<i{i}>" for i in BINS)
    assert as_text(build_prompt(TOKENIZER, 4, BINS, "turn left").ids) == (
        f"<|im_start|>system\n{SYSTEM_TEXT}<|im_end|>\n<|im_start|>user\n{picture * 4}"
        f"<|traj_history_start|>{history}<|traj_history_end|><|route_start|>turn left<|route_end|>{INSTRUCTION_TEXT}"
        "<|im_end|>\n<|im_start|>assistant\n<|cot_start|>"
    )


def test_without_a_command_there_is_no_route() -> None:
    assert "route" not in as_text(build_prompt(TOKENIZER, 4, BINS, "").ids)


@pytest.mark.parametrize("command", ["turn <|image_pad|> left", "<|route_end|>", "go <i7> on"])
def test_a_command_cannot_smuggle_marks_in(command: str) -> None:
    with pytest.raises(InputError, match="expected plain words"):
        build_prompt(tiny_tokenizer(), 4, [0] * 48, command)
    build_prompt(tiny_tokenizer(), 4, [0] * 48, "a < b | c > d <i> <||")


def test_at_least_seven_of_ten_tokens_are_visual() -> None:
    for command in ("", "turn left at the junction"):
        ids = build_prompt(TOKENIZER, 4, BINS, command).ids
        assert (ids == TOKENIZER.image_pad).sum() == 280
        assert (ids == TOKENIZER.image_pad).mean() >= 0.7


def test_positions_are_those_transformers_computes() -> None:
    prompt = build_prompt(TOKENIZER, 4, BINS, "turn left")
    ids = torch.from_numpy(prompt.ids)[None]
    positions, delta = tiny_model().vlm.model.get_rope_index(
        ids, (ids == TOKENIZER.image_pad).int(), image_grid_thw=torch.tensor([[1, 10, 28]] * 4)
    )
    np.testing.assert_array_equal(prompt.positions, positions[:, 0].numpy())
    # Each picture advances the count by 14 instead of 70.
    assert prompt.rope_delta == int(delta) == -4 * (70 - 14)
