"""The unicycle action space."""

import numpy as np
import pytest
import torch
from tiny_nano import arc

from flatrope_planner.vla.unicycle import (
    action_to_trajectory,
    estimate_speed,
    to_trajectory,
    trajectory_to_action,
    without_reversing,
)

# A run of NVIDIA's released Alpamayo-R1 code (fp32): normalised actions after an arc of 7 m/s and 0.01 1/m, and where
# they lead.
ALPAMAYO_ACTION = (
    (0.2708001732826233, -1.1473567485809326),
    (1.011063814163208, -0.020252905786037445),
    (-0.2091132253408432, -0.9371112585067749),
    (0.8994706869125366, -0.7498700618743896),
    (-0.45390549302101135, -0.6608260869979858),
    (-1.8964682817459106, -0.7241489887237549),
)
ALPAMAYO_XY_M = (
    (0.7009523510932922, -0.00731640262529254),
    (1.4064815044403076, -0.02208913117647171),
    (2.1148500442504883, -0.043068330734968185),
    (2.8254554271698, -0.07514642179012299),
    (3.537396192550659, -0.11649395525455475),
    (4.241063117980957, -0.16626572608947754),
)
ALPAMAYO_MEAN = (0.02902694707164455, 0.0002692167976330542)
ALPAMAYO_STD = (0.6810426736454882, 0.026148280660833106)


def constant(accel: float, curvature: float) -> torch.Tensor:
    return torch.tensor([accel, curvature], dtype=torch.float64).repeat(64, 1)


def speed_of(speed_mps: float, curvature: float) -> torch.Tensor:
    history = arc(speed_mps, curvature)
    return estimate_speed(torch.from_numpy(history.position_m), torch.from_numpy(history.rotation), 0.1)


def test_points_equal_those_of_alpamayos_own_package() -> None:
    action = torch.tensor(ALPAMAYO_ACTION).double() * torch.tensor(ALPAMAYO_STD) + torch.tensor(ALPAMAYO_MEAN)
    motion = action_to_trajectory(action, speed_of(7.0, 0.01))
    np.testing.assert_allclose(motion.position_m.numpy(), ALPAMAYO_XY_M, atol=2e-5)


def test_straight_at_constant_speed() -> None:
    motion = action_to_trajectory(constant(0.0, 0.0), torch.tensor(8.0, dtype=torch.float64))
    np.testing.assert_allclose(motion.position_m[:, 0], 0.8 * np.arange(1, 65))
    assert motion.position_m[:, 1].abs().max() == 0.0
    assert (motion.speed_mps == 8.0).all()


def test_constant_curvature_stays_on_its_circle() -> None:
    motion = action_to_trajectory(constant(0.0, 0.05), torch.tensor(5.0, dtype=torch.float64))
    np.testing.assert_allclose(motion.yaw_rad, 0.025 * np.arange(1, 65), atol=1e-12)
    # Centre 20 m to the left.
    distance = (motion.position_m - torch.tensor([0.0, 20.0])).norm(dim=-1)
    np.testing.assert_allclose(distance, 20.0, atol=2e-3)


def test_braking_stops_after_the_braking_distance_and_stays() -> None:
    speed = torch.tensor(6.0, dtype=torch.float64)
    action = without_reversing(constant(-3.0, 0.01), speed)
    motion = action_to_trajectory(action, speed)
    # v^2 / 2a = 6 m, reached after 2 s.
    np.testing.assert_allclose(motion.speed_mps[19:], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion.position_m[19:].norm(dim=-1), 6.0, atol=1e-3)
    np.testing.assert_allclose(action[:20, 0], -3.0)
    np.testing.assert_allclose(action[20:, 0], 0.0, atol=1e-12)


def test_without_a_stop_braking_would_reverse() -> None:
    motion = action_to_trajectory(constant(-3.0, 0.0), torch.tensor(6.0, dtype=torch.float64))
    assert motion.speed_mps[-1] == pytest.approx(6.0 - 3.0 * 6.4)


@pytest.mark.parametrize(("speed_mps", "curvature"), [(0.0, 0.0), (3.0, 0.0), (12.0, -0.02)])
def test_speed_is_found_in_the_history(speed_mps: float, curvature: float) -> None:
    assert float(speed_of(speed_mps, curvature)) == pytest.approx(speed_mps, abs=2e-3)


def test_speed_at_the_end_of_a_braking_history() -> None:
    time_s = (np.arange(16) - 15) * 0.1
    position = np.zeros((16, 3))
    position[:, 0] = 4.0 * time_s - 0.5 * 2.0 * time_s**2
    rotation = np.tile(np.eye(3), (16, 1, 1))
    assert float(estimate_speed(torch.from_numpy(position), torch.from_numpy(rotation), 0.1)) == pytest.approx(
        4.0, abs=0.02
    )


def test_actions_of_a_path_lead_along_it() -> None:
    time = torch.arange(64, dtype=torch.float64)
    action = torch.stack([0.8 * torch.cos(time / 15), 0.02 * torch.sin(time / 20)], dim=1)
    speed = torch.tensor(7.0, dtype=torch.float64)
    motion = action_to_trajectory(action, speed)
    found = trajectory_to_action(motion.position_m, motion.yaw_rad, speed)
    again = action_to_trajectory(found, speed)
    np.testing.assert_allclose(again.position_m, motion.position_m, atol=0.05)
    np.testing.assert_allclose(found[4:-4], action[4:-4], atol=0.03)


def test_a_batch_is_its_members() -> None:
    action = torch.stack([constant(0.5, 0.01), constant(-1.0, 0.0)])
    batch = action_to_trajectory(action, torch.tensor([4.0, 9.0], dtype=torch.float64))
    alone = action_to_trajectory(action[1], torch.tensor(9.0, dtype=torch.float64))
    np.testing.assert_array_equal(batch[1].position_m, alone.position_m)


def test_domain_trajectory_has_flat_ground_and_the_actions() -> None:
    action = constant(0.2, 0.01)
    trajectory = to_trajectory(action_to_trajectory(action, torch.tensor(3.0, dtype=torch.float64)), action)
    assert (trajectory.position_m[:, 2] == 0.0).all()
    np.testing.assert_array_equal(trajectory.action, action.numpy())
