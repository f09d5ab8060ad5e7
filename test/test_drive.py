"""The endless drive of the fault run, and the pipe of its orders."""

from pathlib import Path

import numpy as np
import pytest
from straight_drive import straight_drive

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.evaluation.drive import STEP_S, Drive
from flatrope_planner.evaluation.drive_recording import record_drive
from flatrope_planner.evaluation.order_pipe import OrderPipe, OrderReader


def quarter_turns() -> Drive:
    """Each lap of 1 s goes 10 m forward along x and turns left by 90 degrees at its end."""
    time_s = np.arange(21) * STEP_S
    motion = np.zeros((21, 5))
    motion[:, 0], motion[:, 3] = 10.0 * time_s, 10.0
    motion[-1, 2] = np.pi / 2.0
    return Drive(motion, np.zeros((10, 1, 2, 2, 3), np.uint8))


@pytest.mark.parametrize(
    ("time_s", "x_m", "y_m", "yaw_deg"),
    [(0.5, 5.0, 0.0, 0.0), (1.0, 10.0, 0.0, 90.0), (1.5, 10.0, 5.0, 90.0), (2.5, 5.0, 10.0, 180.0), (4.0, 0, 0, 360)],
)
def test_laps_join_in_place_and_heading(time_s: float, x_m: float, y_m: float, yaw_deg: float) -> None:
    pose = quarter_turns().pose_at(seconds_to_ns(time_s))
    assert (pose.x_m, pose.y_m) == pytest.approx((x_m, y_m), abs=1e-9)
    assert np.degrees(pose.yaw_rad) == pytest.approx(yaw_deg)


def test_odometry_is_the_truth() -> None:
    sample = straight_drive().odometry_at(seconds_to_ns(101.025))
    assert sample.position_m[0] == pytest.approx(5.0 * 101.025)
    assert sample.speed_mps == pytest.approx(5.0)


def test_pictures_come_in_turn_and_again_in_the_next_lap(tmp_path: Path) -> None:
    straight_drive().save(tmp_path)
    drive = Drive.load(tmp_path)
    shown = [int(drive.picture_at(seconds_to_ns(time_s), 1)[0, 0, 0]) for time_s in (0.0, 0.1, 1.9, 2.0, 100.3)]
    assert shown == [0, 1, 19, 0, 3]


def test_a_recorded_drive_keeps_its_speed_and_heads_along_y() -> None:
    drive = record_drive(0.4)
    assert drive.motion.shape == (9, 5)
    assert drive.pictures.shape == (4, 2, 160, 448, 3)
    assert drive.motion[0, 2] == pytest.approx(np.pi / 2.0)
    moved = drive.motion[-1, :2] - drive.motion[0, :2]
    assert moved[1] == pytest.approx(0.4 * drive.motion[0, 3], rel=0.02)
    assert abs(moved[0]) < 0.1 * moved[1]


def test_orders_come_through_in_order_and_reading_never_waits(tmp_path: Path) -> None:
    pipe = OrderPipe(tmp_path / "orders")
    reader = OrderReader(pipe.path)
    assert reader.read() == []
    pipe.send("odometry nan")
    pipe.send("clock stop")
    assert reader.read() == ["odometry nan", "clock stop"]
    reader.close()
    pipe.send("clock none")
    # Another reader takes the place of one that was killed.
    again = OrderReader(pipe.path)
    assert again.read() == ["clock none"]
    again.close()
    pipe.close()
    assert not pipe.path.exists()
