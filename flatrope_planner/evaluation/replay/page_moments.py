"""A bad moment on the page: camera picture, view from above, words, errors."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.compared_paths import ComparedPath, compared_paths
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S

WIDTH_PX, HEIGHT_PX = 150, 170
NET_M = 5.0
MARGIN_M = 2.0


def moment_card(moment: Mapping[str, Any], bag: str) -> str:
    """One moment; the bag's name where there are several."""
    place = f"{escape(bag)}, " if bag else ""
    errors, seconds = moment["errors"][moment["horizon"]], f"{HORIZONS_S[moment['horizon']]:g} s"
    facts = (
        f"{place}{moment['t0_s']:.1f} s: ADE {errors['ade_m']:.2f} m, FDE {errors['fde_m']:.2f} m over {seconds}; "
        f"then {_side(errors)}"
    )
    note = "" if moment["calibrated"] else ' title="no calibration of this camera in the bag"'
    return (
        f'<div class="moment"><div class="views"><img{note} alt="camera at {moment["t0_s"]:.1f} s" '
        f'src="data:image/jpeg;base64,{moment["jpeg"]}">{from_above(moment)}</div>'
        f"<p>{escape(moment['rationale']) or '(no rationale)'}</p><small>{facts}</small></div>"
    )


def from_above(moment: Mapping[str, Any]) -> str:
    """Planned and driven path; ahead is up, left is left; dots show where the moment's horizon ends."""
    planned, driven = compared_paths(moment, moment["horizon"])
    points = [*planned.points_m.tolist(), *driven.points_m.tolist()]
    low_x, high_x = min(x for x, _ in points) - MARGIN_M, max(x for x, _ in points) + MARGIN_M
    half_y = max(abs(y) for _, y in points) + MARGIN_M
    scale = min(HEIGHT_PX / (high_x - low_x), WIDTH_PX / (2.0 * half_y))

    def px(x_m: float, y_m: float) -> tuple[float, float]:
        return WIDTH_PX / 2 - y_m * scale, HEIGHT_PX - (x_m - low_x) * scale

    def line(style: str, points_m: Floats | Sequence[tuple[float, float]]) -> str:
        return f'<path class="{style}" d="M{"L".join("{:.1f},{:.1f}".format(*px(*point)) for point in points_m)}"/>'

    def paths(style: str, path: ComparedPath) -> str:
        x_px, y_px = px(*path.measured_m[-1])
        dot = f'<circle class="{style}" cx="{x_px:.1f}" cy="{y_px:.1f}" r="4.5"/>'
        return line(f"{style} beyond", path.beyond_m) + line(style, path.measured_m) + dot

    lines = [line("net", [(x, -99.0), (x, 99.0)]) for x in _net(low_x, high_x)]
    half_m = WIDTH_PX / 2 / scale
    lines += [line("net", [(low_x - 99.0, y), (high_x + 99.0, y)]) for y in _net(-half_m, half_m)]
    drawn = "".join([*lines, paths("driven", driven), paths("planned", planned)])
    return f'<svg viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}" role="img" aria-label="from above">{drawn}</svg>'


def _net(low_m: float, high_m: float) -> list[float]:
    return [i * NET_M for i in range(int(low_m // NET_M), int(high_m // NET_M) + 1)]


def _side(errors: Mapping[str, Any]) -> str:
    along, across = errors["final_longitudinal_m"], errors["final_lateral_m"]
    return (
        f"{abs(along):.2f} m {'ahead' if along > 0.0 else 'behind'} and "
        f"{abs(across):.2f} m to the {'left' if across > 0.0 else 'right'}"
    )
