"""How the ego moves, from where it has been: motions whose speed and bend are known."""

import numpy as np
import pytest

from flatrope_planner.dimensions import HISTORY_POSES
from flatrope_planner.domain import EgoHistory, Floats
from flatrope_planner.planning.driven_arc import driven_arc

TIME_S: Floats = np.arange(1.0 - HISTORY_POSES, 1.0, dtype=np.float64) * 0.1


def turned(yaw_rad: Floats) -> Floats:
    """(N, 3, 3) rotations about z."""
    cos, sin, zero, one = np.cos(yaw_rad), np.sin(yaw_rad), np.zeros_like(yaw_rad), np.ones_like(yaw_rad)
    return np.stack([cos, -sin, zero, sin, cos, zero, zero, zero, one], axis=-1).reshape(-1, 3, 3)


def straight(along_m: Floats) -> EgoHistory:
    flat = np.zeros_like(along_m)
    return EgoHistory(np.stack([along_m, flat, flat], axis=1), turned(flat))


@pytest.mark.parametrize("speed_mps", [0.0, 0.2, 5.0, 30.0, -1.0])
def test_a_steady_speed_is_read(speed_mps: float) -> None:
    motion = driven_arc(straight(speed_mps * TIME_S))
    assert motion.speed_mps == pytest.approx(speed_mps, abs=1e-9)
    assert motion.curvature == 0.0
    assert motion.stands is (speed_mps < 0.25)


def test_the_speed_is_the_one_at_t0_while_braking() -> None:
    # 8 m/s at t0, 3 m/s^2 less each second.
    assert driven_arc(straight(8.0 * TIME_S - 1.5 * TIME_S**2)).speed_mps == pytest.approx(8.0)


@pytest.mark.parametrize("curvature", [0.05, -0.02])
def test_a_bend_is_read(curvature: float) -> None:
    angle = 6.0 * TIME_S * curvature
    position = np.stack([np.sin(angle), 1.0 - np.cos(angle), np.zeros_like(angle)], axis=1) / curvature
    motion = driven_arc(EgoHistory(position, turned(angle)))
    assert motion.curvature == pytest.approx(curvature, rel=0.01)
    assert motion.speed_mps == pytest.approx(6.0, rel=0.01)


def test_noise_of_an_ego_that_stands_is_no_bend() -> None:
    rng = np.random.default_rng(1)
    history = EgoHistory(rng.normal(0.0, 0.01, (HISTORY_POSES, 3)), turned(rng.normal(0.0, 0.01, HISTORY_POSES)))
    motion = driven_arc(history)
    assert motion.stands
    assert motion.curvature == 0.0


def test_a_centimetre_of_noise_is_a_decimetre_a_second() -> None:
    rng = np.random.default_rng(2)
    read = [driven_arc(straight(10.0 * TIME_S + rng.normal(0.0, 0.01, HISTORY_POSES))).speed_mps for _ in range(300)]
    assert np.std(read) == pytest.approx(0.085, rel=0.15)
    assert np.mean(read) == pytest.approx(10.0, abs=0.02)
