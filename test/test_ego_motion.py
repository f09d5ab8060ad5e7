"""Twists in every frame and none, rear axles, and localisations that change: against motions known in closed form."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flatrope_planner.domain import Floats, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.planning.ego_motion import EgoMotion
from flatrope_planner.planning.odometry import OdometrySample, OdometryTrack
from flatrope_planner.planning.pose import yaw_quaternion

SPEED_MPS = 8.0
FRAMES = ("map", "base_link")
READ_AS_PARENT = (
    "odometry's twist is in the parent frame map instead of the child frame base_link, and read so; "
    "twist_frame: parent asks for that"
)
Twist = Callable[[Floats, float], Floats]


def in_body(body_mps: Floats, _yaw_rad: float) -> Floats:
    return body_mps


def in_parent(body_mps: Floats, yaw_rad: float) -> Floats:
    cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.array([cos * body_mps[0] - sin * body_mps[1], sin * body_mps[0] + cos * body_mps[1], 0.0])


def mirrored(body_mps: Floats, yaw_rad: float) -> Floats:
    """In the parent frame with its y turned over."""
    return in_parent(body_mps, yaw_rad) * [1.0, -1.0, 1.0]


def absent(_body_mps: Floats, _yaw_rad: float) -> Floats:
    return np.zeros(3)


def straight(time_s: float, yaw_rad: float, twist: Twist = in_body, speed_mps: float = SPEED_MPS) -> OdometrySample:
    direction = np.array([np.cos(yaw_rad), np.sin(yaw_rad), 0.0])
    body_mps = np.array([speed_mps, 0.0, 0.0])
    return OdometrySample(
        seconds_to_ns(time_s),
        speed_mps * time_s * direction,
        yaw_quaternion(yaw_rad),
        twist(body_mps, yaw_rad),
        0.0,
        *FRAMES,
    )


def circling(time_s: float, rate_radps: float, ahead_m: float = 0.0, twist: Twist = in_body) -> OdometrySample:
    """A rear axle on a circle about the origin, seen from a point that far ahead of it."""
    angle, radius_m = rate_radps * time_s, SPEED_MPS / rate_radps
    axle_m = radius_m * np.array([np.sin(angle), -np.cos(angle), 0.0])
    ahead = ahead_m * np.array([np.cos(angle), np.sin(angle), 0.0])
    body_mps = np.array([SPEED_MPS, rate_radps * ahead_m, 0.0])
    velocity = twist(body_mps, angle)
    return OdometrySample(seconds_to_ns(time_s), axle_m + ahead, yaw_quaternion(angle), velocity, rate_radps, *FRAMES)


def driven(motion: EgoMotion, samples: Iterable[OdometrySample]) -> OdometrySample:
    """What becomes of the last sample."""
    taken = [motion.take(sample) for sample in samples]
    return taken[-1]


def times(rate_hz: float, until_s: float = 3.0) -> Floats:
    return np.arange(1.0, until_s, 1.0 / rate_hz)


@pytest.mark.parametrize("rate_hz", [5.0, 20.0, 1000.0])
@pytest.mark.parametrize("yaw_deg", [90.0, -90.0, 45.0, 180.0])
@pytest.mark.parametrize(("twist", "fit"), [(in_body, "child"), (in_parent, "parent")])
def test_the_motion_tells_in_which_frame_a_twist_is(twist: Twist, fit: str, yaw_deg: float, rate_hz: float) -> None:
    motion, yaw_rad = EgoMotion(), np.deg2rad(yaw_deg)
    last = driven(motion, (straight(time_s, yaw_rad, twist) for time_s in times(rate_hz)))
    assert motion.values()["odometry.twist_fits"] == fit
    assert motion.complaints() == ([] if fit == "child" else [READ_AS_PARENT])
    np.testing.assert_allclose(last.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize(("twist", "fit"), [(in_body, "child"), (in_parent, "parent")])
def test_so_it_does_in_a_bend(twist: Twist, fit: str) -> None:
    motion = EgoMotion()
    last = driven(motion, (circling(time_s, 0.5, twist=twist) for time_s in times(20.0, 12.0)))
    assert motion.values()["odometry.twist_fits"] == fit
    np.testing.assert_allclose(last.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-9)
    assert motion.complaints() == ([] if fit == "child" else [READ_AS_PARENT])


@pytest.mark.parametrize(("yaw_deg", "speed_mps"), [(0.0, 8.0), (5.0, 8.0), (90.0, 0.0), (90.0, 1.0)])
def test_until_it_tells_the_twist_is_the_bodys(yaw_deg: float, speed_mps: float) -> None:
    motion = EgoMotion()
    sent = [straight(time_s, np.deg2rad(yaw_deg), in_parent, speed_mps) for time_s in times(20.0)]
    assert driven(motion, sent).linear_velocity_mps.tolist() == sent[-1].linear_velocity_mps.tolist()
    assert motion.values()["odometry.twist_fits"] == "unknown"
    assert motion.values()["odometry.twist_read_as"] == "child"


def test_noise_in_the_poses_changes_no_verdict() -> None:
    random, motion = np.random.default_rng(4), EgoMotion()
    samples = [straight(time_s, 1.2, in_parent) for time_s in times(50.0, 6.0)]
    shaken = (replace(each, position_m=each.position_m + random.normal(0.0, 0.03, 3)) for each in samples)
    driven(motion, shaken)
    assert motion.values()["odometry.twist_fits"] == "parent"


@pytest.mark.parametrize("twist", [mirrored, absent])
def test_a_twist_that_fits_nothing_is_left_for_the_poses(twist: Twist) -> None:
    motion = EgoMotion()
    last = driven(motion, (straight(time_s, 1.0, twist) for time_s in times(20.0)))
    np.testing.assert_allclose(last.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-6)
    complaint = "neither in the child frame base_link nor in the parent frame map: speed is taken from the poses"
    assert motion.complaints() == [f"odometry's twist fits its poses {complaint}"]
    assert motion.values()["odometry.twist_read_as"] == "poses"


@pytest.mark.parametrize(("wanted", "twist", "fit"), [("child", in_parent, "parent"), ("parent", in_body, "child")])
def test_a_frame_that_was_set_is_kept_and_a_contradiction_named(wanted: str, twist: Twist, fit: str) -> None:
    motion = EgoMotion(twist_frame=wanted)
    last = driven(motion, (straight(time_s, np.pi / 2.0, twist) for time_s in times(20.0)))
    expected = [0.0, SPEED_MPS, 0.0] if wanted == "child" else [0.0, -SPEED_MPS, 0.0]
    np.testing.assert_allclose(last.linear_velocity_mps, expected, atol=1e-9)
    assert motion.complaints() == [
        f"odometry's twist fits its poses in the {fit} frame, twist_frame is {wanted} (child base_link, parent map)"
    ]


def test_a_frame_that_was_set_rightly_holds_from_the_first_sample() -> None:
    motion = EgoMotion(twist_frame="parent")
    first = motion.take(straight(1.0, np.pi / 2.0, in_parent))
    np.testing.assert_allclose(first.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-12)


def test_a_yaw_rate_in_degrees_is_taken_from_the_headings() -> None:
    motion, rate = EgoMotion(), 0.3
    samples = (circling(time_s, rate) for time_s in times(20.0))
    last = driven(motion, (replace(each, yaw_rate_radps=float(np.rad2deg(rate))) for each in samples))
    assert last.yaw_rate_radps == pytest.approx(rate, abs=1e-6)
    np.testing.assert_allclose(last.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-6)
    assert motion.complaints() == ["odometry's yaw rate does not fit its headings: it is taken from them"]


def test_samples_out_of_order_and_twice_change_nothing() -> None:
    random, motion = np.random.default_rng(1), EgoMotion()
    sent_s = np.concatenate([random.permutation(part) for part in np.split(np.repeat(times(20.0, 3.0), 2), 10)])
    driven(motion, (straight(float(time_s), 1.5, in_parent) for time_s in sent_s))
    assert motion.values()["odometry.twist_fits"] == "parent"


def test_a_loop_a_gap_and_a_teleport_are_no_motion() -> None:
    motion = EgoMotion()
    driven(motion, (straight(time_s, 1.5) for time_s in times(20.0)))
    for jump in (straight(-50.0, 1.5), straight(0.0, 1.5), straight(5.0, 1.5), straight(90.0, 1.5)):
        motion.take(jump)
        assert motion.complaints() == []
    far = straight(90.1, 1.5)
    driven(motion, [straight(90.05, 1.5), replace(far, position_m=far.position_m + 5e5), straight(90.3, 1.5)])
    assert motion.complaints() == []
    assert motion.values()["odometry.twist_fits"] == "child"


@pytest.mark.parametrize("twist", [in_body, in_parent])
@pytest.mark.parametrize(("ahead_m", "rate_radps"), [(1.4, 0.5), (1.4, -0.5), (-0.8, 0.3)])
def test_what_comes_out_is_the_rear_axle(ahead_m: float, rate_radps: float, twist: Twist) -> None:
    motion = EgoMotion(rear_axle_offset_m=ahead_m)
    seen = driven(motion, (circling(time_s, rate_radps, ahead_m, twist) for time_s in times(20.0, 14.0)))
    axle = circling(float(times(20.0, 14.0)[-1]), rate_radps)
    np.testing.assert_allclose(seen.position_m, axle.position_m, atol=1e-9)
    np.testing.assert_allclose(seen.linear_velocity_mps, [SPEED_MPS, 0.0, 0.0], atol=1e-9)
    assert seen.yaw_rate_radps == rate_radps


def test_an_axle_on_a_slope_lies_below_the_origin() -> None:
    # Nose up by 90 degrees about y: what is ahead of the axle is above it.
    up = np.array([0.0, -np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    seen = EgoMotion(2.0).take(OdometrySample(0, np.array([1.0, 2.0, 3.0]), up, np.zeros(3)))
    np.testing.assert_allclose(seen.position_m, [1.0, 2.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("other", [("odom", "base_link"), ("map", "rear_axle")])
def test_another_localisation_is_another_motion(other: tuple[str, str]) -> None:
    motion, track = EgoMotion(), OdometryTrack()
    before = [straight(time_s, 0.5) for time_s in times(20.0)]
    # Near enough to the old one for its jump to look like driving.
    after = [replace(straight(3.0 + 0.05 * i, 0.5), frame_id=other[0], child_frame_id=other[1]) for i in range(4)]
    for sample in [*before, *after]:
        track.add(motion.take(sample))
    assert [sample.frames for sample in track.samples] == [other] * 4
    values = motion.values()
    assert (values["odometry.frame"], values["odometry.child_frame"]) == other
    assert values["odometry.frame_changes"] == "1"
    parent, child = other
    with pytest.raises(NotReadyError, match=f"as it was of 'base_link' in 'map' and is of '{child}' in '{parent}'"):
        track.poses_at(np.array([seconds_to_ns(2.9), seconds_to_ns(3.1)]))
    # What was still on its way from the old one is not mixed in.
    track.add(before[-1])
    assert len(track.samples) == 4


def shifted(samples: Iterable[OdometrySample], from_s: float, by_m: tuple[float, float, float]) -> list[OdometrySample]:
    """The same drive, put elsewhere from that time on: the localisation was corrected."""
    from_ns = seconds_to_ns(from_s)
    return [
        replace(each, position_m=each.position_m + np.array(by_m)) if each.stamp_ns >= from_ns else each
        for each in samples
    ]


@pytest.mark.parametrize("rate_hz", [10.0, 50.0])
@pytest.mark.parametrize("speed_mps", [0.0, 10.0])
@pytest.mark.parametrize("by_m", [(2.5, 0.0, 0.0), (-2.5, 0.0, 0.0), (0.0, 1.5, 0.0), (8.0, 0.0, 0.0)])
def test_a_corrected_localisation_is_no_motion(
    by_m: tuple[float, float, float], speed_mps: float, rate_hz: float
) -> None:
    samples = [straight(time_s, 0.0, speed_mps=speed_mps) for time_s in np.arange(1.0, 4.0, 1.0 / rate_hz)]
    track = OdometryTrack()
    for sample in shifted(samples, 3.0, by_m):
        track.add(sample)
    jump_m = r"8.[02]0 m" if by_m[0] == 8.0 else f"{np.hypot(*by_m[:2]):.2f} m"
    # Else a car that stands would be taken for one that drives as fast as its pose jumped.
    assert track.stamps_ns[0] == seconds_to_ns(3.0)
    with pytest.raises(NotReadyError, match=rf"0\.20 s are missing, as its pose jumped by {jump_m}"):
        track.poses_at(np.array([seconds_to_ns(2.8), seconds_to_ns(3.1)]))


def test_two_localisations_in_turns_are_no_motion() -> None:
    track = OdometryTrack()
    for number, time_s in enumerate(np.arange(1.0, 4.0, 0.05)):
        track.add(shifted([straight(time_s, 0.0)], 0.0, (0.0, 1.0 * (number % 2), 0.0))[0])
    assert len(track.samples) < 4


def jolting(time_s: float) -> OdometrySample:
    """Full braking after 2 s from 30 m/s, stamped up to 20 ms late."""
    braked_s = max(time_s - 2.0, 0.0)
    stamp_s = time_s + 0.02 * abs(np.sin(997.0 * time_s))
    speed = 30.0 - 8.8 * braked_s
    position = np.array([30.0 * time_s - 4.4 * braked_s**2, 0.0, 0.0])
    return OdometrySample(seconds_to_ns(stamp_s), position, yaw_quaternion(0.0), np.array([speed, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("drive", "rate_hz"),
    [
        (jolting, 4.5),
        (jolting, 50.0),
        # Without a twist, and with one in the wrong frame, from the first sample on.
        (lambda time_s: straight(time_s, np.pi / 2.0, absent, 30.0), 10.0),
        (lambda time_s: straight(time_s, np.pi / 2.0, in_parent, 30.0), 10.0),
        (lambda time_s: circling(time_s, 1.0), 4.5),
        (lambda time_s: circling(time_s, 1.0, twist=absent), 10.0),
        # Noise of a decimetre.
        (lambda time_s: shifted([straight(time_s, 0.0)], 0.0, (0.1 * np.sin(997.0 * time_s), 0.0, 0.0))[0], 20.0),
    ],
)
def test_rough_odometry_is_still_a_motion(drive: Callable[[float], OdometrySample], rate_hz: float) -> None:
    track = OdometryTrack()
    first = drive(1.0)
    for time_s in np.arange(1.0, 4.0, 1.0 / rate_hz):
        track.add(drive(float(time_s)))
    assert track.stamps_ns[0] == first.stamp_ns


def track_of(times_s: Floats, rate_radps: float = 0.4) -> OdometryTrack:
    track = OdometryTrack()
    for time_s in times_s:
        track.add(circling(float(time_s), rate_radps))
    return track


@pytest.mark.parametrize("rate_hz", [5.0, 10.0, 100.0, 1000.0])
def test_any_rate_spans_a_history_and_more(rate_hz: float) -> None:
    track = track_of(np.arange(1.0, 12.0, 1.0 / rate_hz))
    times_s = np.arange(8.5, 10.01, 0.1)
    position_m, quaternions = track.poses_at(np.round(times_s * 1e9).astype(np.int64))
    exact = [circling(float(time_s), 0.4) for time_s in times_s]
    # A chord stays within v w dt^2 / 8 of its arc.
    atol = SPEED_MPS * 0.4 / rate_hz**2 / 8.0 + 1e-6
    np.testing.assert_allclose(position_m, [each.position_m for each in exact], atol=atol)
    np.testing.assert_allclose(quaternions, [each.quaternion_xyzw for each in exact], atol=1e-8)


@pytest.mark.parametrize("ahead_ms", [10, 25, 40, 250])
def test_a_little_ahead_of_odometry_is_the_arc_and_no_error(ahead_ms: int) -> None:
    track = track_of(np.arange(1.0, 3.001, 0.02))
    asked_ns = seconds_to_ns(3.0) + ahead_ms * 1_000_000
    position_m, _ = track.poses_at(np.array([asked_ns], dtype=np.int64))
    exact = circling(3.0 + ahead_ms * 1e-3, 0.4)
    # The chord's length is v dt instead of 2 r sin(w dt / 2).
    assert np.linalg.norm(position_m[0] - exact.position_m) <= SPEED_MPS * 0.4**2 * (ahead_ms * 1e-3) ** 3 / 24.0 + 1e-9


def test_far_ahead_of_odometry_is_not_made_up() -> None:
    with pytest.raises(NotReadyError, match=r"0\.26 s behind the images; at most 0\.25 s"):
        track_of(np.arange(1.0, 3.001, 0.02)).poses_at(np.array([seconds_to_ns(3.26)], dtype=np.int64))


def test_at_the_edge_of_what_is_let_in_poses_can_still_be_expected() -> None:
    track = OdometryTrack()
    fast = np.array([100.0, 0.0, 0.0])
    track.add(OdometrySample(0, np.array([1e7, 0.0, 0.0]), yaw_quaternion(0.0), fast))
    position_m, _ = track.poses_at(np.array([200_000_000], dtype=np.int64))
    assert position_m[0, 0] == pytest.approx(1e7 + 20.0)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"quaternion_xyzw": np.array([0.0, 0.0, 0.0, 0.89])}, r"quaternion .* has length 0.89, expected 0.9 to 1.1"),
        ({"quaternion_xyzw": np.array([0.0, 0.0, 0.0, 1.11])}, "has length 1.11"),
        ({"quaternion_xyzw": np.full(4, 5e-324)}, "quaternion"),
        ({"quaternion_xyzw": np.full(4, 1e200)}, r"has length 2e\+200"),
        ({"quaternion_xyzw": np.array([0.0, np.nan, 0.0, 1.0])}, "not finite"),
        ({"position_m": np.array([0.0, -1.1e7, 0.0])}, r"position .* has length 1.1e\+07, expected 0 to 1e\+07"),
        ({"position_m": np.array([np.inf, 0.0, 0.0])}, "not finite"),
        ({"linear_velocity_mps": np.array([80.0, 80.0, 0.0])}, "velocity .* has length 113.137, expected 0 to 100"),
        ({"linear_velocity_mps": np.array([1e308, 1e308, 0.0])}, "has length"),
        ({"linear_velocity_mps": np.array([0.0, 0.0, -np.inf])}, "not finite"),
        ({"yaw_rate_radps": 1e9}, r"yaw rate .* has length 1e\+09, expected 0 to 100"),
        ({"yaw_rate_radps": float("nan")}, "not finite"),
    ],
)
def test_numbers_of_no_vehicle_are_refused_by_name(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(straight(1.0, 0.0), **changes)
