"""Alpamayo's action space, history tokens and flow against the formulas they stand for, worked out step by step."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from flatrope_planner.vla.alpamayo.action_space import ActionSpace, speed_at_t0
from flatrope_planner.vla.alpamayo.config import ActionConfig, DeltaConfig
from flatrope_planner.vla.alpamayo.flow import guided, sample_flow
from flatrope_planner.vla.alpamayo.history import decode_steps, encode_steps

MEAN, STD = (0.02902694707164455, 0.0002692167976330542), (0.6810426736454882, 0.026148280660833106)
SPACE = ActionSpace(ActionConfig(MEAN, STD, 10, 1.0)).double()
BINS = DeltaConfig((-4.0, -4.0, -10.0), (4.0, 4.0, 10.0), 1000)
CASES = 1000
PERIOD_S = 0.1

Numbers = NDArray[np.float64]


def histories(seed: int = 0) -> tuple[Numbers, Numbers]:
    """1000 positions (16, 3) and headings (16,): the first 100 stand, the last 100 drive too fast for the bins."""
    random = np.random.default_rng(seed)
    end, accel, curvature = (random.uniform(low, high, CASES) for low, high in ((0, 30), (-6, 3), (-0.15, 0.15)))
    end[:100], accel[:100], end[900:] = 0.0, 0.0, end[900:] + 45.0
    time = (np.arange(16) - 15) * PERIOD_S
    speed = np.maximum(end[:, None] + accel[:, None] * time, 0.0)
    way = np.concatenate([np.zeros((CASES, 1)), (speed[:, 1:] + speed[:, :-1]) / 2 * PERIOD_S], axis=1)
    yaw = np.cumsum(curvature[:, None] * way, axis=1)
    middle = yaw - curvature[:, None] * way / 2
    x, y = np.cumsum(way * np.cos(middle), axis=1), np.cumsum(way * np.sin(middle), axis=1)
    x, y, last = x - x[:, -1:], y - y[:, -1:], yaw[:, -1:]
    position = [np.cos(last) * x + np.sin(last) * y, np.cos(last) * y - np.sin(last) * x]
    return np.stack([*position, random.normal(0, 0.02, x.shape)], axis=2), yaw - last


def rotations(yaw: Numbers) -> Tensor:
    cosine, sine, zero, one = np.cos(yaw), np.sin(yaw), np.zeros_like(yaw), np.ones_like(yaw)
    flat = np.stack([cosine, -sine, zero, sine, cosine, zero, zero, zero, one], axis=-1)
    return torch.from_numpy(flat.reshape(*yaw.shape, 3, 3))


POSITION, YAW = histories()


def actions(seed: int = 1) -> Numbers:
    """Scaled actions; some brake into reverse, some are at what the bins of a tokenizer could hold."""
    scaled = np.random.default_rng(seed).normal(0.0, 2.0, (CASES, 64, 2))
    scaled[100:200, :, 0], scaled[200:250], scaled[250:300] = -6.0, 10.0, -10.0
    return scaled


def test_motions_are_those_of_a_unicycle_step_by_step() -> None:
    speed_mps = np.random.default_rng(2).uniform(0.0, 30.0, CASES)
    speed_mps[:150] = 0.0
    scaled = actions()
    got = SPACE.motion(torch.from_numpy(scaled), torch.from_numpy(speed_mps))
    # The scales are single-precision numbers, whatever is computed with them.
    accel, curvature = (
        scaled[..., axis] * float(np.float32(STD[axis])) + float(np.float32(MEAN[axis])) for axis in (0, 1)
    )
    x = y = yaw = np.zeros(CASES)
    speed = speed_mps
    for step in range(64):
        after = speed + accel[:, step] * PERIOD_S
        turned = yaw + curvature[:, step] * (speed * PERIOD_S + accel[:, step] * PERIOD_S**2 / 2)
        x = x + PERIOD_S / 2 * (speed * np.cos(yaw) + after * np.cos(turned))
        y = y + PERIOD_S / 2 * (speed * np.sin(yaw) + after * np.sin(turned))
        speed, yaw = after, turned
        np.testing.assert_allclose(got.position_m[:, step], np.stack([x, y], axis=1), atol=1e-5)
        np.testing.assert_allclose(got.yaw_rad[:, step], yaw, atol=1e-5)
        np.testing.assert_allclose(got.speed_mps[:, step], speed, atol=1e-5)
    # A stop runs on into reverse, as the released code has it.
    assert (speed[100:150] < -20.0).all()


def least_squares(rows: Numbers, right: Numbers, order: int, smooth: float, ridge: float) -> Numbers:
    """Minimise |rows x - right|^2 + smooth |difference of that order|^2 + ridge |x|^2, without normal equations."""
    count = rows.shape[1]
    difference = np.diff(np.eye(count), n=order, axis=0)
    below = [math.sqrt(smooth) / PERIOD_S**order * difference, math.sqrt(ridge) * np.eye(count)]
    zeros = np.zeros(len(difference) + count)
    solved: Numbers = np.linalg.lstsq(np.vstack([rows, *below]), np.concatenate([right, zeros]), rcond=None)[0]
    return solved


def test_speed_at_t0_is_the_regularised_fit() -> None:
    position = torch.from_numpy(POSITION)
    got = speed_at_t0(position, rotations(YAW)).double().numpy()
    for case in range(0, CASES, 10):
        heading = np.stack([np.cos(YAW[case]), np.sin(YAW[case])], axis=1)
        rows = np.zeros((30, 16))
        for step in range(15):
            rows[2 * step : 2 * step + 2, step] = heading[step]
            rows[2 * step : 2 * step + 2, step + 1] = heading[step + 1]
        steps = np.diff(POSITION[case, :, :2], axis=0).reshape(-1) * 2 / PERIOD_S
        wanted = least_squares(rows, steps, 3, 1e-6, 1e-4)[-1]
        # Fitted in single precision, as theirs.
        assert got[case] == pytest.approx(wanted, abs=1e-4)
    assert np.abs(got[:100]).max() == 0.0


def test_actions_of_a_motion_lead_along_it_again() -> None:
    calm = np.random.default_rng(3).normal(0.0, 0.3, (50, 1, 2)) + np.zeros((50, 64, 2))
    speed = torch.from_numpy(np.random.default_rng(4).uniform(5.0, 20.0, 50))
    motion = SPACE.motion(torch.from_numpy(calm), speed)
    scaled = SPACE.scaled_actions(motion.position_m, motion.yaw_rad, speed)
    np.testing.assert_allclose(scaled, calm, atol=0.02)


def test_history_tokens_are_the_bins_of_single_precision_steps() -> None:
    position = torch.from_numpy(POSITION).float()
    bins = encode_steps(position, BINS).reshape(CASES, 16, 3)
    previous = np.zeros((CASES, 3), np.float32)
    for pose in range(16):
        here = position[:, pose].numpy()
        low, high = (np.array(bound, np.float32) for bound in (BINS.minimum_m, BINS.maximum_m))
        share = ((here - previous) - low) / (high - low) * np.float32(999)
        np.testing.assert_array_equal(bins[:, pose], np.clip(np.rint(share), 0, 999).astype(int))
        previous = here
    # 4 m in 0.1 s is the end of the range.
    assert (bins[900:, 1:, 0] == 999).any()


def test_a_standing_car_is_halfway_and_halves_go_to_the_even_bin() -> None:
    assert set(encode_steps(torch.zeros(16, 3), BINS).tolist()) == {500}


def test_decoded_steps_are_within_half_a_bin() -> None:
    position = torch.from_numpy(POSITION[300:800]).float()
    slow = position / 20.0
    error = torch.diff(decode_steps(encode_steps(slow, BINS), BINS) - slow, dim=1)
    assert (error.abs().amax((0, 1)) <= torch.tensor([4.0, 4.0, 10.0]) / 999 + 1e-5).all()


def test_the_flow_takes_equal_steps_from_noise_to_action() -> None:
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(CASES, 64, 2, generator=random)
    rate, pull = torch.rand(CASES, 1, 1, generator=random), torch.randn(CASES, 64, 2, generator=random)
    times = list[float]()

    def field(action: Tensor, time: Tensor) -> Tensor:
        times.append(float(time[0]))
        return rate * (pull - action) + time[:, None, None]

    got = sample_flow(field, noise, 10).double().numpy()
    wanted = noise.double().numpy()
    for step in range(10):
        wanted = wanted + (rate.double().numpy() * (pull.double().numpy() - wanted) + step / 10) / 10
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert times == pytest.approx([step / 10 for step in range(10)])


def test_guidance_exaggerates_what_the_route_changes() -> None:
    velocity = guided(lambda action, _: action + 3.0, lambda action, _: action, 1.5)
    assert velocity(torch.ones(1), torch.zeros(1)).item() == pytest.approx(1.0 + 1.5 * 3.0)
