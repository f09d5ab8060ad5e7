"""Traffic lights, stop signs and cones."""

import math
from functools import lru_cache

import cv2
import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import Canvas, Color
from flatrope_planner.simulation.mesh import Mesh, MeshBuilder, Palette, paint_mesh
from flatrope_planner.simulation.projection import NEAR_M
from flatrope_planner.simulation.view import ConeView, LightColor, StopSignView, TrafficLightView

HEAD_WIDTH_M, HEAD_HEIGHT_M, HEAD_DEPTH_M = 0.7, 1.8, 0.3
LENS_M, LENS_STEP_M = 0.5, 0.58
RIM_M = 0.06
# Radius of the halo; a bright lamp blooms on a sensor however far away it is.
GLOW_M, GLOW_LEAST_PX = 0.62, 14.0
ROUND_CORNERS = 20
# A sign this wide (px) shows its lettering.
LETTERING_PX = 22.0

POST, HOUSING, BACK_RIM, RED_LENS, AMBER_LENS, GREEN_LENS = range(6)
LIGHT_COLORS: tuple[Color, ...] = (
    (96, 98, 100),
    (30, 31, 33),
    (214, 214, 208),
    (84, 24, 24),
    (84, 64, 22),
    (22, 70, 44),
)
LIT: dict[LightColor, tuple[int, Color, Color]] = {
    LightColor.RED: (RED_LENS, (255, 30, 24), (255, 44, 32)),
    LightColor.GREEN: (GREEN_LENS, (40, 255, 120), (60, 255, 130)),
}
SIGN_POST, SIGN_RIM, SIGN_FACE, SIGN_BACK = range(4)
SIGN_PALETTE = Palette(
    np.array([(120, 122, 124), (255, 255, 255), (250, 34, 42), (150, 152, 154)], dtype=float), np.zeros(4, dtype=bool)
)
LETTERING: Color = (246, 246, 246)
ORANGE: Color = (255, 104, 16)
BAND: Color = (244, 244, 244)
CONE_FOOT: Color = (150, 62, 20)


def paint_light(canvas: Canvas, light: TrafficLightView, depth_m: float) -> None:
    """Post, head and lenses, the lit one in a halo; from behind a blank housing."""
    colors = np.array(LIGHT_COLORS, dtype=float)
    shining = np.zeros(len(colors), dtype=bool)
    lens, color, halo = LIT[light.color]
    colors[lens], shining[lens] = color, True
    pose = (*light.center, light.yaw_rad)
    paint_mesh(canvas, _light_mesh(light.height_m), pose, Palette(colors, shining), depth_m)
    up = light.height_m + {RED_LENS: LENS_STEP_M, GREEN_LENS: -LENS_STEP_M}[lens]
    seen = canvas.eye.to_camera(np.array([*light.center, up]))
    if seen[2] > NEAR_M and _shows_front(canvas, light.center, light.yaw_rad):
        u, v = canvas.eye.to_pixels(seen).tolist()
        scale = canvas.eye.scale_at(float(seen[2]))
        canvas.glow((u, v), max(GLOW_M * scale, GLOW_LEAST_PX), halo)
        # The halo veils the lens too: paint it once more.
        canvas.disc((u, v), LENS_M / 2.0 * scale, color)


def _shows_front(canvas: Canvas, center: tuple[float, float], yaw_rad: float) -> bool:
    """Whether a sign that faces against `yaw_rad` shows us its front."""
    dx, dy = center[0] - canvas.eye.position[0], center[1] - canvas.eye.position[1]
    return bool(math.cos(yaw_rad) * dx + math.sin(yaw_rad) * dy > HEAD_DEPTH_M / 2.0)


@lru_cache(maxsize=16)
def _light_mesh(height_m: float) -> Mesh:
    """Facing backward: its lenses look along -x."""
    mesh = MeshBuilder()
    low, high = height_m - HEAD_HEIGHT_M / 2.0, height_m + HEAD_HEIGHT_M / 2.0
    _add_box(mesh, POST, (0.09, 0.09), (0.0, low))
    board = HEAD_WIDTH_M / 2.0 + RIM_M
    mesh.add(HOUSING, _rectangle(0.1, board, (low - RIM_M, high + RIM_M))[::-1])
    mesh.add(BACK_RIM, _rectangle(0.0, board, (low - RIM_M, high + RIM_M)))
    _add_box(mesh, HOUSING, (HEAD_DEPTH_M / 2.0, HEAD_WIDTH_M / 2.0), (low, high))
    front = -HEAD_DEPTH_M / 2.0 - 0.01
    for lens, step in ((RED_LENS, 1.0), (AMBER_LENS, 0.0), (GREEN_LENS, -1.0)):
        mesh.add(lens, _polygon(front, height_m + step * LENS_STEP_M, LENS_M / 2.0, ROUND_CORNERS))
    return mesh.build()


def _rectangle(x: float, half_width: float, up: tuple[float, float]) -> Floats:
    """Across the road, seen from behind (-x)."""
    return np.array([[x, half_width, up[0]], [x, -half_width, up[0]], [x, -half_width, up[1]], [x, half_width, up[1]]])


def _polygon(x: float, up: float, radius: float, corners: int) -> Floats:
    """A regular polygon across the road with a flat foot, seen from behind (-x)."""
    angle = (np.arange(corners) + 0.5) * (2.0 * math.pi / corners)
    return np.stack([np.full(corners, x), -radius * np.sin(angle), up - radius * np.cos(angle)], axis=1)


def _add_box(mesh: MeshBuilder, material: int, half: tuple[float, float], up: tuple[float, float]) -> None:
    """Four walls."""
    corners = np.array([[1, -1], [1, 1], [-1, 1], [-1, -1]]) * np.array(half)
    for i in range(4):
        (ax, ay), (bx, by) = corners[i], corners[(i + 1) % 4]
        mesh.add(material, np.array([[ax, ay, up[0]], [bx, by, up[0]], [bx, by, up[1]], [ax, ay, up[1]]]))


def paint_stop_sign(canvas: Canvas, sign: StopSignView, depth_m: float) -> None:
    """Red octagon with a white rim on a post; grey from behind."""
    pose = (*sign.center, sign.yaw_rad)
    paint_mesh(canvas, _sign_mesh(sign.height_m, sign.width_m), pose, SIGN_PALETTE, depth_m)
    seen = canvas.eye.to_camera(np.array([*sign.center, sign.height_m]))
    if seen[2] < NEAR_M or not _shows_front(canvas, sign.center, sign.yaw_rad):
        return
    size_px = sign.width_m * canvas.eye.scale_at(float(seen[2]))
    if size_px > LETTERING_PX:
        u, v = canvas.eye.to_pixels(seen).tolist()
        turned = abs(float(canvas.eye.to_axes[:2, 2] @ np.array([math.cos(sign.yaw_rad), math.sin(sign.yaw_rad)])))
        _letter(canvas, (u, v), turned * size_px / 110.0, canvas.tint(LETTERING, depth_m))


def _letter(canvas: Canvas, middle: tuple[float, float], scale: float, color: Color) -> None:
    font, stroke = cv2.FONT_HERSHEY_DUPLEX, max(1, round(scale * 2.0))
    (width, height), _ = cv2.getTextSize("STOP", font, scale, stroke)
    corner = (round(middle[0] - width / 2.0), round(middle[1] + height / 2.0))
    cv2.putText(canvas.image, "STOP", corner, font, scale, color, stroke, cv2.LINE_AA)


@lru_cache(maxsize=16)
def _sign_mesh(height_m: float, width_m: float) -> Mesh:
    mesh = MeshBuilder()
    radius = width_m / 2.0 / math.cos(math.pi / 8.0)
    mesh.add(SIGN_BACK, _polygon(0.0, height_m, radius, 8)[::-1])
    _add_box(mesh, SIGN_POST, (0.05, 0.05), (0.0, height_m))
    mesh.add(SIGN_RIM, _polygon(-0.06, height_m, radius, 8))
    mesh.add(SIGN_FACE, _polygon(-0.065, height_m, radius * 0.9, 8))
    return mesh.build()


# Slices of a cone: lower and upper edge as shares of its height, colour.
_SLICES: tuple[tuple[float, float, Color], ...] = ((0.05, 1.0, ORANGE), (0.42, 0.66, BAND))


def paint_cone(canvas: Canvas, cone: ConeView, depth_m: float) -> None:
    """Orange, a white band about it, a square foot."""
    foot = canvas.eye.to_camera(np.array([*cone.center, 0.0]))
    if foot[2] < NEAR_M:
        return
    u, v = canvas.eye.to_pixels(foot).tolist()
    unit = canvas.eye.scale_at(float(foot[2]))
    high = cone.height_m * unit
    canvas.bar((u, v + 0.03 * unit), (u, v - 0.06 * unit), (0.62 * unit, 0.56 * unit), canvas.tint(CONE_FOOT, depth_m))
    for low, top, color in _SLICES:
        a, b = (0.24 * (1.0 - share) + 0.04 for share in (low, top))
        start, end = v - low * high, v - top * high
        canvas.bar((u, start), (u, end), (2.0 * a * unit, 2.0 * b * unit), canvas.tint(color, depth_m))
        # The side away from the sun.
        dark = [(u + 0.25 * a * unit, start), (u + a * unit, start), (u + b * unit, end), (u + 0.25 * b * unit, end)]
        canvas.fill_pixels(dark, canvas.tint(color, depth_m, 0.82))
