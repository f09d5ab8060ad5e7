"""Pedestrians: figures that face the camera's plane, their stride and turn seen as from where it stands."""

import math

import cv2
import numpy as np

from flatrope_planner.simulation.canvas import Canvas, Color, Point, rgb
from flatrope_planner.simulation.projection import SHIFT
from flatrope_planner.simulation.view import PedestrianView

SKIN: Color = (222, 178, 148)
HAIR: Color = (58, 44, 36)
TROUSERS: Color = (52, 58, 76)
SHOES: Color = (34, 32, 32)
# Nothing nearer than this is drawn: it would fill the picture.
NEAREST_M = 0.8
STRIDE_M, SWING_M = 0.34, 0.26


class _Figure:
    """A board standing at the person's feet: metres to the right and up -> pixels."""

    def __init__(self, canvas: Canvas, feet: Point, unit: float, depth_m: float) -> None:
        self._canvas, self._feet, self._unit, self._depth_m = canvas, feet, unit, depth_m

    def at(self, right_m: float, up_m: float) -> Point:
        return self._feet[0] + right_m * self._unit, self._feet[1] - up_m * self._unit

    def limb(self, joints: list[Point], width_m: float, color: Color, shade: float = 1.0) -> None:
        """A bent bar with round ends through points in metres."""
        unit = 1 << SHIFT
        points = (np.array([self.at(*joint) for joint in joints]) - 0.5) * unit
        paint = self._canvas.tint(color, self._depth_m, shade)
        width = max(1, round(width_m * self._unit))
        cv2.polylines(self._canvas.image, [np.rint(points).astype(np.int32)], False, paint, width, cv2.LINE_AA, SHIFT)

    def outline(self, corners: list[Point], color: Color, shade: float = 1.0) -> None:
        self._canvas.fill_pixels([self.at(*c) for c in corners], self._canvas.tint(color, self._depth_m, shade))

    def disc(self, center: Point, radius_m: float, color: Color, shade: float = 1.0) -> None:
        paint = self._canvas.tint(color, self._depth_m, shade)
        self._canvas.disc(self.at(*center), radius_m * self._unit, paint)


def paint_pedestrian(canvas: Canvas, person: PedestrianView, depth_m: float) -> None:
    """Head, torso, swinging arms and striding legs."""
    feet = canvas.eye.to_camera(np.array([*person.center, 0.0]))
    if feet[2] < NEAREST_M:
        return
    u, v = canvas.eye.to_pixels(feet).tolist()
    figure = _Figure(canvas, (u, v), canvas.eye.scale_at(float(feet[2])), depth_m)
    # How far the person walks to the right of the picture, and how far away from us (-1 to 1).
    heading = np.array([math.cos(person.yaw_rad), math.sin(person.yaw_rad)])
    sideways = float(heading @ canvas.eye.to_axes[:2, 0])
    away = float(heading @ canvas.eye.to_axes[:2, 2])
    swing = math.sin(2.0 * math.pi * person.phase)
    _paint_body(figure, person, (sideways, away), swing)


def _paint_body(figure: _Figure, person: PedestrianView, turn: tuple[float, float], swing: float) -> None:
    sideways, away = turn
    high, coat = person.height_m, rgb(person.color)
    hip, knee, shoulder = 0.5 * high, 0.27 * high, 0.8 * high
    # Seen from the side both shoulders and both hips lie behind each other.
    breadth = 0.35 + 0.65 * abs(away)
    # The far leg and arm first; legs and arms swing against each other.
    for side, shade in ((-1.0, 0.78), (1.0, 1.0)):
        step = side * swing * STRIDE_M * sideways
        lift = 0.07 * max(0.0, -side * swing) * (1.0 + abs(away))
        x = 0.09 * side * breadth
        ankle = (x + step, 0.07 + lift)
        bend = (x + 0.5 * step + 0.05 * sideways * max(0.0, -side * swing), knee + 0.5 * lift)
        figure.limb([(x * 0.8, hip), bend, ankle], 0.16, TROUSERS, shade)
        figure.limb([(ankle[0] - 0.03 * sideways, 0.04 + lift), (ankle[0] + 0.12 * sideways, 0.04 + lift)], 0.09, SHOES)
        if side < 0.0:
            _paint_arm(figure, person, (sideways, breadth), (side, swing))
    wide, waist = 0.13 + 0.12 * breadth, 0.11 + 0.07 * breadth
    torso = [(-wide, shoulder), (wide, shoulder), (waist, hip - 0.06), (-waist, hip - 0.06)]
    figure.outline(torso, coat)
    figure.limb([(-wide + 0.06, shoulder), (wide - 0.06, shoulder)], 0.12, coat)
    _paint_arm(figure, person, (sideways, breadth), (1.0, swing))
    _paint_head(figure, high, turn)


def _paint_arm(figure: _Figure, person: PedestrianView, turn: tuple[float, float], move: tuple[float, float]) -> None:
    sideways, breadth = turn
    side, swing = move
    high = person.height_m
    x = side * (0.06 + 0.2 * breadth)
    reach = -side * swing * SWING_M * sideways
    elbow, hand = (x + 0.5 * reach - 0.03 * sideways, 0.63 * high), (x + reach + 0.02 * side * breadth, 0.49 * high)
    figure.limb([(x * 0.9, 0.79 * high), elbow, hand], 0.11, rgb(person.color), 0.82 if side > 0.0 else 0.66)
    figure.disc(hand, 0.055, SKIN)


def _paint_head(figure: _Figure, high: float, turn: tuple[float, float]) -> None:
    sideways, away = turn
    top = high - 0.14
    figure.limb([(0.0, 0.8 * high), (0.0, top)], 0.1, SKIN, 0.85)
    figure.disc((0.0, top), 0.135, SKIN)
    # Hair covers the crown, and the side of the head turned from where the person looks.
    if away > 0.4:
        figure.disc((0.0, top + 0.01), 0.135, HAIR)
        return
    figure.disc((-0.05 * sideways, top + 0.06), 0.115, HAIR)
    figure.disc((0.05 * sideways, top - 0.035), 0.105, SKIN)
