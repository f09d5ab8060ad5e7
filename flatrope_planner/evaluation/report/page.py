"""Puts the report together: tiles, player, charts, maps, camera strip, latencies, all in one HTML file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from flatrope_planner.domain import Floats
from flatrope_planner.errors import on_one_line
from flatrope_planner.evaluation.replay.holes import Hole, holes_in_words
from flatrope_planner.evaluation.report.figures import latency_charts, speed_chart, steering_chart
from flatrope_planner.evaluation.report.frame import ASSETS, Frame, template
from flatrope_planner.evaluation.report.idle_stretches import idle_stretches
from flatrope_planner.evaluation.report.pictures import Eye, embedded_picture
from flatrope_planner.evaluation.report.recording import Recording, read_recording
from flatrope_planner.evaluation.report.shapes import Shape
from flatrope_planner.evaluation.report.summary import summary_of
from flatrope_planner.evaluation.report.ticks import DrivenScene, Tick, driven_scenes, seconds_into, ticks_of

# A frame of the strip for every new rationale, and at least this often.
STRIP_PERIOD_S = 3.0
PATH_PERIOD_S = 0.1


def write_report(bag: Path, html: Path) -> dict[str, Any]:
    """Write the report of a bag, and return its numbers (`summary_of`).

    Raises:
        InputError: if the bag cannot be read or has no drive in it.
    """
    recording = read_recording(bag)
    scenes = driven_scenes(recording)
    ticks = ticks_of(recording, scenes)
    summary = summary_of(recording, scenes, ticks)
    html.write_text(_page(_Drive(recording, scenes, ticks), summary), encoding="utf-8")
    return summary


@dataclass(frozen=True)
class _Drive:
    recording: Recording
    scenes: list[DrivenScene]
    ticks: list[Tick]

    @property
    def idle(self) -> list[Hole]:
        """Stretches without a plan."""
        return idle_stretches(self.recording, self.scenes, self.ticks)

    @property
    def cameras(self) -> list[str]:
        """The widest view first."""

        def focal_share(camera: str) -> float:
            intrinsics, width_px = self.recording.intrinsics[camera]
            return float(intrinsics[0, 0]) / width_px

        known = [camera for camera in self.recording.pictures if camera in self.recording.intrinsics]
        return sorted(known, key=focal_share) + sorted(set(self.recording.pictures) - set(known))

    def eye(self, camera: str) -> Eye | None:
        """The camera, if the bag says how it looks and where it sits."""
        mounts = [pose for frame, pose in self.recording.mounts.items() if frame.split("/")[-1] == camera]
        if camera not in self.recording.intrinsics or not mounts:
            return None
        return Eye(*self.recording.intrinsics[camera], mounts[0])


def _page(drive: _Drive, summary: dict[str, Any]) -> str:
    recording, scenes, ticks = drive.recording, drive.scenes, drive.ticks
    target = ticks[0].plan.target if ticks else "nobody"
    frame = Frame(
        title="Drive report",
        lead=f"{target} at the wheel: {len(scenes)} scenes, {summary['ticks']} plans, each with its reason.",
        footer="Made by flatrope_planner from a recorded bag. Times on the axes are ROS time since the first odometry.",
        facts=_facts(summary),
    )
    body = template(ASSETS / "page.html").substitute(
        scenes=_scene_table(summary),
        idle="".join(f'<p class="note">{escape(on_one_line(line))}</p>' for line in holes_in_words(drive.idle)),
        speed=speed_chart(recording, scenes, ticks),
        steering=steering_chart(recording, scenes, ticks),
        strips="".join(_strips(drive)),
        latency=latency_charts(ticks),
        stages=_stage_table(summary),
    )
    script = template(ASSETS / "script.html").substitute(
        script=(ASSETS / "player.js").read_text(encoding="utf-8"),
        data=json.dumps(_data(drive), separators=(",", ":")).replace("</", "<\\/"),
    )
    return frame.around(body, script)


def _facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    total_ms, age_ms = summary["stage_ms"].get("total", {}), summary["observation_age_ms"]
    agrees, tau = summary["decision_agrees_with_reference"], summary["mean_acceptance_length"]
    ended = [scene["outcome"] for scene in summary["scenes"] if scene["outcome"]]
    facts = [
        (f"{summary['duration_s']:.0f} s", "driven"),
        (f"{summary['distance_m']:.0f} m", "covered"),
        (f"{sum(outcome == 'success' for outcome in ended)}/{len(ended)}", "scenes passed") if ended else None,
        (f"{summary['ticks']}", f"plans, {summary['dropped_ticks']} dropped"),
        (f"{total_ms['p50']:.0f} ms", f"a tick (p95 {total_ms['p95']:.0f} ms)") if total_ms else None,
        (f"{age_ms['p50']:.0f} ms", "from exposure to plan") if age_ms else None,
        (f"{tau:.2f}", "tokens a round") if tau is not None else None,
        (f"{agrees:.0%}", "decisions as the reference") if agrees is not None else None,
    ]
    return [fact for fact in facts if fact]


def _scene_table(summary: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{escape(scene['title'])}</td><td>{escape(scene['outcome']) or '-'}</td>"
        f"<td>{scene['duration_s']:.1f} s</td><td>{scene['distance_m']:.0f} m</td><td>{scene['ticks']}</td></tr>"
        for scene in summary["scenes"]
    ]
    head = "<tr><th>scene</th><th>outcome</th><th>time</th><th>distance</th><th>plans</th></tr>"
    return f'<div class="card"><table>{head}{"".join(rows)}</table></div>'


def _stage_table(summary: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{stage}</td><td>{times['p50']:.1f}</td><td>{times['p95']:.1f}</td><td>{times['max']:.1f}</td></tr>"
        for stage, times in summary["stage_ms"].items()
        if times
    ]
    head = "<tr><th>stage, ms</th><th>median</th><th>p95</th><th>max</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _strips(drive: _Drive) -> Iterator[str]:
    shown = set(_strip_ticks(drive.ticks))
    for number, scene in enumerate(drive.scenes):
        frames = [_frame(i, drive.ticks[i]) for i in sorted(shown) if drive.ticks[i].scene == number]
        if frames:
            yield f'<h3>{escape(scene.title)}</h3><div class="strip">{"".join(frames)}</div>'


def _strip_ticks(ticks: Sequence[Tick]) -> Iterator[int]:
    last: Tick | None = None
    for index, tick in enumerate(ticks):
        if last is None or tick.rationale != last.rationale or tick.t0_s - last.t0_s >= STRIP_PERIOD_S:
            yield index
            last = tick


def _frame(index: int, tick: Tick) -> str:
    speed_mps = tick.plan.speed_mps[0] if len(tick.plan.speed_mps) else 0.0
    return (
        f'<div class="frame" data-tick="{index}"><img alt="camera at {tick.t0_s:.1f} s">'
        f'<div class="bar {_decision(tick)}"></div><p>{escape(tick.rationale) or "(no rationale)"}</p>'
        f"<small>{tick.t0_s:.1f} s, {speed_mps:.1f} m/s</small></div>"
    )


def _decision(tick: Tick) -> str:
    return tick.decision.value if tick.decision else "unknown"


def _data(drive: _Drive) -> dict[str, Any]:
    """What the page's script draws; shapes and pictures once each, referred to by number."""
    pictures: list[str] = []
    numbers: dict[int, int] = {}
    shapes: list[dict[str, Any]] = []
    ticks = []
    for tick in drive.ticks:
        seen = {}
        for camera, picture in tick.pictures.items():
            seen[camera] = len(pictures)
            pictures.append(embedded_picture(picture.encoded, tick.plan, drive.eye(camera)))
        for shape in tick.shapes:
            if id(shape) not in numbers:
                numbers[id(shape)] = len(shapes)
                shapes.append(_shape(shape))
        ticks.append({**_tick(tick), "pictures": seen, "shapes": [numbers[id(shape)] for shape in tick.shapes]})
    return {
        "cameras": drive.cameras,
        "pictures": pictures,
        "shapes": shapes,
        "scenes": [{"title": scene.title, "path": _path(drive.recording, scene)} for scene in drive.scenes],
        "ticks": ticks,
        "opening": len(ticks) // 3,
    }


def _shape(shape: Shape) -> dict[str, Any]:
    return {"k": shape.kind, "n": shape.name, "c": shape.color, "p": _rounded(shape.points_m)}


def _tick(tick: Tick) -> dict[str, Any]:
    ego = tick.plan.ego_pose
    return {
        "t": round(tick.t0_s, 2),
        "scene": tick.scene,
        "x": round(ego.x_m, 2),
        "y": round(ego.y_m, 2),
        "yaw": round(ego.yaw_rad, 4),
        "speed": round(float(tick.plan.speed_mps[0]), 2) if len(tick.plan.speed_mps) else 0.0,
        "plan": _rounded(tick.plan.position_m[:, :2]),
        "words": tick.rationale,
        "decision": _decision(tick),
        "reference": tick.reference_rationale,
        "ms": round(tick.costs.stage_ms["total"], 1) if tick.costs else None,
    }


def _path(recording: Recording, scene: DrivenScene) -> list[list[float]]:
    """Time, x, y, yaw along the scene, thinned out."""
    path: list[list[float]] = []
    for sample in scene.odometry:
        time_s = seconds_into(recording, sample.stamp_ns)
        if not path or time_s - path[-1][0] >= PATH_PERIOD_S - 1e-6:
            pose = sample.pose
            path.append([round(time_s, 2), round(pose.x_m, 2), round(pose.y_m, 2), round(pose.yaw_rad, 4)])
    return path


def _rounded(points_m: Floats) -> list[list[float]]:
    return [[round(float(x), 2), round(float(y), 2)] for x, y in points_m]
