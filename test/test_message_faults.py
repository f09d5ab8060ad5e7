"""What the sensor player can do to messages, and what a faulty core can do to plans."""

import math
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CompressedImage, Image
from stand_ins import SPEED_MPS, StraightCore

from flatrope_planner.conversion.images import from_compressed, from_image
from flatrope_planner.conversion.odometry import odometry_message, odometry_sample
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.dimensions import HISTORY_POSES
from flatrope_planner.domain import EgoHistory, Observation, seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.order_pipe import OrderPipe, OrderReader
from flatrope_planner.nodes.faulty_planner import BAD_PLANS, FaultyCore
from flatrope_planner.nodes.message_faults import COMPRESSED_FAULTS, GARBAGE, ODOMETRY_FAULTS, PICTURE_FAULTS
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion

T_S = 7.0


def picture(time_s: float = T_S) -> Image:
    data = array("B", bytes(range(96)))
    return Image(
        header=to_header(seconds_to_ns(time_s), "camera"), height=4, width=8, encoding="rgb8", step=24, data=data
    )


def jpeg() -> CompressedImage:
    _, data = cv2.imencode(".jpg", np.full((64, 64, 3), 90, np.uint8))
    return CompressedImage(header=to_header(seconds_to_ns(T_S), "camera"), format="jpeg", data=data.tobytes())


def odometry() -> Odometry:
    """Heading along y at 3 m/s."""
    velocity = np.array([3.0, 0.0, 0.0])
    sample = OdometrySample(seconds_to_ns(T_S), np.array([1.0, 2.0, 0.0]), yaw_quaternion(np.pi / 2.0), velocity)
    return odometry_message(sample, "map", "ego_vehicle")


def stamps_s(messages: list[Any]) -> list[float]:
    return [to_nanoseconds(message.header.stamp) * 1e-9 for message in messages]


@pytest.mark.parametrize(
    ("fault", "wanted_s"),
    [
        ("missing", []),
        ("twice", [7.0, 7.0, 7.1, 7.1, 7.2, 7.2, 7.3, 7.3]),
        ("swapped", [7.1, 7.0, 7.3, 7.2]),
        ("frozen_stamp", [7.0, 7.0, 7.0, 7.0]),
        ("future_stamp", [107.0, 107.1, 107.2, 107.3]),
        ("zero_stamp", [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_stamps_of_four_messages(fault: str, wanted_s: list[float]) -> None:
    distort = PICTURE_FAULTS[fault]()
    messages = [picture(T_S + 0.1 * i) for i in range(4)]
    assert stamps_s([sent for message in messages for sent in distort(message)]) == pytest.approx(wanted_s)
    # The good message itself is left alone.
    assert stamps_s(messages) == pytest.approx([7.0, 7.1, 7.2, 7.3])


@pytest.mark.parametrize("fault", ["truncated", "wrong_step", "unknown_encoding"])
def test_no_damaged_picture_can_be_read(fault: str) -> None:
    distort = PICTURE_FAULTS[fault]()
    assert from_image(picture()).shape == (4, 8, 3)
    assert fault in GARBAGE
    for _ in range(4):
        (sent,) = distort(picture())
        with pytest.raises(InputError):
            from_image(sent)


def test_noise_is_no_jpeg() -> None:
    distort = COMPRESSED_FAULTS["random_jpeg"]()
    assert from_compressed(jpeg()).shape == (64, 64, 3)
    sent = [distort(jpeg())[0] for _ in range(3)]
    assert [len(message.data) for message in sent] == [4000, 4011, 0]
    (cut,) = COMPRESSED_FAULTS["cut_jpeg"]()(jpeg())
    assert len(cut.data) == len(jpeg().data) // 2


@pytest.mark.parametrize("fault", ["nan", "infinite", "zero_quaternion"])
def test_no_damaged_odometry_can_be_read(fault: str) -> None:
    (sent,) = ODOMETRY_FAULTS[fault]()(odometry())
    with pytest.raises(InputError):
        odometry_sample(sent)


def test_a_twist_in_the_parents_frame_points_along_y() -> None:
    (sent,) = ODOMETRY_FAULTS["parent_twist"]()(odometry())
    velocity = sent.twist.twist.linear
    assert (velocity.x, velocity.y) == pytest.approx((0.0, 3.0))
    assert sent.pose == odometry().pose


def observation() -> Observation:
    standing = EgoHistory(np.zeros((HISTORY_POSES, 3)), np.tile(np.eye(3), (HISTORY_POSES, 1, 1)))
    return Observation(seconds_to_ns(T_S), {}, standing)


def test_a_faulty_core_does_what_it_is_told_and_is_the_real_one_otherwise(tmp_path: Path) -> None:
    pipe = OrderPipe(tmp_path / "orders")
    real = StraightCore()
    core = FaultyCore(real, OrderReader(pipe.path))
    assert core.observation_spec is real.observation_spec
    assert core.plan(observation()).trajectory.position_m[-1, 0] == pytest.approx(6.4 * SPEED_MPS)
    pipe.send("planner raises")
    with pytest.raises(RuntimeError, match="the model has failed"):
        core.plan(observation())
    pipe.send("planner not_finite")
    assert math.isnan(core.plan(observation()).trajectory.position_m[0, 0])
    pipe.send("planner teleports")
    assert core.plan(observation()).trajectory.position_m[0, 1] == pytest.approx(50.0)
    pipe.send("planner none")
    assert core.plan(observation()).trajectory.position_m[0, 1] == pytest.approx(0.0)
    pipe.send("planner dances")
    with pytest.raises(InputError, match="the planner knows no fault 'dances'"):
        core.plan(observation())
    pipe.close()


def test_a_reversing_plan_goes_back_step_by_step() -> None:
    plan = StraightCore().plan(observation()).trajectory
    reversing = BAD_PLANS["reverses"](plan)
    x_m = [0.0, *reversing.position_m[:, 0].tolist()]
    assert all(later < earlier for earlier, later in pairwise(x_m))
    assert (reversing.speed_mps < 0.0).all()
