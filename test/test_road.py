"""Guide line geometry against circles and straight lines worked out by hand."""

import numpy as np
import pytest

from flatrope_planner.simulation.road import Bend, GuideLine, RoadLayout


def test_a_straight_line_runs_along_x() -> None:
    line = GuideLine([Bend(300.0)], before_m=80.0)
    assert line.at(0.0) == pytest.approx((0.0, 0.0, 0.0))
    assert line.at(50.0, 3.5) == pytest.approx((50.0, 3.5, 0.0))
    assert line.at(-20.0, -1.0) == pytest.approx((-20.0, -1.0, 0.0))


def test_a_long_bend_is_a_circle() -> None:
    radius = 40.0
    line = GuideLine([Bend(80.0), Bend(200.0, 1.0 / radius)], before_m=80.0)
    # Curvature ramps up over 10 m about s = 0: a quarter turn further on, the distance between points is the chord.
    a, b = line.at(20.0), line.at(20.0 + radius * np.pi / 2.0)
    assert b[2] - a[2] == pytest.approx(np.pi / 2.0, abs=1e-2)
    assert np.hypot(b[0] - a[0], b[1] - a[1]) == pytest.approx(radius * np.sqrt(2.0), rel=5e-3)
    # Points to the left of the line lie nearer to the centre.
    left_a, left_b = line.at(20.0, 10.0), line.at(20.0 + radius * np.pi / 2.0, 10.0)
    assert np.hypot(left_b[0] - left_a[0], left_b[1] - left_a[1]) == pytest.approx(30.0 * np.sqrt(2.0), rel=5e-3)


@pytest.mark.parametrize(("s", "d"), [(0.0, 0.0), (33.3, 2.0), (70.1, -3.0), (110.0, 5.0)])
def test_projection_inverts_at(s: float, d: float) -> None:
    line = GuideLine([Bend(120.0), Bend(60.0, -1.0 / 30.0), Bend(100.0)], before_m=80.0)
    x, y, _ = line.at(s, d)
    assert line.project(x, y) == pytest.approx((s, d), abs=0.05)
    assert line.project(x, y, near_s_m=s - 5.0) == pytest.approx((s, d), abs=0.05)


def test_lanes_lie_side_by_side() -> None:
    layout = RoadLayout(GuideLine([Bend(100.0)]), left=1, right=1, opposing=2, shoulder_m=0.5)
    assert layout.lane_offsets_m == (-3.5, 0.0, 3.5)
    assert layout.opposing_offsets_m == (7.0, 10.5)
    assert layout.left_edge_m == pytest.approx(12.75)
    assert layout.right_edge_m == pytest.approx(-5.75)
