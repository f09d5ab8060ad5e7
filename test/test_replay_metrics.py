"""Comfort, stability, speculation and their totals; what is not known is null, never a number."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from drives import CheapCore, Drive, Sent, ahead, circling, header, image_message, make, replay, write_bag
from stand_ins import straight

from flatrope_planner.domain import Floats, Plan, Rationale, SpeculationStats, Trajectory
from flatrope_planner.evaluation.replay.contestants import Contestants, comparison
from flatrope_planner.evaluation.replay.extended_comfort import changes
from flatrope_planner.evaluation.replay.page import write_page
from flatrope_planner.evaluation.replay.rows import common_prefix_share
from flatrope_planner.evaluation.replay.summary import rows_in, summary_of
from flatrope_planner.evaluation.replay.totals import Totals
from flatrope_planner.evaluation.report.recording import read_recording
from flatrope_planner.planning.comfort import exceeded, profile_of
from flatrope_planner.planning.driven_arc import DrivenArc

TIME_S: Floats = np.linspace(0.1, 6.4, 64)


def moving(speed_mps: Any, yaw_rad: Any) -> Trajectory:
    return replace(
        straight(), speed_mps=np.asarray(speed_mps + 0.0 * TIME_S), yaw_rad=np.asarray(yaw_rad + 0.0 * TIME_S)
    )


def plan_of(text: str, trajectory: Trajectory | None = None) -> Plan:
    return Plan(0, trajectory or straight(), Rationale(text), SpeculationStats(0, 0, 0, 0))


@pytest.mark.parametrize(
    ("start_mps", "trajectory", "broken"),
    [
        (8.0, moving(8.0, 0.0), {}),
        (5.0, moving(5.0 + 2.3 * TIME_S, 0.0), {}),
        (5.0, moving(5.0 + 2.5 * TIME_S, 0.0), {"longitudinal acceleration": 2.5}),
        (30.0, moving(30.0 - 4.2 * TIME_S, 0.0), {"longitudinal acceleration": -4.2}),
        (8.0, moving(8.0, 0.6 * TIME_S), {}),
        (8.0, moving(8.0, -0.65 * TIME_S), {"lateral acceleration": -5.2}),
        (1.0, moving(1.0, 1.0 * TIME_S), {"yaw rate": 1.0}),
    ],
)
def test_bounds_of_comfort_by_hand(start_mps: float, trajectory: Trajectory, broken: dict[str, float]) -> None:
    found = exceeded(profile_of(trajectory, DrivenArc(start_mps)))
    assert {bound.quantity: worst for bound, worst in found.items()} == pytest.approx(broken)


def test_change_between_plans_is_taken_where_both_speak() -> None:
    steady = profile_of(moving(8.0, 0.0), DrivenArc(8.0))
    gentle = profile_of(moving(8.0 + 0.5 * TIME_S, 0.05 * TIME_S), DrivenArc(8.0))
    change = changes(steady, gentle, 0.5)
    assert change is not None
    assert change["yaw_rate"] == pytest.approx(0.05)
    later = profile_of(moving(8.0 + 0.5 * (TIME_S + 0.5), 0.05 * TIME_S), DrivenArc(8.25))
    same = changes(gentle, later, 0.5)
    assert same is not None
    assert same["acceleration"] == pytest.approx(0.0, abs=0.02)
    assert changes(steady, gentle, 2.5) is None
    assert changes(steady, gentle, 0.0) is None


@pytest.mark.parametrize(
    ("last", "now", "share"),
    [
        ("Stop at the line.", "Stop at the line.", 1.0),
        ("Stop at the line.", "Stop behind the car.", 0.25),
        ("Keep going.", "Stop.", 0.0),
        ("Keep going because it is clear", "Keep going", 1 / 3),
        ("", "", 1.0),
    ],
)
def test_words_kept_from_the_beginning(last: str, now: str, share: float) -> None:
    assert common_prefix_share(plan_of(last), plan_of(now)) == pytest.approx(share)


def test_one_bit_or_word_is_a_difference() -> None:
    plan = plan_of("Keep going.")
    nudged = straight()
    nudged.position_m[5, 1] = np.nextafter(0.0, 1.0)
    assert comparison(plan, plan_of("Keep going."))["identical_trajectory"]
    assert comparison(plan, plan_of("Keep going."))["identical_rationale"]
    assert not comparison(plan, plan_of("Keep going.", nudged))["identical_trajectory"]
    assert not comparison(plan, plan_of("Keep going!"))["identical_rationale"]


def test_nothing_known_is_null_with_a_reason() -> None:
    summary = Totals().summary()
    assert summary["errors"]["3s"]["ade_m"] is None
    assert summary["errors"]["3s"]["miss_rate"] is None
    for name in ("least_errors", "scene", "comfort", "extended_comfort", "rationale", "speculation", "compared"):
        assert set(summary[name]) == {"unavailable"}
        assert summary[name]["unavailable"]


def test_samples_give_the_least_error(tmp_path: Path) -> None:
    core = CheapCore()
    bag = write_bag(tmp_path / "drive", Drive(ahead(6.0)))
    result = replay(bag, tmp_path / "out", Contestants(core, samples=3))
    # Drawn at 5, 5.5 and 6 m/s: the last one is what was driven.
    assert result["least_errors"]["samples"] == 3
    assert result["least_errors"]["3s"]["min_ade_m"] == pytest.approx(0.0, abs=1e-6)
    assert result["errors"]["3s"]["ade_m"] == pytest.approx(1.55)


def test_the_plan_itself_is_among_those_whose_error_is_the_least(tmp_path: Path) -> None:
    # Planned is what is driven; the samples are at 5 and 5.5 m/s.
    contestants = Contestants(CheapCore(straight(6.0)), samples=2)
    result = replay(write_bag(tmp_path / "drive", Drive(ahead(6.0))), tmp_path / "out", contestants)
    assert result["least_errors"]["2s"]["min_fde_m"] == pytest.approx(0.0, abs=1e-6)
    rows = [json.loads(line) for line in (tmp_path / "out" / "drive" / "plans.jsonl").read_text().splitlines()]
    assert rows[0]["sample_errors"]["2s"] == {"ade_m": pytest.approx([1.05, 0.525]), "fde_m": pytest.approx([2.0, 1.0])}
    # The last plan's future is not known.
    assert rows[-1]["sample_errors"] == {}
    for name in ("ade_m", "fde_m"):
        with_samples = [row for row in rows if "1s" in row["sample_errors"]]
        least = [min(row["errors"]["1s"][name], *row["sample_errors"]["1s"][name]) for row in with_samples]
        assert result["least_errors"]["1s"][f"min_{name}"] == pytest.approx(np.mean(least), abs=1e-6)


def test_a_least_error_that_no_plan_has_is_null_with_a_reason(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive(duration_s=3.0))
    least = replay(bag, tmp_path / "out", Contestants(CheapCore(), samples=3))["least_errors"]
    assert least["1s"]["plans"] == 2
    for horizon in ("4s", "6s", "full"):
        nothing = {"plans": 0, "min_ade_m": None, "min_fde_m": None}
        assert least[horizon] == {**nothing, "unavailable": "the odometry does not cover it"}


def test_a_planner_that_differs_from_its_twin_is_found(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive(duration_s=4.0))
    result = replay(bag, tmp_path / "out", Contestants(CheapCore(), plain=CheapCore(straight(5.0 + 1e-12))))
    compared = result["compared"]
    assert compared["identical_rationales"] == compared["plans"] == 6
    assert compared["identical_trajectories"] == 0
    assert len(compared["differing_t0_s"]) == 6


@pytest.fixture(scope="module")
def replayed_turn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated drive around a bend, replayed by one that goes straight."""
    folder = tmp_path_factory.mktemp("turn")
    info = make(
        "sensor_msgs/CameraInfo",
        header=header(0.0, "front_wide_optical"),
        height=80,
        width=200,
        distortion_model="plumb_bob",
        d=np.zeros(5),
        k=np.array([100.0, 0, 100, 0, 100, 40, 0, 0, 1]),
        r=np.eye(3).ravel(),
        p=np.zeros(12),
        binning_x=0,
        binning_y=0,
        roi=make("sensor_msgs/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False),
    )
    frames = {
        ("base_link", "front_wide"): (1.0, 1.5, (0.0, 0.0, 0.0, 1.0)),
        ("front_wide", "front_wide_optical"): (0.0, 0.0, (-0.5, 0.5, -0.5, 0.5)),
    }
    transforms = [
        make(
            "geometry_msgs/TransformStamped",
            header=header(0.0, parent),
            child_frame_id=child,
            transform=make(
                "geometry_msgs/Transform",
                translation=make("geometry_msgs/Vector3", x=x, y=0.0, z=z),
                rotation=make("geometry_msgs/Quaternion", **dict(zip("xyzw", turn, strict=True))),
            ),
        )
        for (parent, child), (x, z, turn) in frames.items()
    ]
    more = (
        Sent(0.0, "/sensing/front_wide/camera_info", info),
        Sent(0.0, "/tf_static", make("tf2_msgs/TFMessage", transforms=transforms)),
    )
    drive = Drive(circling(5.0, 20.0), picture=grey_image_message, more=more)
    replay(write_bag(folder / "turn", drive), folder / "out")
    return folder / "out" / "turn"


def grey_image_message(time_s: float, camera: str) -> Any:
    message = image_message(time_s, camera)
    message.height, message.width, message.step = 80, 200, 600
    message.data = np.full(80 * 200 * 3, 128, np.uint8)
    return message


def test_the_worst_moments_show_both_paths_where_they_lie(replayed_turn: Path) -> None:
    import base64

    moments = json.loads((replayed_turn / "moments.json").read_text())
    assert 1 <= len(moments) <= 10
    assert all(moment["calibrated"] for moment in moments)
    errors = [moment["error_m"] for moment in moments]
    assert errors == sorted(errors, reverse=True)
    image = cv2.imdecode(np.frombuffer(base64.b64decode(moments[0]["jpeg"]), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    blue, red = (image[..., channel].astype(int) for channel in (0, 2))
    planned, driven = (red - blue > 40), (blue - red > 40)
    # Straight ahead lies in the middle, the left turn to its left; both below the horizon at half the height.
    assert abs(np.argwhere(planned)[:, 1].mean() - 100) < 6
    assert np.argwhere(driven)[:, 1].mean() < 90
    assert np.argwhere(planned | driven)[:, 0].min() >= 38


def test_the_bag_of_plans_is_one_of_the_planners_topics(replayed_turn: Path) -> None:
    from rosbags.highlevel import AnyReader

    rows = list(rows_in(replayed_turn))
    with AnyReader([replayed_turn / "plans.mcap"]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        decoded: dict[str, Any] = {c.topic: reader.deserialize(data, c.msgtype) for c, _, data in reader.messages()}
    names = ("trajectory", "path", "rationale", "rationale_text", "speculation")
    topics = (*(f"/planner/output/{name}" for name in names), "/replay/driven", "/replay/markers")
    assert counts == dict.fromkeys(topics, len(rows))
    # Read by nothing but the definitions in the file.
    assert set(decoded) == set(topics)
    markers = {marker.ns: marker for marker in decoded["/replay/markers"].markers}
    assert set(markers) == {"planned", "driven", "rationale"}
    assert len(markers["planned"].points) == 1 + len(rows[-1]["position_m"])
    known = [point for point in rows[-1]["driven_m"] if point]
    assert len(markers["driven"].points) == 1 + len(known)
    assert markers["rationale"].text == rows[-1]["rationale"]
    assert kinds["/planner/output/trajectory"] == "flatrope_planner/msg/PlannedTrajectory"
    assert kinds["/planner/output/path"] == kinds["/replay/driven"] == "nav_msgs/msg/Path"


def test_plans_in_the_bag_lie_where_they_were_planned(replayed_turn: Path, tmp_path: Path) -> None:
    # The report's reader wants odometry: together with that of the drive it reads the plans as any other.
    recording = read_recording_of_plans(replayed_turn / "plans.mcap", tmp_path)
    rows = list(rows_in(replayed_turn))
    for plan, row in zip(recording, rows, strict=True):
        assert plan.t0_ns == row["t0_ns"]
        reach_m = np.linalg.norm(plan.position_m - plan.ego_pose.position_m, axis=1)
        np.testing.assert_allclose(reach_m, 5.0 * TIME_S, atol=1e-6)
        ahead_m = plan.position_m[0] - plan.ego_pose.position_m
        assert np.arctan2(ahead_m[1], ahead_m[0]) == pytest.approx(plan.ego_pose.yaw_rad)


def read_recording_of_plans(bag: Path, folder: Path) -> Any:
    from rosbags.highlevel import AnyReader

    from flatrope_planner.evaluation.bag_writer import BagWriter

    with BagWriter(folder / "both.mcap", Path(__file__).resolve().parents[1] / "msg") as both:
        with AnyReader([bag]) as reader:
            for connection, stamp_ns, data in reader.messages():
                both.write(connection.topic, connection.msgtype, stamp_ns, bytes(data))
        from drives import STORE, odometry_message

        message = odometry_message(0.0, ahead(5.0))
        both.write("/odometry", message.__msgtype__, 1, bytes(STORE.serialize_cdr(message, message.__msgtype__)))
    return read_recording(folder / "both.mcap").plans


def test_the_page_needs_nothing_else(replayed_turn: Path, tmp_path: Path) -> None:
    result = json.loads((replayed_turn / "result.json").read_text())
    summary = summary_of([result], [replayed_turn], wall_s=1.0)
    write_page(tmp_path / "report.html", summary, [replayed_turn])
    page = (tmp_path / "report.html").read_text()
    for word in ("http://", "https://", ' src="/', "@import", "$"):
        assert word not in page
    assert page.count("data:image/jpeg;base64,") == len(json.loads((replayed_turn / "moments.json").read_text()))
    assert page.count("<svg") == page.count("</svg>")
    assert "Keep the lane late." in page
    assert "unavailable: not asked for: --compare off" in page


def test_a_page_of_nothing_can_be_made(tmp_path: Path) -> None:
    failed = {"name": "a", "status": "failed", "error": "a <b> is no bag", "run": {}}
    summary = summary_of([failed], [tmp_path], wall_s=1.0)
    write_page(tmp_path / "report.html", summary, [])
    assert "a &lt;b&gt; is no bag" in (tmp_path / "report.html").read_text()
