"""Upright things beside and on the road: people, signals, signs, cones, trees, buildings."""

import math

import cv2
import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import Canvas, Color
from flatrope_planner.simulation.view import (
    BuildingView,
    ConeView,
    LightColor,
    PedestrianView,
    StopSignView,
    TrafficLightView,
    TreeView,
)

POLE = (105, 105, 108)
HOUSING = (32, 32, 32)
HEAD_WIDTH_M, HEAD_HEIGHT_M = 0.7, 1.8
LENS_M = 0.5
SKIN = (140, 170, 215)
TROUSERS = (70, 60, 55)
# Nothing nearer than this is drawn: it would fill the picture.
NEAREST_M = 0.8
LETTERING_PX = 22.0


class _Board:
    """A flat picture that faces the camera, standing at a ground point: metres right of and above it -> pixels."""

    def __init__(self, canvas: Canvas, center: tuple[float, float]) -> None:
        seen = canvas.eye.to_camera(np.array([[*center, 0.0]]))
        self.depth_m = float(seen[0, 2])
        self.visible = self.depth_m > NEAREST_M
        if self.visible:
            self.scale = canvas.eye.scale_at(self.depth_m)
            self._u, self._v = (float(x) for x in canvas.eye.to_pixels(seen)[0])

    def at(self, right_m: float, up_m: float) -> tuple[float, float]:
        """Pixel of a point of the board."""
        return self._u + right_m * self.scale, self._v - up_m * self.scale

    def corners(self, outline: list[tuple[float, float]]) -> Floats:
        """Pixels (N, 2) of an outline."""
        return np.array([self.at(*point) for point in outline])


def _faces_us(canvas: Canvas, center: tuple[float, float], yaw_rad: float) -> bool:
    """Whether a sign that faces against `yaw_rad` shows us its front."""
    toward = np.array(center) - canvas.eye.position[:2]
    return bool(math.cos(yaw_rad) * toward[0] + math.sin(yaw_rad) * toward[1] > 0.0)


def paint_pedestrian(canvas: Canvas, person: PedestrianView, depth_m: float) -> None:
    """Head, torso, arms and striding legs."""
    board = _Board(canvas, person.center)
    if not board.visible:
        return
    high, unit = person.height_m, board.scale
    shadow = canvas.tint((55, 55, 52), depth_m)
    canvas.fill_pixels(board.corners([(-0.35, 0.0), (0.0, 0.05), (0.4, 0.0), (0.0, -0.05)]), shadow)
    # The stride is seen fully from the side, hardly from behind.
    forward = np.array([math.cos(person.yaw_rad), math.sin(person.yaw_rad)])
    toward = np.array(person.center) - canvas.eye.position[:2]
    toward /= max(float(np.hypot(*toward)), 1e-6)
    across = float(forward[0] * toward[1] - forward[1] * toward[0])
    stride = 0.32 * math.sin(2.0 * math.pi * person.phase) * across
    hip, shoulder = 0.5 * high, 0.82 * high
    trousers, coat = canvas.tint(TROUSERS, depth_m), canvas.tint(person.color, depth_m)
    for side in (-1.0, 1.0):
        canvas.stroke(board.at(0.06 * side, hip), board.at(0.09 * side + side * stride, 0.02), 0.19 * unit, trousers)
    for side in (-1.0, 1.0):
        hand = board.at(0.26 * side - side * stride * 0.8, 0.47 * high)
        canvas.stroke(
            board.at(0.22 * side, shoulder - 0.04), hand, 0.12 * unit, canvas.tint(person.color, depth_m, 0.8)
        )
    torso = [(-0.25, shoulder), (0.25, shoulder), (0.2, hip - 0.05), (-0.2, hip - 0.05)]
    canvas.fill_pixels(board.corners(torso), coat)
    canvas.disc(board.at(0.0, high - 0.13), 0.14 * unit, canvas.tint(SKIN, depth_m))


def paint_light(canvas: Canvas, light: TrafficLightView, depth_m: float) -> None:
    """Post, head and lenses; the lit one glows. From behind only the housing shows."""
    board = _Board(canvas, light.center)
    if not board.visible:
        return
    low, high = light.height_m - HEAD_HEIGHT_M / 2.0, light.height_m + HEAD_HEIGHT_M / 2.0
    canvas.stroke(board.at(0.0, 0.0), board.at(0.0, low), max(1.0, 0.16 * board.scale), canvas.tint(POLE, depth_m))
    half = HEAD_WIDTH_M / 2.0
    head = board.corners([(-half, low), (half, low), (half, high), (-half, high)])
    canvas.fill_pixels(head, canvas.tint(HOUSING, depth_m))
    if not _faces_us(canvas, light.center, light.yaw_rad):
        return
    for color, up, lit, dark in (
        (LightColor.RED, 0.58, (40, 30, 255), (30, 28, 70)),
        (None, 0.0, (0, 0, 0), (25, 60, 75)),
        (LightColor.GREEN, -0.58, (90, 255, 60), (35, 65, 35)),
    ):
        place = board.at(0.0, light.height_m + up)
        shines = color is light.color
        canvas.disc(place, LENS_M / 2.0 * board.scale, lit if shines else canvas.tint(dark, depth_m))
        if shines:
            canvas.glow(place, LENS_M * 1.15 * board.scale, (lit[0] * 0.9, lit[1] * 0.9, lit[2] * 0.9))


def paint_stop_sign(canvas: Canvas, sign: StopSignView, depth_m: float) -> None:
    """Red octagon with a white rim on a post; grey from behind."""
    board = _Board(canvas, sign.center)
    if not board.visible:
        return
    canvas.stroke(
        board.at(0.0, 0.0), board.at(0.0, sign.height_m), max(1.0, 0.1 * board.scale), canvas.tint(POLE, depth_m)
    )
    front = _faces_us(canvas, sign.center, sign.yaw_rad)
    radius = sign.width_m / 2.0 / math.cos(math.pi / 8.0)
    rim: Color = (240, 240, 240) if front else (150, 150, 152)
    canvas.fill_pixels(board.corners(_octagon(radius, sign.height_m)), canvas.tint(rim, depth_m))
    if not front:
        return
    canvas.fill_pixels(board.corners(_octagon(radius * 0.88, sign.height_m)), canvas.tint((40, 30, 205), depth_m))
    size_px = sign.width_m * board.scale
    if size_px > LETTERING_PX:
        scale = size_px / 110.0
        (width, height), _ = cv2.getTextSize("STOP", cv2.FONT_HERSHEY_DUPLEX, scale, 1)
        u, v = board.at(0.0, sign.height_m)
        corner = (round(u - width / 2.0), round(v + height / 2.0))
        white = canvas.tint((245, 245, 245), depth_m)
        cv2.putText(
            canvas.image, "STOP", corner, cv2.FONT_HERSHEY_DUPLEX, scale, white, max(1, round(scale * 2)), cv2.LINE_AA
        )


def _octagon(radius: float, up: float) -> list[tuple[float, float]]:
    angles = [math.pi / 8.0 + i * math.pi / 4.0 for i in range(8)]
    return [(radius * math.cos(a), up + radius * math.sin(a)) for a in angles]


def paint_cone(canvas: Canvas, cone: ConeView, depth_m: float) -> None:
    """Orange, a white band about it, a dark foot."""
    board = _Board(canvas, cone.center)
    if not board.visible:
        return
    high = cone.height_m

    def slice_of(low: float, top: float) -> Floats:
        a, b = 0.24 * (1.0 - low) + 0.04, 0.24 * (1.0 - top) + 0.04
        return board.corners([(-a, low * high), (a, low * high), (b, top * high), (-b, top * high)])

    canvas.fill_pixels(
        board.corners([(-0.32, 0.0), (0.32, 0.0), (0.32, 0.07), (-0.32, 0.07)]), canvas.tint((30, 60, 130), depth_m)
    )
    canvas.fill_pixels(slice_of(0.05, 1.0), canvas.tint((20, 100, 255), depth_m))
    canvas.fill_pixels(slice_of(0.42, 0.68), canvas.tint((240, 240, 240), depth_m))


def paint_tree(canvas: Canvas, tree: TreeView, depth_m: float) -> None:
    """A trunk and a crown of three discs."""
    board = _Board(canvas, tree.center)
    if not board.visible:
        return
    high, radius = tree.height_m, 0.24 * tree.height_m
    canvas.stroke(
        board.at(0.0, 0.0), board.at(0.0, 0.6 * high), 0.08 * high * board.scale, canvas.tint((50, 70, 90), depth_m)
    )
    for right, up, shade in ((-0.55, 0.6, 0.8), (0.5, 0.64, 0.92), (0.0, 0.78, 1.05)):
        place = board.at(right * radius, up * high)
        canvas.disc(place, radius * board.scale, canvas.tint(tree.color, depth_m, shade))


def paint_building(canvas: Canvas, building: BuildingView, depth_m: float) -> None:
    """A box with rows of windows."""
    cos, sin = math.cos(building.yaw_rad), math.sin(building.yaw_rad)
    axes = np.array([[cos, sin], [-sin, cos]])
    half = np.array([building.length_m, building.width_m]) / 2.0
    eye = axes @ (canvas.eye.position[:2] - np.array(building.center))
    for axis in (0, 1):
        if abs(eye[axis]) <= half[axis]:
            continue
        side = math.copysign(1.0, eye[axis])
        ends = np.zeros((2, 2))
        ends[:, axis] = side * half[axis]
        ends[:, 1 - axis] = [-half[1 - axis], half[1 - axis]]
        wall = np.array(building.center) + ends @ axes
        shade = 0.95 if axis == 0 else 0.8
        _paint_wall(canvas, wall, building, (depth_m, shade))


def _paint_wall(canvas: Canvas, wall: Floats, building: BuildingView, light: tuple[float, float]) -> None:
    def panel(low: float, high: float, start: float, end: float) -> Floats:
        a, b = wall[0] + (wall[1] - wall[0]) * start, wall[0] + (wall[1] - wall[0]) * end
        return np.array([[*a, low], [*b, low], [*b, high], [*a, high]])

    canvas.fill(panel(0.0, building.height_m, 0.0, 1.0), canvas.tint(building.color, *light))
    glass = canvas.tint((95, 85, 78), *light)
    for storey in range(int(building.height_m / 3.2)):
        canvas.fill(panel(storey * 3.2 + 1.0, storey * 3.2 + 2.4, 0.06, 0.94), glass)
