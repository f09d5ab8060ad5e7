"""The ego's motion and its outline."""

import numpy as np
import pytest

from flatrope_planner.domain import DriveCommand
from flatrope_planner.simulation.ego import (
    LENGTH_M,
    MAX_BRAKING_MPS2,
    WIDTH_M,
    EgoState,
    advance,
    box,
    footprint,
    overlap,
)


def drive(state: EgoState, command: DriveCommand, seconds: float) -> EgoState:
    for _ in range(round(seconds / 0.05)):
        state = advance(state, command, 0.05)
    return state


def test_steady_speed_covers_speed_times_time() -> None:
    end = drive(EgoState(0.0, 0.0, 0.0, 8.0), DriveCommand(8.0, 0.0), 5.0)
    assert (end.x_m, end.y_m) == pytest.approx((40.0, 0.0))


def test_steady_yaw_rate_is_a_circle() -> None:
    # 8 m/s and 0.4 rad/s: radius 20 m, a full turn in 2 pi / 0.4 s, started on the circle.
    start = EgoState(0.0, 0.0, 0.0, 8.0, curvature=0.05)
    half_turn = drive(start, DriveCommand(8.0, 0.4), np.pi / 0.4)
    assert half_turn.x_m == pytest.approx(0.0, abs=0.3)
    assert half_turn.y_m == pytest.approx(40.0, abs=0.1)


def test_braking_is_bounded_and_ends_at_rest() -> None:
    state = EgoState(0.0, 0.0, 0.0, 10.0)
    hardest = 0.0
    for _ in range(100):
        state = advance(state, DriveCommand(0.0, 0.0), 0.05)
        hardest = min(hardest, state.accel_mps2)
        assert state.speed_mps >= 0.0
    assert hardest == pytest.approx(-MAX_BRAKING_MPS2)
    assert state.speed_mps == pytest.approx(0.0, abs=1e-3)
    # v^2 / 2b = 8.3 m, and the jerk limit and the lag at the end add some.
    assert 8.3 < state.x_m < 13.0


def test_footprint_reaches_from_rear_to_front_bumper() -> None:
    corners = footprint(EgoState(10.0, 5.0, np.pi / 2.0, 0.0))
    assert corners[:, 1].max() == pytest.approx(5.0 + 1.4 + LENGTH_M / 2.0)
    assert corners[:, 1].min() == pytest.approx(5.0 + 1.4 - LENGTH_M / 2.0)
    assert np.ptp(corners[:, 0]) == pytest.approx(WIDTH_M)


@pytest.mark.parametrize(
    ("center", "yaw", "touches"),
    [
        ((3.9, 0.0), 0.0, True),
        ((4.1, 0.0), 0.0, False),
        ((2.9, 2.4), np.pi / 4.0, True),
        ((3.5, 3.5), np.pi / 4.0, False),
    ],
)
def test_overlap_of_rectangles(center: tuple[float, float], yaw: float, touches: bool) -> None:
    # The first is 4 x 2 m at the origin, the second 4 x 2 m elsewhere.
    assert overlap(box((0.0, 0.0), 0.0, 4.0, 2.0), box(center, yaw, 4.0, 2.0)) is touches
