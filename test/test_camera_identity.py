"""Cameras under a wrong name: what names and pictures tell of it."""

import numpy as np
import pytest

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.domain import Image
from flatrope_planner.planning.camera_identity import ENOUGH, CameraIdentity, contradiction


@pytest.mark.parametrize(
    ("camera", "name", "said"),
    [
        ("cross_right", "/sensing/camera/front_left/image_raw", "left"),
        ("cross_left", "cross_right", "right"),
        ("cross_left", "cross_left_optical_frame", None),
        ("cross_left", "/camera/front_left/image", None),
        ("cross_left", "rear_left", "rear"),
        ("rear_left", "CAM_BACK_LEFT", None),
        ("rear_left", "CAM_BACK_RIGHT", "right"),
        ("front_wide", "front_tele", "tele"),
        ("front_tele", "camera_front_tele_30fov", None),
        ("front_wide", "camera_front_wide_120fov", None),
        ("front_wide", "CAM_FRONT_LEFT", "left"),
        ("front_wide", "CAM_FL", "left"),
        ("front_wide", "/carla/hero/rear/image", "rear"),
        # Names that say nothing, or two things, or are those of a stereo pair.
        ("front_wide", "/camera0/image", None),
        ("front_wide", "/left_and_right/image", None),
        ("front_wide", "/zed/left/image_rect_color", None),
        ("cross_left", "", None),
        # Parts of words are none.
        ("cross_left", "/bright/feedback", None),
        ("rear_tele", "rear_tele", None),
        # Another camera by its full name, though no word of it contradicts.
        ("cross_left", "/carla/ego_vehicle/front_tele/image", "front_tele"),
        ("cross_left", "camera-front-wide-120fov", "front_wide"),
        ("camera_cross_left_120fov", "front_tele", "front_tele"),
        ("front_tele", "/cross_left_as/front_tele/image", "left"),
        # Its own name stands there, too, or is a longer form of it.
        ("cross_left", "/front_tele_mount/cross_left/image", None),
        ("camera_front_wide_120fov", "/front_wide/image", None),
        # Who "main" is nobody knows but its user.
        ("main", "/front_wide/image", None),
    ],
)
def test_names_that_contradict_each_other(camera: str, name: str, said: str | None) -> None:
    assert contradiction(camera, name) == said


def test_no_camera_contradicts_itself_and_all_others_are_told_from_it_unless_a_word_is_missing() -> None:
    for camera in CAMERA_NAMES:
        assert contradiction(camera, f"/planner/input/camera/{camera}") is None
        for other in CAMERA_NAMES:
            if camera != other:
                # Seen from at least one of them.
                assert contradiction(camera, other) or contradiction(other, camera), (camera, other)


def picture(seed: int, height: int = 48, width: int = 80) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def identity() -> CameraIdentity:
    return CameraIdentity({"cross_left": "/a", "cross_right": "/b", "front_wide": "/c"})


def test_pictures_that_come_in_under_two_names_are_told_of() -> None:
    watch = identity()
    for seed in range(ENOUGH):
        assert watch.signs() == []
        watch.look("cross_left", picture(seed), "one")
        watch.look("front_wide", picture(100 + seed), "three")
        watch.look("cross_right", picture(seed).copy(), "two")
    assert watch.signs() == ["cameras cross_left and cross_right show the same pictures"]
    # As soon as they differ it is over.
    watch.look("cross_right", picture(7), "two")
    assert watch.signs() == []


def test_two_cameras_that_are_fed_in_turn_with_a_delay_are_told_of_too() -> None:
    watch = identity()
    for seed in range(ENOUGH + 2):
        watch.look("cross_left", picture(seed), "one")
        if seed >= 2:
            watch.look("cross_right", picture(seed - 2), "two")
    assert watch.signs() == ["cameras cross_left and cross_right show the same pictures"]


def test_pictures_that_differ_in_a_pixel_or_show_nothing_are_not_the_same() -> None:
    watch = identity()
    for seed in range(2 * ENOUGH):
        left, right = picture(seed, 480, 640), picture(seed, 480, 640)
        # Between the rows and columns that are looked at first.
        right[7, 7] ^= 1
        watch.look("cross_left", left, "one")
        watch.look("cross_right", right, "two")
        watch.look("front_wide", picture(seed, 480, 800), "three")
    assert watch.signs() == []
    for _ in range(2 * ENOUGH):
        for camera in ("cross_left", "cross_right"):
            watch.look(camera, np.full((48, 80, 3), 17, np.uint8), "dark")
    assert watch.signs() == []


def test_the_name_of_another_of_the_planners_cameras_is_told_of() -> None:
    topics = {"main": "/second_eye/image", "second": "/main/second/image", "cross_left": "/carla/hero/front_tele/image"}
    watch = CameraIdentity(topics)
    assert watch.signs() == [
        "camera main comes in on '/second_eye/image', which names a second one",
        "camera cross_left comes in on '/carla/hero/front_tele/image', which names a front_tele one",
    ]


def test_frames_topics_and_pictures_on_their_side_are_named() -> None:
    watch = CameraIdentity({"cross_left": "/camera/front_right/image", "front_wide": "/camera/front/image"})
    watch.look("front_wide", picture(0, 80, 48), "front_tele_optical")
    assert watch.signs() == [
        "camera cross_left comes in on '/camera/front_right/image', which names a right one",
        "camera front_wide has the frame_id 'front_tele_optical', which names a tele one",
        "camera front_wide has pictures of 48x80 that stand upright",
    ]
    watch.forget("front_wide")
    assert len(watch.signs()) == 1
