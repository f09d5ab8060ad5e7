"""The report says what the bag says: from a tiny recording made here, without ROS."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys.store import Typestore

from flatrope_planner.cli import main
from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.evaluation.bag_writer import BagWriter, typestore_with
from flatrope_planner.evaluation.report.page import write_report
from flatrope_planner.evaluation.report.pictures import Eye, with_plan
from flatrope_planner.evaluation.report.recording import RecordedPlan, read_recording
from flatrope_planner.evaluation.report.svg import nice_ticks
from flatrope_planner.evaluation.report.ticks import driven_scenes
from flatrope_planner.planning.pose import Pose, yaw_quaternion

DEFINITIONS = Path(__file__).resolve().parents[1] / "msg"
SPEED_MPS = 8.0
# A camera 1.5 m above the ground that looks ahead: its axes in the ego frame are x right, y down, z forward.
OPTICAL = (-0.5, 0.5, -0.5, 0.5)
FOCAL_PX, WIDTH_PX, HEIGHT_PX = 100.0, 200, 80
SECOND_NS = 1_000_000_000


class Messages:
    """Builds and writes messages without ROS."""

    def __init__(self, bag: BagWriter, store: Typestore) -> None:
        self.bag, self.store = bag, store

    def make(self, kind: str, **fields: Any) -> Any:
        return self.store.types[kind](**fields)

    def write(self, topic: str, stamp_ns: int, message: Any) -> None:
        kind = message.__msgtype__
        self.bag.write(topic, kind, stamp_ns, bytes(self.store.serialize_cdr(message, kind)))

    def header(self, stamp_ns: int, frame_id: str = "map") -> Any:
        sec, nanosec = divmod(stamp_ns, SECOND_NS)
        stamp = self.make("builtin_interfaces/msg/Time", sec=sec, nanosec=nanosec)
        return self.make("std_msgs/msg/Header", stamp=stamp, frame_id=frame_id)

    def vector(self, x: float, y: float = 0.0, z: float = 0.0) -> Any:
        return self.make("geometry_msgs/msg/Vector3", x=x, y=y, z=z)

    def pose(self, x: float, quaternion: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)) -> Any:
        point = self.make("geometry_msgs/msg/Point", x=x, y=0.0, z=0.0)
        return self.make("geometry_msgs/msg/Pose", position=point, orientation=self.quaternion(quaternion))

    def quaternion(self, xyzw: tuple[float, ...]) -> Any:
        return self.make("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", xyzw, strict=True)))

    def text(self, topic: str, stamp_ns: int, text: str) -> None:
        self.write(topic, stamp_ns, self.make("std_msgs/msg/String", data=text))

    def odometry(self, stamp_ns: int, x_m: float) -> None:
        twist = self.make("geometry_msgs/msg/Twist", linear=self.vector(SPEED_MPS), angular=self.vector(0.0, 0.0, 0.1))
        with_covariance = {"covariance": np.zeros(36)}
        message = self.make(
            "nav_msgs/msg/Odometry",
            header=self.header(stamp_ns),
            child_frame_id="ego_vehicle",
            pose=self.make("geometry_msgs/msg/PoseWithCovariance", pose=self.pose(x_m), **with_covariance),
            twist=self.make("geometry_msgs/msg/TwistWithCovariance", twist=twist, **with_covariance),
        )
        self.write("/carla/ego_vehicle/odometry", stamp_ns, message)

    def status(self, stamp_ns: int, **told: tuple[int, str]) -> None:
        """Task -> level and message."""
        statuses = [
            self.make(
                "diagnostic_msgs/msg/DiagnosticStatus",
                level=level,
                name=f"planner: {task}",
                message=message,
                hardware_id="",
                values=[],
            )
            for task, (level, message) in told.items()
        ]
        array = self.make("diagnostic_msgs/msg/DiagnosticArray", header=self.header(stamp_ns), status=statuses)
        self.write("/planner/output/status", stamp_ns, array)

    def plan(self, stamp_ns: int, x_m: float, fallback: str = "") -> None:
        points = [
            self.make(
                "flatrope_planner/msg/PlannedPoint",
                time_from_start=self.make("builtin_interfaces/msg/Duration", sec=i // 10, nanosec=i % 10 * 10**8),
                pose=self.pose(x_m + SPEED_MPS * i / 10.0),
                speed=SPEED_MPS,
                acceleration=0.0,
                curvature=0.0,
                yaw_rate=0.0,
            )
            for i in range(1, 31)
        ]
        message = self.make(
            "flatrope_planner/msg/PlannedTrajectory",
            header=self.header(stamp_ns),
            ego_pose=self.pose(x_m),
            points=points,
            status=0,
            status_reason=fallback,
            pending=False,
            target="nano",
            consistency=1,
            consistency_reason="",
            comfort_exceeded=[],
        )
        self.write("/planner/output/trajectory", stamp_ns, message)

    def rationale(self, topic: str, stamp_ns: int, text: str) -> None:
        kind = "flatrope_planner/msg/Rationale"
        self.write(topic, stamp_ns, self.make(kind, header=self.header(stamp_ns), text=text, tokens=[], complete=True))

    def costs(self, stamp_ns: int, total_ms: float) -> None:
        none = np.zeros(0, dtype=np.uint32)
        message = self.make(
            "flatrope_planner/msg/SpeculationStats",
            header=self.header(stamp_ns),
            **dict.fromkeys(("proposed", "accepted", "prefill_proposed", "prefill_accepted", "dropped_ticks"), 0),
            **dict.fromkeys(("deadline_misses", "fallbacks"), 0),
            **dict.fromkeys(("rounds", "committed", "ticks"), 12),
            accepted_at=none,
            acceptance_histogram=none,
            mean_acceptance_length=1.0,
            acceptance_rate=0.0,
            drafter="",
            **dict.fromkeys(("vision_ms", "prefill_ms", "reasoning_ms", "action_ms"), total_ms / 4.0),
            **dict.fromkeys(("draft_ms", "verify_ms"), total_ms / 8.0),
            total_ms=total_ms,
            observation_age_ms=total_ms + 5.0,
        )
        self.write("/planner/output/speculation", stamp_ns, message)

    def camera(self) -> None:
        placed = self.make(
            "geometry_msgs/msg/Transform", translation=self.vector(0.0, 0.0, 1.5), rotation=self.quaternion(OPTICAL)
        )
        mount = self.make(
            "geometry_msgs/msg/TransformStamped",
            header=self.header(0, "ego_vehicle"),
            child_frame_id="ego_vehicle/front_wide",
            transform=placed,
        )
        self.write("/simulator/camera_mounts", SECOND_NS, mount)
        region = dict.fromkeys(("x_offset", "y_offset", "height", "width"), 0)
        info = self.make(
            "sensor_msgs/msg/CameraInfo",
            header=self.header(SECOND_NS),
            height=HEIGHT_PX,
            width=WIDTH_PX,
            distortion_model="plumb_bob",
            d=np.zeros(5),
            k=np.array([FOCAL_PX, 0.0, WIDTH_PX / 2.0, 0.0, FOCAL_PX, HEIGHT_PX / 2.0, 0.0, 0.0, 1.0]),
            r=np.eye(3).ravel(),
            p=np.zeros(12),
            binning_x=0,
            binning_y=0,
            roi=self.make("sensor_msgs/msg/RegionOfInterest", do_rectify=False, **region),
        )
        self.write("/carla/ego_vehicle/front_wide/camera_info", SECOND_NS, info)

    def picture(self, stamp_ns: int, shade: int) -> None:
        _, encoded = cv2.imencode(".jpg", np.full((HEIGHT_PX, WIDTH_PX, 3), shade, dtype=np.uint8))
        message = self.make(
            "sensor_msgs/msg/CompressedImage", header=self.header(stamp_ns), format="jpeg", data=encoded.ravel()
        )
        self.write("/carla/ego_vehicle/front_wide/image/compressed", stamp_ns, message)

    def car(self, stamp_ns: int, x_m: float) -> None:
        zero = self.make("builtin_interfaces/msg/Duration", sec=0, nanosec=0)
        marker = self.make(
            "visualization_msgs/msg/Marker",
            header=self.header(stamp_ns),
            **dict.fromkeys(("ns", "text", "mesh_resource"), "vehicle"),
            **dict.fromkeys(("id", "action"), 0),
            type=1,
            pose=self.pose(x_m),
            scale=self.vector(4.0, 2.0, 1.5),
            color=self.make("std_msgs/msg/ColorRGBA", r=1.0, g=0.0, b=0.0, a=1.0),
            lifetime=zero,
            **dict.fromkeys(("frame_locked", "mesh_use_embedded_materials"), False),
            points=[],
            colors=[],
            uv_coordinates=[],
            texture_resource="",
            texture=self.make(
                "sensor_msgs/msg/CompressedImage", header=self.header(0), format="", data=np.zeros(0, np.uint8)
            ),
            mesh_file=self.make("visualization_msgs/msg/MeshFile", filename="", data=np.zeros(0, np.uint8)),
        )
        self.write("/carla/markers", stamp_ns, self.make("visualization_msgs/msg/MarkerArray", markers=[marker]))


def record(file: Path) -> None:
    """Two scenes of 3 s at 8 m/s: the first one passed, the second one not."""
    with BagWriter(file, DEFINITIONS) as bag:
        messages = Messages(bag, typestore_with(DEFINITIONS))
        messages.camera()
        for scene, start_ns in enumerate((SECOND_NS, 10 * SECOND_NS)):
            messages.text("/simulator/scene", start_ns, f"lead, seed {scene}")
            for step in range(61):
                stamp_ns, x_m = start_ns + step * SECOND_NS // 20, SPEED_MPS * step / 20.0
                messages.odometry(stamp_ns, x_m)
                if step >= 20 and step % 10 == 0:
                    messages.car(stamp_ns, 30.0 + step)
                    messages.picture(stamp_ns, 90 + step)
                    messages.plan(stamp_ns, x_m)
                    words = "Slow down because the car ahead is braking." if step > 40 else "Keep the lane <now>."
                    messages.rationale("/planner/output/rationale", stamp_ns, words)
                    messages.rationale("/simulator/reference/rationale", stamp_ns, "Slow down because of a car.")
                    messages.costs(stamp_ns, 100.0 + step)
            outcome = {"success": scene == 0, "failures": ["collision"] if scene else [], "control_timeouts": 2 + scene}
            messages.text("/simulator/outcome", start_ns + 3 * SECOND_NS, json.dumps(outcome))


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("drive") / "run.mcap"
    record(file)
    return file


def test_the_bag_is_one_file_that_explains_itself(bag: Path) -> None:
    assert [path.name for path in bag.parent.iterdir()] == ["run.mcap"]
    recording = read_recording(bag)
    assert len(recording.odometry) == 122
    assert recording.plans[0].speed_mps.tolist() == [SPEED_MPS] * 30
    assert recording.plans[0].time_s[0] == pytest.approx(0.1)


def test_summary_is_the_drive_in_numbers(bag: Path, tmp_path: Path) -> None:
    summary = write_report(bag, tmp_path / "report.html")
    assert summary["duration_s"] == 6.0
    assert summary["distance_m"] == pytest.approx(2 * 3.0 * SPEED_MPS)
    # Plans at 1, 1.5, 2, 2.5 and 3 s of each scene.
    assert summary["ticks"] == 10
    # Total times 120, 130, 140, 150, 160 ms, twice.
    assert summary["stage_ms"]["total"] == {"p50": 140.0, "p95": 160.0, "max": 160.0}
    assert summary["stage_ms"]["vision"]["p50"] == 35.0
    assert summary["observation_age_ms"]["p50"] == 145.0
    assert summary["decisions"] == {"keep": 6, "slow": 4}
    assert summary["decision_agrees_with_reference"] == 0.4
    assert [scene["outcome"] for scene in summary["scenes"]] == ["success", "collision"]
    # Two in the first scene, three in the second.
    assert summary["control_timeouts"] == 5
    assert [scene["title"] for scene in summary["scenes"]] == ["lead, seed 0", "lead, seed 1"]


FIRST, SECOND = {"family": "lead", "seed": 0, "success": True}, {"family": "lead", "seed": 1, "success": False}
UNTIL_GAP_NS = 8 * SECOND_NS


@pytest.mark.parametrize(
    ("seeds", "outcomes", "told"),
    [
        # At the same time as the next scene's first messages, as the clock leaps there in one step.
        ((0, 1), [(UNTIL_GAP_NS, FIRST), (UNTIL_GAP_NS + 3, SECOND)], ["success", "collision"]),
        # When the next scene is well on its way, and the other way round.
        ((0, 1), [(9 * SECOND_NS, SECOND), (10 * SECOND_NS, FIRST)], ["success", "collision"]),
        # Two that are called alike, one after the other.
        ((0, 0), [(UNTIL_GAP_NS, FIRST), (10 * SECOND_NS, {**FIRST, "success": False})], ["success", "collision"]),
        ((0, 1), [(UNTIL_GAP_NS, FIRST)], ["success", ""]),
        ((0, 1), [(UNTIL_GAP_NS, SECOND)], ["", "collision"]),
        # Without a name by the time of its end, or else of its recording.
        ((0, 1), [(UNTIL_GAP_NS + 5, {"success": True, "end_s": 3.0})], ["success", ""]),
        ((0, 1), [(2 * SECOND_NS, {"success": True}), (9 * SECOND_NS, {"success": False})], ["success", "collision"]),
        # Of a scene that was over before the recording began.
        ((0, 1), [(SECOND_NS + 5, {**FIRST, "seed": 7, "end_s": 0.5})], ["", ""]),
    ],
)
def test_an_outcome_is_that_of_its_own_scene_whenever_it_was_recorded(
    tmp_path: Path, seeds: tuple[int, int], outcomes: list[tuple[int, dict[str, Any]]], told: list[str]
) -> None:
    with BagWriter(tmp_path / "run.mcap", DEFINITIONS) as bag:
        messages = Messages(bag, typestore_with(DEFINITIONS))
        for seed, start_ns in zip(seeds, (SECOND_NS, UNTIL_GAP_NS), strict=True):
            messages.text("/simulator/scene", start_ns, f"lead, seed {seed}")
            for step in range(41):
                messages.odometry(start_ns + step * SECOND_NS // 20, SPEED_MPS * step / 20.0)
        for log_ns, outcome in outcomes:
            messages.text("/simulator/outcome", log_ns, json.dumps({"failures": ["collision"], **outcome}))
    scenes = driven_scenes(read_recording(tmp_path / "run.mcap"))
    assert [scene.outcome for scene in scenes] == told


def test_stretches_without_a_plan_say_why(bag: Path, tmp_path: Path) -> None:
    with BagWriter(tmp_path / "run.mcap", DEFINITIONS) as writer:
        messages = Messages(writer, typestore_with(DEFINITIONS))
        for step in range(601):
            stamp_ns, x_m = SECOND_NS + step * SECOND_NS // 20, SPEED_MPS * step / 20.0
            messages.odometry(stamp_ns, x_m)
            time_s = step / 20.0
            if time_s in (4.0, 4.5, 5.0, 9.0, 9.5, 10.0, 18.0, 26.0):
                messages.plan(stamp_ns, x_m)
            if time_s in (10.5, 11.0, 11.5):
                messages.plan(stamp_ns, x_m, fallback="the plan is <late>")
            if time_s == int(time_s):
                loading, lost = (1, "the model is being loaded"), (2, f"nothing on /image for {time_s - 5.0:.1f} s")
                idle, well = (1, "nothing has been planned for 4.0 s: see inputs"), (0, "as it should be")
                messages.status(
                    stamp_ns,
                    model=loading if time_s < 4.0 else well,
                    inputs=lost if 6.0 < time_s < 12.0 else (1, "one camera is slow") if time_s < 12.0 else well,
                    plans=idle if 6.0 < time_s < 12.0 else well,
                )
    write_report(tmp_path / "run.mcap", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<p class="note">([^<]*stretch[^<]*|no plan[^<]*)</p>', page) == [
        "no plan from 0.0 s to 4.0 s (model: the model is being loaded)",
        "no plan from 5.0 s to 9.0 s (inputs: nothing on /image for 2.0 to 4.0 s)",
        "no plan from 10.0 s to 18.0 s (the plan is &lt;late&gt;)",
        # From 18 s to 26 s, and from there to the end.
        "and 2 more stretches without a plan",
    ]
    write_report(bag, tmp_path / "report.html")
    assert "no plan from" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_messages_that_mean_nothing_cost_themselves(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "run.mcap", DEFINITIONS) as writer:
        messages = Messages(writer, typestore_with(DEFINITIONS))
        for step in range(101):
            messages.odometry(SECOND_NS + step * SECOND_NS // 20, SPEED_MPS * step / 20.0)
        writer.write(
            "/planner/output/status", "diagnostic_msgs/msg/DiagnosticArray", SECOND_NS, b"\0\1\0\0" + b"\xff" * 9
        )
        messages.text("/game/outcome", SECOND_NS, "won")
        messages.status(2 * SECOND_NS, inputs=(2, "<b>1.0 s\0 and \x07 nothing"))
        # Plans of no time in which anything was driven.
        messages.plan(SECOND_NS // 2, 0.0)
        messages.plan(60 * SECOND_NS, 0.0)
    recording = write_report(tmp_path / "run.mcap", tmp_path / "report.html")
    assert [line.partition(" messages")[0] for line in recording["missing"]] == [
        "/game/outcome: 1 of 1",
        "/planner/output/status: 1 of 2",
    ]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "no plan from 0.0 s to 5.0 s (inputs: &lt;b&gt;1.0 s" in page
    assert "<b>1.0" not in page
    assert "\0" not in page


def test_the_page_holds_everything(bag: Path, tmp_path: Path) -> None:
    write_report(bag, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", page)
    assert "Keep the lane &lt;now&gt;." in page
    assert "<b>1/2</b>" in page
    data = json.loads(re.findall(r"const DRIVE = (.*);\n", page)[0])
    assert len(data["pictures"]) == 10
    assert data["ticks"][0]["words"] == "Keep the lane <now>."
    assert data["ticks"][0]["plan"][0] == [8.8, 0.0]
    # The car of 4 m x 2 m at 50 m, seen from above.
    assert sorted(map(tuple, data["shapes"][0]["p"])) == [(48.0, -1.0), (48.0, 1.0), (52.0, -1.0), (52.0, 1.0)]


def test_the_plan_is_drawn_into_the_picture(bag: Path, tmp_path: Path) -> None:
    write_report(bag, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    encoded = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", page)[0]
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(encoded), np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert picture.shape == (224, 560, 3)
    # Grey above the horizon, green on the road ahead.
    sky, road = picture[60, 280].astype(int), picture[180, 280].astype(int)
    assert np.ptp(sky) < 12
    assert road[1] > road[2] + 30


def test_the_ribbon_lies_where_the_camera_sees_the_road() -> None:
    plan = RecordedPlan(
        t0_ns=0,
        ego_pose=Pose(5.0, 3.0, 0.0, yaw_quaternion(0.3)),
        position_m=np.array([[5.0 + d * np.cos(0.3), 3.0 + d * np.sin(0.3), 0.0] for d in range(1, 40)]),
        yaw_rad=np.full(39, 0.3),
        time_s=np.arange(1.0, 40.0) / 10.0,
        speed_mps=np.full(39, 10.0),
        curvature=np.zeros(39),
        fallback_reason="",
        target="nano",
    )
    intrinsics = np.array([[FOCAL_PX, 0.0, 100.0], [0.0, FOCAL_PX, 40.0], [0.0, 0.0, 1.0]])
    eye = Eye(intrinsics, WIDTH_PX, Pose(0.0, 0.0, 1.5, np.array(OPTICAL)))
    # A point on the ground 10 m ahead and 0.9 m left: 100 - 0.9 / 10 * 100, 40 + 1.5 / 10 * 100.
    np.testing.assert_allclose(eye.project(np.array([[10.0, 0.9, 0.0]])), [[91.0, 55.0]], atol=1e-9)
    black: Image = np.zeros((HEIGHT_PX, WIDTH_PX, 3), dtype=np.uint8)
    green = with_plan(black, plan, eye)[:, :, 1] > 20
    columns = np.flatnonzero(green[55])
    assert (columns[0], columns[-1]) == (pytest.approx(91, abs=2), pytest.approx(109, abs=2))
    assert not green[:40].any()


def test_what_is_no_bag_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mcap").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"a\.mcap cannot be read: it does not begin as an"):
        read_recording(tmp_path / "a.mcap")


def test_a_bag_without_a_drive_is_refused(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "a.mcap", DEFINITIONS) as writer:
        Messages(writer, typestore_with(DEFINITIONS)).text("/scene", 1, "empty")
    with pytest.raises(InputError, match="no nav_msgs/msg/Odometry"):
        read_recording(tmp_path / "a.mcap")


def test_missing_definitions_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no message definitions"):
        BagWriter(tmp_path / "a.mcap", tmp_path)


def test_ticks_are_round_numbers() -> None:
    assert nice_ticks(0.0, 10.0) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert nice_ticks(-0.03, 0.03, 4) == pytest.approx([-0.02, 0.0, 0.02])


def test_a_bag_cut_short_or_overwritten_is_named(bag: Path, tmp_path: Path) -> None:
    def told(content: bytes) -> list[str]:
        copy.write_bytes(content)
        try:
            return read_recording(copy).missing
        except InputError as err:
            return [str(err)]

    whole, copy = bag.read_bytes(), tmp_path / "copy.mcap"
    for place in np.linspace(0, len(whole) - 1, 12).astype(int):
        assert told(whole[:place])[0].startswith(str(copy))
        # Within a picture nobody can tell.
        lines = told(whole[:place] + bytes([0xA5] * 40) + whole[place + 40 :])
        assert all(line.startswith((str(copy), "/")) and line.isprintable() for line in lines)


@pytest.mark.parametrize("as_folder", [True, False])
def test_the_report_goes_beside_the_bag_unless_told_otherwise(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], as_folder: bool
) -> None:
    folder = tmp_path / "drive"
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer, AnyReader([bag]) as reader:
        connections = {
            c.topic: writer.add_connection(c.topic, c.msgtype, typestore=reader.typestore) for c in reader.connections
        }
        for connection, stamp_ns, raw in reader.messages():
            writer.write(connections[connection.topic], stamp_ns, bytes(raw))
    assert main(["report", str(folder if as_folder else folder / "drive.mcap")]) == 0
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\n"
    assert (folder / "report.html").is_file()
    assert main(["report", str(folder), "--html", str(tmp_path / "mine" / "own.html")]) == 0
    assert (tmp_path / "mine" / "own.html").is_file()
