"""Pictures against pixels worked out with the pinhole formula by hand."""

import numpy as np
import pytest

from flatrope_planner.domain import Image
from flatrope_planner.simulation.camera import FRONT_TELE, FRONT_WIDE, CameraModel
from flatrope_planner.simulation.projection import Projector
from flatrope_planner.simulation.rendering import render
from flatrope_planner.simulation.view import (
    Appearance,
    LightColor,
    PedestrianView,
    RoadSurface,
    SceneView,
    TrafficLightView,
    VehicleKind,
    VehicleView,
)

CALM = Appearance(noise=0.0)
ORIGIN = (0.0, 0.0, 0.0)


def car(x: float, y: float = 0.0, *, braking: bool = False, color: tuple[int, int, int] = (200, 60, 40)) -> VehicleView:
    return VehicleView((x, y), 0.0, 4.6, 1.9, 1.5, VehicleKind.CAR, color, braking)


def redness(image: Image) -> int:
    """Number of strongly red pixels."""
    red, green, blue = (image[:, :, i].astype(int) for i in range(3))
    return int(np.sum((red > 180) & (green < 110) & (blue < 110)))


def test_intrinsics_follow_the_field_of_view() -> None:
    # tan(45 deg) = 1: the focal length is half the width.
    assert FRONT_WIDE.intrinsics() == pytest.approx(np.array([[448.0, 0, 448.0], [0, 448.0, 160.0], [0, 0, 1]]))
    assert FRONT_TELE.focal_px == pytest.approx(448.0 / np.tan(np.radians(15.0)))


def test_points_land_where_the_pinhole_formula_puts_them() -> None:
    # Camera at (1.6, 0, 1.5); a point 20 m before it, 5 m left, on the ground:
    # u = 448 - 448 * 5 / 20, v = 160 + 448 * 1.5 / 20.
    eye = Projector(FRONT_WIDE, ORIGIN)
    seen = eye.to_camera(np.array([[21.6, 5.0, 0.0]]))
    assert seen[0] == pytest.approx([-5.0, 1.5, 20.0])
    assert eye.to_pixels(seen)[0] == pytest.approx([336.0, 193.6])


def test_the_camera_turns_with_the_ego() -> None:
    # Ego at (10, 20) facing north: the camera stands at (10, 21.6). 10 m further north and 2 m west is left.
    eye = Projector(FRONT_WIDE, (10.0, 20.0, np.pi / 2.0))
    seen = eye.to_camera(np.array([[8.0, 31.6, 1.5]]))
    assert seen[0] == pytest.approx([-2.0, 0.0, 10.0])


def test_a_polygon_running_under_the_camera_is_cut_at_the_near_plane() -> None:
    eye = Projector(FRONT_WIDE, ORIGIN)
    strip = np.array([[-10.0, 1.0, 0.0], [50.0, 1.0, 0.0], [50.0, -1.0, 0.0], [-10.0, -1.0, 0.0]])
    cut = eye.clip(eye.to_camera(strip))
    assert cut[:, 2].min() > 0.0
    assert eye.polygon(strip) is not None
    assert eye.polygon(strip - [100.0, 0.0, 0.0]) is None


def test_road_is_drawn_where_it_lies() -> None:
    left, right = np.array([[-20.0, 2.0], [150.0, 2.0]]), np.array([[-20.0, -2.0], [150.0, -2.0]])
    view = SceneView(Appearance(noise=0.0, asphalt=(10, 20, 30), ground=(80, 130, 95)), (RoadSurface(left, right),))
    image = render(view, FRONT_WIDE, ORIGIN)
    # 10 m before the camera the ground shows in row 160 + 67.2, two metres are 89.6 px.
    assert tuple(image[227, 448]) == (30, 20, 10)
    assert tuple(image[227, 448 + 80]) == (30, 20, 10)
    assert tuple(image[227, 448 + 100]) != (30, 20, 10)


@pytest.mark.parametrize(("color", "channel", "row"), [(LightColor.RED, 0, -0.58), (LightColor.GREEN, 1, 0.58)])
def test_the_lit_lens_has_its_colour(color: LightColor, channel: int, row: float) -> None:
    light = TrafficLightView((41.6, -3.0), 0.0, 2.9, color)
    image = render(SceneView(CALM, lights=(light,)), FRONT_TELE, ORIGIN)
    scale = FRONT_TELE.focal_px / 40.0
    u, v = 448.0 + 3.0 * scale, 160.0 - (2.9 - 1.5 - row) * scale
    lens = image[round(v), round(u)].astype(int)
    assert lens.argmax() == channel
    # Its own halo whitens it somewhat.
    assert lens[channel] - np.delete(lens, channel).max() > 60


def test_a_light_seen_from_behind_does_not_shine() -> None:
    shown = [
        redness(
            render(
                SceneView(CALM, lights=(TrafficLightView((31.6, 0.0), yaw, 2.0, LightColor.RED),)), FRONT_TELE, ORIGIN
            )
        )
        for yaw in (0.0, np.pi)
    ]
    assert shown[0] > 100
    assert shown[1] == 0


def test_brake_lamps_shine() -> None:
    off, on = (
        redness(render(SceneView(CALM, vehicles=(car(35.0, braking=braking),)), FRONT_TELE, ORIGIN))
        for braking in (False, True)
    )
    # Two lamps of 0.44 x 0.34 m at 33 m are 2 * 22 * 17 px.
    assert off == 0
    assert on > 500


def test_near_things_hide_far_things() -> None:
    near, far = car(15.0, color=(0, 200, 0)), car(30.0, color=(200, 0, 200))
    both = render(SceneView(CALM, vehicles=(far, near)), FRONT_WIDE, ORIGIN)
    swapped = render(SceneView(CALM, vehicles=(near, far)), FRONT_WIDE, ORIGIN)
    assert np.array_equal(both, swapped)
    # The boot of the near car, 11.1 m before the camera, 0.5 m up: row 160 + 448 * (1.0 / 11.1) lies on green.
    assert both[200, 448].argmax() == 1


def test_what_is_behind_the_camera_is_not_drawn() -> None:
    empty = render(SceneView(CALM), FRONT_WIDE, ORIGIN)
    behind = SceneView(CALM, vehicles=(car(-10.0),), pedestrians=(PedestrianView((-3.0, 0.0), 0.0, 1.8, (0, 0, 255)),))
    assert np.array_equal(empty, render(behind, FRONT_WIDE, ORIGIN))


def test_equal_views_give_equal_pictures_and_noise_differs_by_seed() -> None:
    pictures = [render(SceneView(Appearance(noise=3.0), noise_seed=seed), FRONT_WIDE, ORIGIN) for seed in (1, 1, 2)]
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_pictures_have_the_camera_s_size() -> None:
    camera = CameraModel("other", 200, 100, 60.0, 0.0, 0.0, 1.2, pitch_deg=-5.0)
    image = render(SceneView(CALM), camera, ORIGIN)
    assert image.shape == (100, 200, 3)
    assert image.dtype == np.uint8
