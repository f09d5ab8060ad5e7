"""Vehicles: boxes with cabins, wheels, windows and lamps."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import Canvas, Color
from flatrope_planner.simulation.view import VehicleKind, VehicleView

GLASS = (70, 60, 52)
TYRE = (28, 28, 30)
LAMP_OFF = (28, 28, 120)
LAMP_ON = (60, 50, 255)
HEADLIGHT = (225, 235, 240)
ORANGE = (20, 150, 255)
SHADES = {"front": 0.92, "back": 0.86, "left": 0.74, "right": 0.8, "top": 1.06}


@dataclass(frozen=True)
class _Body:
    """An upright box: extent along the vehicle from `back` to `front` (m from its middle), half width, z from to."""

    back: float
    front: float
    half_width: float
    low: float
    high: float


class _Frame:
    """The vehicle's axes in the world."""

    def __init__(self, vehicle: VehicleView) -> None:
        self.center = np.array([*vehicle.center, 0.0])
        cos, sin = np.cos(vehicle.yaw_rad), np.sin(vehicle.yaw_rad)
        # Rows: forward, left, up.
        self.axes = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])

    def world(self, points: Floats) -> Floats:
        """(N, 3) forward, left, up -> world."""
        return np.asarray(self.center + points @ self.axes)


def paint_vehicle(canvas: Canvas, vehicle: VehicleView, depth_m: float) -> None:
    """One vehicle, its shadow first."""
    frame = _Frame(vehicle)
    half_l, half_w, high = vehicle.length_m / 2.0, vehicle.width_m / 2.0, vehicle.height_m
    shadow = canvas.tint((50, 48, 46), depth_m)
    x, y = half_l + 0.15, half_w + 0.2
    canvas.fill(frame.world(np.array([[x, y, 0.0], [-x, y, 0.0], [-x, -y - 0.3, 0.0], [x, -y - 0.3, 0.0]])), shadow)
    _wheels(canvas, frame, vehicle, depth_m)
    eye = (canvas.eye.position - frame.center) @ frame.axes.T
    for body, color in _bodies(vehicle):
        _paint_box(canvas, frame, (body, eye), color, depth_m)
    if vehicle.kind is VehicleKind.CAR:
        cabin = _Body(-0.42 * vehicle.length_m, 0.16 * vehicle.length_m, half_w * 0.82, 0.58 * high, high)
        _paint_box(canvas, frame, (cabin, eye), vehicle.color, depth_m)
        _paint_windows(canvas, frame, (cabin, eye), depth_m)
    else:
        front = half_l if vehicle.kind is VehicleKind.VAN else half_l * 0.98
        cab = _Body(half_l * 0.45, front, half_w, 0.5 * high, 0.92 * high)
        _paint_windows(canvas, frame, (cab, eye), depth_m, back=False)
    _paint_lamps(canvas, frame, vehicle, eye, depth_m)


def _bodies(vehicle: VehicleView) -> list[tuple[_Body, Color]]:
    half_l, half_w, high = vehicle.length_m / 2.0, vehicle.width_m / 2.0, vehicle.height_m
    if vehicle.kind is VehicleKind.TRUCK:
        cargo = (200, 205, 208)
        cab = _Body(half_l * 0.5, half_l, half_w * 0.96, 0.35, high * 0.85)
        box = _Body(-half_l, half_l * 0.45, half_w, 0.55, high)
        return [(cab, vehicle.color), (box, cargo)]
    top = 0.62 * high if vehicle.kind is VehicleKind.CAR else high
    return [(_Body(-half_l, half_l, half_w, 0.28, top), vehicle.color)]


def _faces(body: _Body, eye: Floats) -> list[tuple[str, Floats]]:
    """The faces of a box turned toward the eye (both in the vehicle's axes), corners in order."""
    b, f, w, lo, hi = body.back, body.front, body.half_width, body.low, body.high
    faces = []
    if eye[0] > f:
        faces.append(("front", np.array([[f, w, lo], [f, -w, lo], [f, -w, hi], [f, w, hi]])))
    if eye[0] < b:
        faces.append(("back", np.array([[b, w, lo], [b, -w, lo], [b, -w, hi], [b, w, hi]])))
    if eye[1] > w:
        faces.append(("left", np.array([[b, w, lo], [f, w, lo], [f, w, hi], [b, w, hi]])))
    if eye[1] < -w:
        faces.append(("right", np.array([[b, -w, lo], [f, -w, lo], [f, -w, hi], [b, -w, hi]])))
    if eye[2] > hi:
        faces.append(("top", np.array([[b, w, hi], [f, w, hi], [f, -w, hi], [b, -w, hi]])))
    return faces


def _paint_box(canvas: Canvas, frame: _Frame, seen: tuple[_Body, Floats], color: Color, depth_m: float) -> None:
    for side, corners in _faces(*seen):
        canvas.fill(frame.world(corners), canvas.tint(color, depth_m, SHADES[side]))


def _paint_windows(
    canvas: Canvas, frame: _Frame, seen: tuple[_Body, Floats], depth_m: float, *, back: bool = True
) -> None:
    """Glass on the visible sides of a cabin, a frame of bodywork about it."""
    for side, corners in _faces(*seen):
        if side == "top" or (side == "back" and not back):
            continue
        middle = corners.mean(axis=0)
        inner = middle + (corners - middle) * np.array([0.88, 0.86, 0.7])
        canvas.fill(frame.world(inner), canvas.tint(GLASS, depth_m))


def _wheels(canvas: Canvas, frame: _Frame, vehicle: VehicleView, depth_m: float) -> None:
    half_l, half_w = vehicle.length_m / 2.0, vehicle.width_m / 2.0
    tyre = canvas.tint(TYRE, depth_m)
    for x in (-half_l * 0.62, half_l * 0.62):
        for y in (-half_w, half_w):
            wheel = [[x - 0.33, y, 0.0], [x + 0.33, y, 0.0], [x + 0.33, y, 0.66], [x - 0.33, y, 0.66]]
            canvas.fill(frame.world(np.array(wheel)), tyre)
            rear = [[x, y, 0.0], [x, y * 0.78, 0.0], [x, y * 0.78, 0.6], [x, y, 0.6]]
            canvas.fill(frame.world(np.array(rear)), tyre)


def _paint_lamps(canvas: Canvas, frame: _Frame, vehicle: VehicleView, eye: Floats, depth_m: float) -> None:
    half_l, half_w = vehicle.length_m / 2.0, vehicle.width_m / 2.0
    low, high = 0.62, 0.92
    if eye[0] < -half_l:
        color = LAMP_ON if vehicle.braking else canvas.tint(LAMP_OFF, depth_m)
        for side in (-1.0, 1.0):
            _lamp(canvas, frame, (-half_l, side * (half_w - 0.26), (low + high) / 2.0), (0.44, 0.34), color)
        if vehicle.braking:
            third = vehicle.height_m - 0.12
            _lamp(canvas, frame, (-half_l * 0.9, 0.0, third), (0.6, 0.12), LAMP_ON)
            for side in (-1.0, 1.0):
                _glow(canvas, frame, (-half_l, side * (half_w - 0.26), 0.77), 0.62, (90, 80, 255))
        _indicators(canvas, frame, vehicle, -half_l)
    elif eye[0] > half_l:
        for side in (-1.0, 1.0):
            _lamp(canvas, frame, (half_l, side * (half_w - 0.3), 0.7), (0.4, 0.22), canvas.tint(HEADLIGHT, depth_m))
        _indicators(canvas, frame, vehicle, half_l)


def _indicators(canvas: Canvas, frame: _Frame, vehicle: VehicleView, x: float) -> None:
    for side in (-1, 1):
        if vehicle.hazard or vehicle.indicator == side:
            y = side * (vehicle.width_m / 2.0 - 0.12)
            _lamp(canvas, frame, (x, y, 1.02), (0.26, 0.24), ORANGE)
            _glow(canvas, frame, (x, y, 1.02), 0.45, (10, 120, 230))


def _lamp(
    canvas: Canvas, frame: _Frame, at: tuple[float, float, float], size: tuple[float, float], color: Color
) -> None:
    """An upright rectangle across the vehicle: centre, width and height (m)."""
    x, y, z = at
    w, h = size[0] / 2.0, size[1] / 2.0
    corners = np.array([[x, y + w, z - h], [x, y - w, z - h], [x, y - w, z + h], [x, y + w, z + h]])
    canvas.fill(frame.world(corners), color)


def _glow(
    canvas: Canvas, frame: _Frame, at: tuple[float, float, float], radius_m: float, color: tuple[float, float, float]
) -> None:
    seen = canvas.eye.to_camera(frame.world(np.array([at])))
    if seen[0, 2] > 1.0:
        u, v = canvas.eye.to_pixels(seen)[0]
        canvas.glow((float(u), float(v)), radius_m * canvas.eye.scale_at(float(seen[0, 2])), color)
