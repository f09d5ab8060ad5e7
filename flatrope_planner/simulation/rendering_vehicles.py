"""Vehicles: shape, colours and the lamps that say what they are about to do."""

import math

import numpy as np

from flatrope_planner.simulation.canvas import Canvas, Color, rgb
from flatrope_planner.simulation.mesh import Palette, paint_mesh
from flatrope_planner.simulation.projection import NEAR_M
from flatrope_planner.simulation.vehicle_shapes import Material, lamp_places, vehicle_shape
from flatrope_planner.simulation.view import VehicleView

BASE_COLORS: dict[Material, Color] = {
    Material.GLASS: (50, 60, 72),
    Material.TRIM: (38, 38, 40),
    Material.TYRE: (22, 22, 24),
    Material.RIM: (150, 152, 156),
    Material.PLATE: (225, 225, 215),
    Material.HEADLAMP: (242, 240, 228),
    Material.TAIL_LAMP: (118, 20, 22),
    Material.THIRD_LAMP: (70, 18, 20),
    Material.LEFT_INDICATOR: (112, 64, 32),
    Material.RIGHT_INDICATOR: (112, 64, 32),
}
BRAKE_RED: Color = (255, 36, 28)
BRAKE_GLOW: Color = (255, 50, 36)
BRAKE_GLOW_M = 0.6
ORANGE: Color = (255, 160, 20)
ORANGE_GLOW: Color = (255, 150, 30)
ORANGE_GLOW_M = 0.55
CARGO: Color = (222, 224, 224)


def paint_vehicle(canvas: Canvas, vehicle: VehicleView, depth_m: float) -> None:
    """One vehicle; whichever part of it stands farther is painted first."""
    parts = vehicle_shape(vehicle.kind, vehicle.length_m, vehicle.width_m, vehicle.height_m)
    cos, sin = math.cos(vehicle.yaw_rad), math.sin(vehicle.yaw_rad)
    dx, dy = canvas.eye.position[:2] - np.array(vehicle.center)
    from_behind = cos * dx + sin * dy < 0.0
    palette = _palette(vehicle)
    for part in reversed(parts) if from_behind else parts:
        paint_mesh(canvas, part, (*vehicle.center, vehicle.yaw_rad), palette, depth_m)
    if cos * dx + sin * dy < -vehicle.length_m / 2.0:
        _glow_lamps(canvas, vehicle, 1.0)
    elif cos * dx + sin * dy > vehicle.length_m / 2.0:
        _glow_lamps(canvas, vehicle, -1.0)


def _palette(vehicle: VehicleView) -> Palette:
    colors = np.zeros((len(Material), 3))
    shining = np.zeros(len(Material), dtype=bool)
    for material, color in BASE_COLORS.items():
        colors[material] = color
    colors[Material.BODY] = rgb(vehicle.color)
    colors[Material.CARGO] = CARGO
    lit = [(Material.TAIL_LAMP, BRAKE_RED), (Material.THIRD_LAMP, BRAKE_RED)] if vehicle.braking else []
    lit += [(material, ORANGE) for side, material in _INDICATORS if _blinks(vehicle, side)]
    for material, color in lit:
        colors[material], shining[material] = color, True
    return Palette(colors, shining)


_INDICATORS = ((1, Material.LEFT_INDICATOR), (-1, Material.RIGHT_INDICATOR))


def _blinks(vehicle: VehicleView, side: int) -> bool:
    return vehicle.hazard or vehicle.indicator == side


def _glow_lamps(canvas: Canvas, vehicle: VehicleView, rear: float) -> None:
    """The light about the lamps at the rear (1) or the front (-1)."""
    places = lamp_places(vehicle.kind, vehicle.length_m, vehicle.width_m)
    for side, _ in _INDICATORS:
        if vehicle.braking and rear > 0.0:
            _glow(canvas, vehicle, _side(places[Material.TAIL_LAMP], side, 1.0), (BRAKE_GLOW_M, BRAKE_GLOW))
        if _blinks(vehicle, side):
            _glow(canvas, vehicle, _side(places[Material.LEFT_INDICATOR], side, rear), (ORANGE_GLOW_M, ORANGE_GLOW))


def _side(place: tuple[float, float, float], side: int, rear: float) -> tuple[float, float, float]:
    return rear * place[0], side * place[1], place[2]


def _glow(canvas: Canvas, vehicle: VehicleView, place: tuple[float, float, float], light: tuple[float, Color]) -> None:
    cos, sin = math.cos(vehicle.yaw_rad), math.sin(vehicle.yaw_rad)
    x, y, z = place
    seen = canvas.eye.to_camera(
        np.array([vehicle.center[0] + cos * x - sin * y, vehicle.center[1] + sin * x + cos * y, z])
    )
    if seen[2] > NEAR_M:
        u, v = canvas.eye.to_pixels(seen)
        canvas.glow((float(u), float(v)), light[0] * canvas.eye.scale_at(float(seen[2])), light[1])
