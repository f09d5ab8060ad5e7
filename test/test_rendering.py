"""Pictures against pixels worked out with the pinhole formula by hand."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.camera import CAMERAS, FRONT_TELE, FRONT_WIDE, CameraModel
from flatrope_planner.simulation.canvas import Canvas
from flatrope_planner.simulation.projection import NEAR_M, Projector, clip_near
from flatrope_planner.simulation.rendering import render
from flatrope_planner.simulation.rendering_order import Footprint, painting_order
from flatrope_planner.simulation.view import (
    Appearance,
    BuildingView,
    ConeView,
    Crosswalk,
    LightColor,
    Paint,
    PedestrianView,
    RoadMarking,
    RoadSurface,
    SceneView,
    StopSignView,
    TrafficLightView,
    TreeView,
    VehicleKind,
    VehicleView,
)

CALM = Appearance(noise=0.0)
ORIGIN = (0.0, 0.0, 0.0)
# Focal lengths: half the width over the tangent of half the field of view.
WIDE_PX, TELE_PX = 448.0, 448.0 / np.tan(np.radians(15.0))
LENS_UP_M = {LightColor.RED: 0.58, LightColor.GREEN: -0.58}


def car(x: float, y: float = 0.0, *, braking: bool = False, color: tuple[int, int, int] = (200, 60, 40)) -> VehicleView:
    return VehicleView((x, y), 0.0, 4.6, 1.9, 1.5, VehicleKind.CAR, color, braking)


def road(half_width_m: float = 2.0) -> RoadSurface:
    x = np.array([-20.0, 150.0])
    return RoadSurface(np.stack([x, x * 0 + half_width_m], 1), np.stack([x, x * 0 - half_width_m], 1))


def is_red(image: Image) -> Image:
    """Strongly red pixels."""
    red, green, blue = (image[:, :, i].astype(int) for i in range(3))
    return np.asarray((red > 170) & (green < 110) & (blue < 110), dtype=np.uint8)


def as_the_target_sees(image: Image) -> Image:
    return np.asarray(cv2.resize(image, (448, 160), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def painted_size(with_it: SceneView, without_it: SceneView, camera: CameraModel) -> tuple[int, int]:
    """Width and height (px, at the target's picture size) of what one thing clearly changes in the picture."""
    pictures = (as_the_target_sees(render(view, camera, ORIGIN)).astype(int) for view in (with_it, without_it))
    changed = np.abs(next(pictures) - next(pictures)).max(axis=2) > 30
    return int(changed.any(axis=0).sum()), int(changed.any(axis=1).sum())


def test_intrinsics_follow_the_field_of_view() -> None:
    # tan(45 deg) = 1: the focal length is half the width.
    assert FRONT_WIDE.intrinsics() == pytest.approx(np.array([[448.0, 0, 448.0], [0, 448.0, 160.0], [0, 0, 1]]))
    assert FRONT_TELE.focal_px == pytest.approx(TELE_PX)


@pytest.mark.parametrize("camera", CAMERAS)
def test_projection_is_the_one_of_the_intrinsics(camera: CameraModel) -> None:
    eye = Projector(camera, (3.0, -2.0, 0.4))
    seen = eye.to_camera(np.array([[20.0, 3.0, 0.5], [40.0, 9.0, 4.0]]))
    homogeneous = seen @ camera.intrinsics().T
    assert eye.to_pixels(seen) == pytest.approx(homogeneous[:, :2] / homogeneous[:, 2:])


def test_points_land_where_the_pinhole_formula_puts_them() -> None:
    # Camera at (1.6, 0, 1.5); a point 20 m before it, 5 m left, on the ground:
    # u = 448 - 448 * 5 / 20, v = 160 + 448 * 1.5 / 20.
    eye = Projector(FRONT_WIDE, ORIGIN)
    seen = eye.to_camera(np.array([[21.6, 5.0, 0.0]]))
    assert seen[0] == pytest.approx([-5.0, 1.5, 20.0])
    assert eye.ground_to_camera(np.array([[21.6, 5.0]])) == pytest.approx(seen)
    assert eye.to_pixels(seen)[0] == pytest.approx([336.0, 193.6])


def test_the_camera_turns_with_the_ego() -> None:
    # Ego at (10, 20) facing north: the camera stands at (10, 21.6). 10 m further north and 2 m west is left.
    eye = Projector(FRONT_WIDE, (10.0, 20.0, np.pi / 2.0))
    seen = eye.to_camera(np.array([[8.0, 31.6, 1.5]]))
    assert seen[0] == pytest.approx([-2.0, 0.0, 10.0])


def test_polygons_are_cut_where_they_pass_behind_the_lens() -> None:
    # A triangle with one corner behind: two edges cross the near plane.
    triangle = np.array([[0.0, 1.5, -1.0], [2.0, 1.5, 3.0], [-2.0, 1.5, 3.0]])
    cut = clip_near(triangle)
    share = (NEAR_M + 1.0) / 4.0
    expected = [[2 * share, 1.5, NEAR_M], [2.0, 1.5, 3.0], [-2.0, 1.5, 3.0], [-2 * share, 1.5, NEAR_M]]
    assert cut == pytest.approx(np.array(expected))
    assert len(clip_near(triangle - [0.0, 0.0, 10.0])) == 0


def _covers(strip: Floats, camera: CameraModel, rows: Floats, columns: Floats) -> Image:
    """Whether the ray of each pixel hits the rectangle x0, x1, y0, y1 on the ground."""
    x0, x1, y0, y1 = strip
    forward = 1.5 * camera.focal_px / (rows[:, None] - 160.0)
    left = -(columns[None] - 448.0) / camera.focal_px * forward
    x = forward + 1.6
    return np.asarray((x > x0) & (x < x1) & (left > y0) & (left < y1), dtype=np.uint8)


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("strip", [(-30.0, 60.0, -2.0, 1.0), (-5.0, 30.0, 3.0, 9.0), (1.7, 9.0, -40.0, 40.0)])
def test_ground_under_the_camera_is_filled_as_rays_would_find_it(
    camera: CameraModel, strip: tuple[float, float, float, float]
) -> None:
    x0, x1, y0, y1 = strip
    eye = Projector(camera, ORIGIN)
    canvas = Canvas(np.zeros((320, 896, 3), dtype=np.uint8), eye, CALM)
    polygon = eye.polygon(eye.ground_to_camera(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])))
    assert polygon is not None
    canvas.fill(polygon, (255, 255, 255))
    rows, columns = np.arange(162.0, 320.0) + 0.5, np.arange(896.0) + 0.5
    expected = _covers(np.array(strip), camera, rows, columns)
    # Nothing but pixels on the border may differ.
    border = cv2.dilate(expected, np.ones((5, 5), np.uint8)) - cv2.erode(expected, np.ones((5, 5), np.uint8))
    wrong = (canvas.image[162:, :, 0] > 127) != (expected > 0)
    assert not wrong[border == 0].any()


def test_road_is_drawn_where_it_lies() -> None:
    view = SceneView(replace(CALM, asphalt=(10, 20, 30), ground=(80, 130, 95)), (road(),))
    image = render(view, FRONT_WIDE, ORIGIN)
    # 10 m before the camera the ground shows in row 160 + 67.2, two metres are 89.6 px.
    assert tuple(image[227, 448]) == (30, 20, 10)
    assert tuple(image[227, 448 + 80]) == (30, 20, 10)
    assert tuple(image[227, 448 + 100]) != (30, 20, 10)


def test_dashes_are_three_metres_with_gaps_of_six_and_stay_where_they_are() -> None:
    line = RoadMarking(np.array([[0.0, 0.0], [200.0, 0.0]]), Paint.DASHED, 0.3, (255, 255, 255))
    view = SceneView(replace(CALM, asphalt=(0, 0, 0)), (road(),), (line,))
    for x_ego in (0.0, 2.0):
        image = render(view, FRONT_WIDE, (x_ego, 0.0, 0.0))
        for x, painted in ((9.5, True), (11.5, True), (12.8, False), (17.2, False), (18.5, True), (20.5, True)):
            row = int(160.0 + WIDE_PX * 1.5 / (x - 1.6 - x_ego))
            assert (image[row, 448].min() > 200) == painted


def test_zebra_stripes_lie_across_the_road() -> None:
    view = SceneView(
        replace(CALM, asphalt=(0, 0, 0)), (road(4.0),), crosswalks=(Crosswalk((11.6, 0.0), 0.0, 3.0, 6.0),)
    )
    # 10 m before the camera: half a metre is 22.4 px; stripes begin at the right end, y = -3 m.
    row = render(view, FRONT_WIDE, ORIGIN)[227, :, 0].astype(int)
    for y, painted in ((-2.75, True), (-2.25, False), (-1.75, True), (-0.25, False), (0.25, True), (2.75, False)):
        assert (row[int(448.0 - 44.8 * y)] > 150) == painted


@pytest.mark.parametrize("color", list(LightColor))
def test_the_lit_lens_has_its_colour_and_the_other_is_dark(color: LightColor) -> None:
    light = TrafficLightView((41.6, -3.0), 0.0, 2.9, color)
    image = render(SceneView(CALM, lights=(light,)), FRONT_TELE, ORIGIN)
    scale = TELE_PX / 40.0
    for which, up in LENS_UP_M.items():
        u, v = 448.0 + 3.0 * scale, 160.0 - (2.9 - 1.5 + up) * scale
        lens = image[round(v), round(u)].astype(int)
        channel = 0 if which is LightColor.RED else 1
        if which is color:
            assert lens[channel] > 240
            assert lens[channel] - np.delete(lens, channel).max() > 100
        else:
            assert lens.max() < 100


def test_a_light_seen_from_behind_does_not_shine() -> None:
    shown = [
        render(SceneView(CALM, lights=(TrafficLightView((31.6, 0.0), yaw, 2.0, LightColor.RED),)), FRONT_TELE, ORIGIN)
        for yaw in (0.0, np.pi)
    ]
    assert is_red(shown[0]).sum() > 100
    assert is_red(shown[1]).sum() == 0


def test_a_stop_sign_is_red_from_the_front_only() -> None:
    front, back = (
        render(SceneView(CALM, stop_signs=(StopSignView((31.6, 0.0), yaw),)), FRONT_TELE, ORIGIN)
        for yaw in (0.0, np.pi)
    )
    # An octagon 0.9 m across is 0.83 * 0.9^2 m^2; its red face fills 0.9^2 of it, the letters a part of that.
    face_px = 0.83 * 0.81**2 * (TELE_PX / 30.0) ** 2
    assert 0.5 * face_px < is_red(front).sum() < face_px
    assert is_red(back).sum() == 0


def test_brake_lamps_shine() -> None:
    off, on = (
        is_red(render(SceneView(CALM, vehicles=(car(35.0, braking=braking),)), FRONT_TELE, ORIGIN)).sum()
        for braking in (False, True)
    )
    # Two lamps of 0.45 x 0.28 m, 31.1 m before the camera, are 2 * 24 * 15 px.
    assert off == 0
    assert on > 700


def test_indicators_shine_on_their_side() -> None:
    def orange_columns(indicator: int) -> Floats:
        view = SceneView(CALM, vehicles=(replace(car(30.0), indicator=indicator),))
        red, green, blue = (render(view, FRONT_TELE, ORIGIN)[:, :, i].astype(int) for i in range(3))
        return np.asarray(np.nonzero((red > 200) & (green > 110) & (green < 200) & (blue < 90))[1], dtype=float)

    assert orange_columns(1).max() < 448.0
    assert orange_columns(-1).min() > 448.0
    assert len(orange_columns(0)) == 0


BARE = SceneView(CALM, (road(5.0),))
DECISIVE = {
    "light": (replace(BARE, lights=(TrafficLightView((56.6, -3.0), 0.0, 2.9, LightColor.RED),)), 10, 25),
    "pedestrian": (replace(BARE, pedestrians=(PedestrianView((36.6, 0.0), 1.6, 1.75, (60, 40, 160), 0.2),)), 14, 36),
    "stop sign": (replace(BARE, stop_signs=(StopSignView((36.6, -3.0), 0.0),)), 18, 18),
    "cone": (replace(BARE, cones=(ConeView((31.6, 0.0)),)), 13, 22),
}


@pytest.mark.parametrize("name", DECISIVE)
def test_decisive_things_cover_a_patch_of_the_target_s_picture(name: str) -> None:
    view, least_width, least_height = DECISIVE[name]
    width, height = painted_size(view, BARE, FRONT_TELE)
    assert width >= least_width
    assert height >= least_height


@pytest.mark.parametrize("color", list(LightColor))
def test_a_signal_twenty_metres_away_is_in_the_tele_picture(color: LightColor) -> None:
    # The camera stands 20 m before it; the middle of the head, 2.8 m up, lies 109 px above the middle of the picture.
    light = TrafficLightView((21.6, -3.2), 0.0, 2.8, color)
    image = render(SceneView(CALM, lights=(light,)), FRONT_TELE, ORIGIN).astype(int)
    channel = 0 if color is LightColor.RED else 1
    vivid = image[:, :, channel] - np.delete(image, channel, axis=2).max(axis=2) > 100
    assert vivid[:, 660:770].sum() > 300


def test_near_things_hide_far_things() -> None:
    near, far = car(15.0, color=(0, 200, 0)), car(30.0, color=(200, 0, 200))
    both = render(SceneView(CALM, vehicles=(far, near)), FRONT_WIDE, ORIGIN)
    swapped = render(SceneView(CALM, vehicles=(near, far)), FRONT_WIDE, ORIGIN)
    assert np.array_equal(both, swapped)
    # The boot of the near car, 11.1 m before the camera, 0.5 m up: row 160 + 448 * (1.0 / 11.1) lies on green.
    assert both[200, 448].argmax() == 1


def test_what_stands_before_a_long_wall_hides_it() -> None:
    # The wall runs from 10 to 50 m on the left; the post stands before its far part, farther than its near corner.
    wall, post, behind = (
        Footprint((30.0, 10.0), 0.0, (20.0, 2.0)),
        Footprint((45.0, 7.0), 0.0, (0.3, 0.3)),
        Footprint((45.0, 14.0), 0.0, (0.3, 0.3)),
    )
    order = [index for index, _ in painting_order(Projector(FRONT_WIDE, ORIGIN), [wall, post, behind])]
    assert order == [2, 0, 1]


def test_things_out_of_the_picture_are_left_out() -> None:
    eye = Projector(FRONT_TELE, ORIGIN)
    places = [(30.0, 0.0), (-30.0, 0.0), (30.0, 20.0), (400.0, 0.0)]
    assert [i for i, _ in painting_order(eye, [Footprint(place, 0.0, (0.3, 0.3)) for place in places])] == [0]
    assert painting_order(eye, []) == []


def test_what_is_behind_the_camera_is_not_drawn() -> None:
    empty = render(SceneView(CALM), FRONT_WIDE, ORIGIN)
    behind = SceneView(
        CALM,
        vehicles=(car(-10.0),),
        pedestrians=(PedestrianView((-3.0, 0.0), 0.0, 1.8, (0, 0, 255)),),
        lights=(TrafficLightView((-4.0, 1.0), 0.0, 2.8, LightColor.RED),),
        stop_signs=(StopSignView((-4.0, -1.0), 0.0),),
        cones=(ConeView((-2.0, 1.0)),),
        trees=(TreeView((-20.0, 5.0), 6.0, (50, 110, 60)),),
    )
    assert np.array_equal(empty, render(behind, FRONT_WIDE, ORIGIN))


def test_things_around_the_camera_are_drawn_without_fault() -> None:
    crowd = SceneView(
        CALM,
        (road(),),
        vehicles=tuple(car(x, y) for x in (-1.0, 2.0, 4.0) for y in (-3.0, 3.0)),
        pedestrians=(
            PedestrianView((2.0, 0.3), 0.0, 1.8, (0, 0, 255)),
            PedestrianView((2.6, 0.3), 0.0, 1.8, (0, 0, 255)),
        ),
        lights=(TrafficLightView((2.0, -1.0), 0.0, 2.8, LightColor.RED),),
        buildings=(BuildingView((0.0, 12.0), 0.3, 30.0, 10.0, 12.0, (140, 150, 165)),),
        trees=(TreeView((2.8, -4.0), 6.0, (50, 110, 60)),),
    )
    for camera in CAMERAS:
        assert render(crowd, camera, ORIGIN).shape == (320, 896, 3)


def test_haze_takes_far_things_toward_the_horizon_colour() -> None:
    horizon = np.array([200.0, 225.0, 245.0])
    clear, hazy = (
        render(SceneView(replace(CALM, haze_m=haze_m), vehicles=(car(60.0, color=(0, 0, 0)),)), FRONT_TELE, ORIGIN)
        for haze_m in (float("inf"), 60.0)
    )
    # The boot, 0.5 m up, 56.1 m away.
    row = int(160.0 + TELE_PX * 1.0 / 56.1)
    share = np.exp(-60.0 / 60.0)
    expected = clear[row, 448] * share + horizon * (1.0 - share)
    assert hazy[row, 448] == pytest.approx(expected, abs=8.0)


def test_equal_views_give_equal_pictures_and_noise_differs_by_seed() -> None:
    pictures = [
        render(SceneView(replace(CALM, noise=3.0), vehicles=(car(20.0),), noise_seed=seed), FRONT_WIDE, ORIGIN)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


def test_pictures_have_the_camera_s_size() -> None:
    for pitch_deg in (-5.0, 0.0, 5.0, 60.0, -60.0):
        camera = CameraModel("other", 201, 101, 60.0, 0.0, 0.0, 1.2, pitch_deg)
        image = render(SceneView(CALM, (road(),), vehicles=(car(20.0),)), camera, ORIGIN)
        assert image.shape == (101, 201, 3)
        assert image.dtype == np.uint8
