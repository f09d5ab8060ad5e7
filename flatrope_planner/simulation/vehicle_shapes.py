"""The shapes of cars, vans and trucks: lofted bodies with glass, lamps and wheels on them."""

import math
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.mesh import Mesh, MeshBuilder
from flatrope_planner.simulation.view import VehicleKind


class Material(IntEnum):
    """Rows of a vehicle's palette."""

    BODY = 0
    CARGO = 1
    GLASS = 2
    TRIM = 3
    TYRE = 4
    RIM = 5
    PLATE = 6
    HEADLAMP = 7
    TAIL_LAMP = 8
    THIRD_LAMP = 9
    LEFT_INDICATOR = 10
    RIGHT_INDICATOR = 11


# A cross-section of a body: x (m), half width (m), lower and upper edge (m).
Section = tuple[float, float, float, float]
# A lamp: inner and outer edge (shares of the half width), lower and upper edge (m).
Lamp = tuple[float, float, float, float]
# x, z of a point on the plane of symmetry, and half the width there (m).
Edge = tuple[float, float, float]
WHEEL_CORNERS = 14
REAR, FRONT = -1.0, 1.0
_CAR_TAIL, _CAR_INDICATOR = (0.40, 0.87, 0.60, 0.88), (0.55, 0.87, 0.40, 0.56)
_VAN_TAIL, _VAN_INDICATOR = (0.64, 0.93, 0.72, 1.20), (0.64, 0.93, 1.24, 1.50)
_TRUCK_TAIL, _TRUCK_INDICATOR = (0.54, 0.94, 0.56, 0.88), (0.30, 0.52, 0.56, 0.88)


@lru_cache(maxsize=32)
def vehicle_shape(kind: VehicleKind, length_m: float, width_m: float, height_m: float) -> tuple[Mesh, ...]:
    """Parts from rear to front; each can be painted over the one behind it."""
    size = (length_m, width_m / 2.0, height_m)
    if kind is VehicleKind.CAR:
        return (_car(*size),)
    return (_van(*size),) if kind is VehicleKind.VAN else (_truck_box(*size), _truck_cab(*size))


def lamp_places(kind: VehicleKind, length_m: float, width_m: float) -> dict[Material, tuple[float, float, float]]:
    """Where the left tail lamp and the left rear indicator sit: forward, left, up (m)."""
    half = width_m / 2.0
    tail, indicator = {
        VehicleKind.CAR: (_CAR_TAIL, _CAR_INDICATOR),
        VehicleKind.VAN: (_VAN_TAIL, _VAN_INDICATOR),
        VehicleKind.TRUCK: (_TRUCK_TAIL, _TRUCK_INDICATOR),
    }[kind]
    places = {}
    for material, (inner, outer, low, high) in ((Material.TAIL_LAMP, tail), (Material.LEFT_INDICATOR, indicator)):
        places[material] = (-length_m / 2.0, (inner + outer) / 2.0 * half, (low + high) / 2.0)
    return places


def _car(length: float, half: float, high: float) -> Mesh:
    rear, front = -length / 2.0, length / 2.0
    lift = high / 1.5
    mesh = MeshBuilder()
    _underside(mesh, length, half, 0.33)
    body = [
        (rear, half * 0.88, 0.34, 0.90 * lift),
        (rear * 0.91, half, 0.26, 0.95 * lift),
        (rear * 0.6, half, 0.24, 0.98 * lift),
        (front * 0.4, half, 0.24, 0.96 * lift),
        (front * 0.86, half * 0.98, 0.26, 0.80 * lift),
        (front, half * 0.84, 0.34, 0.66 * lift),
    ]
    _loft(mesh, Material.BODY, body)
    _wheels(mesh, (rear * 0.6, front * 0.62), half, 0.34)
    _across(mesh, Material.TRIM, REAR, rear - 0.005, (-half * 0.88, half * 0.88, 0.34, 0.40))
    _across(mesh, Material.TRIM, FRONT, front + 0.005, (-half * 0.5, half * 0.5, 0.36, 0.52))
    _across(mesh, Material.PLATE, REAR, rear - 0.01, (-0.26, 0.26, 0.62, 0.74))
    _across(mesh, Material.PLATE, FRONT, front + 0.01, (-0.26, 0.26, 0.40, 0.51))
    _lamps(mesh, rear - 0.01, half, _CAR_TAIL, _CAR_INDICATOR)
    _headlamps(mesh, front + 0.01, half, (0.46, 0.84, 0.48, 0.65))
    _mirrors(mesh, front * 0.3, half, 1.0 * lift)
    belt = 0.94 * lift
    _cabin(mesh, (rear * 0.9, rear * 0.62, front * 0.08, front * 0.48), (belt, high), (half * 0.93, half * 0.72))
    third = high - 0.03
    _across(mesh, Material.THIRD_LAMP, REAR, rear * 0.64, (-0.24, 0.24, third - 0.09, third))
    return mesh.build()


def _van(length: float, half: float, high: float) -> Mesh:
    rear, front = -length / 2.0, length / 2.0
    mesh = MeshBuilder()
    _underside(mesh, length, half, 0.36)
    windscreen = (front * 0.40, front * 0.80)
    body = [
        (rear, half * 0.94, 0.36, high * 0.97),
        (rear * 0.95, half, 0.28, high),
        (windscreen[0], half, 0.28, high),
        (windscreen[1], half * 0.97, 0.28, high * 0.55),
        (front * 0.97, half * 0.93, 0.30, high * 0.46),
        (front, half * 0.86, 0.36, high * 0.36),
    ]
    _loft(mesh, Material.BODY, body)
    _wheels(mesh, (rear * 0.62, front * 0.64), half, 0.37)
    _van_windows(mesh, half, high, (rear, front, *windscreen))
    _across(mesh, Material.TRIM, REAR, rear - 0.005, (-half * 0.94, half * 0.94, 0.36, 0.50))
    _across(mesh, Material.PLATE, REAR, rear - 0.01, (-0.26, 0.26, 0.62, 0.74))
    _across(mesh, Material.TRIM, FRONT, front + 0.005, (-half * 0.5, half * 0.5, 0.42, 0.72))
    _across(mesh, Material.PLATE, FRONT, front + 0.01, (-0.26, 0.26, 0.46, 0.57))
    _lamps(mesh, rear - 0.01, half, _VAN_TAIL, _VAN_INDICATOR)
    _across(mesh, Material.THIRD_LAMP, REAR, rear - 0.01, (-0.26, 0.26, high * 0.90, high * 0.94))
    _headlamps(mesh, front + 0.01, half, (0.52, 0.86, 0.58, 0.80))
    _mirrors(mesh, front * 0.6, half, 0.6 * high)
    return mesh.build()


def _van_windows(mesh: MeshBuilder, half: float, high: float, x: tuple[float, float, float, float]) -> None:
    """Windscreen, windows of the front doors and of the rear doors; x of rear, front, windscreen's top and foot."""
    rear, front, top, foot = x
    mesh.add(Material.GLASS, _inset(_span((foot, high * 0.55, half * 0.97), (top, high, half)), 0.06, 0.10))
    for side in (1, -1):
        door = _along(side, half, (front * 0.18, front * 0.62), (high * 0.56, high * 0.86))
        # Its front upper corner follows the windscreen.
        door[1 if side > 0 else 2, 0] = front * 0.38
        mesh.add(Material.GLASS, door)
    _pair(mesh, Material.GLASS, REAR, rear - 0.01, (0.06 * half, 0.78 * half, high * 0.62, high * 0.88))


def _truck_box(length: float, half: float, high: float) -> Mesh:
    """Frame, rear axle and cargo box of a truck."""
    rear, split = -length / 2.0, length * 0.23
    mesh = MeshBuilder()
    _underside(mesh, length, half, 0.48)
    _loft(mesh, Material.TRIM, [(rear, half * 0.96, 0.50, 0.96), (split, half * 0.7, 0.55, 0.96)])
    _wheels(mesh, (rear * 0.62,), half * 0.99, 0.48)
    _loft(mesh, Material.CARGO, [(rear, half, 0.94, high), (split, half, 0.94, high)])
    # A stripe in the truck's colour round the box.
    _pair(mesh, Material.BODY, REAR, rear - 0.005, (0.03 * half, 0.93 * half, 1.25, 1.45))
    for side in (1, -1):
        mesh.add(Material.BODY, _along(side, half, (rear * 0.96, split * 0.92), (1.25, 1.45)))
    _across(mesh, Material.TRIM, REAR, rear - 0.005, (-0.02, 0.02, 0.98, high * 0.98))
    _across(mesh, Material.PLATE, REAR, rear - 0.01, (-0.26, 0.26, 0.62, 0.76))
    _lamps(mesh, rear - 0.01, half, _TRUCK_TAIL, _TRUCK_INDICATOR)
    return mesh.build()


def _truck_cab(length: float, half: float, high: float) -> Mesh:
    front, roof = length / 2.0, high * 0.88
    mesh = MeshBuilder()
    body = [
        (front * 0.52, half * 0.94, 0.40, roof),
        (front * 0.93, half * 0.94, 0.40, roof),
        (front, half * 0.90, 0.42, roof * 0.93),
    ]
    _loft(mesh, Material.BODY, body)
    _wheels(mesh, (front * 0.72,), half * 0.94, 0.48)
    for side in (1, -1):
        mesh.add(Material.GLASS, _along(side, half * 0.94, (front * 0.62, front * 0.9), (roof * 0.6, roof * 0.9)))
    _across(mesh, Material.GLASS, FRONT, front + 0.01, (-half * 0.84, half * 0.84, roof * 0.56, roof * 0.88))
    _across(mesh, Material.TRIM, FRONT, front + 0.01, (-half * 0.6, half * 0.6, 0.80, roof * 0.46))
    _across(mesh, Material.TRIM, FRONT, front + 0.005, (-half * 0.9, half * 0.9, 0.42, 0.56))
    _across(mesh, Material.PLATE, FRONT, front + 0.02, (-0.26, 0.26, 0.60, 0.72))
    _headlamps(mesh, front + 0.01, half, (0.56, 0.86, 0.58, 0.78))
    _mirrors(mesh, front * 0.92, half * 0.98, 0.66 * high)
    return mesh.build()


def _loft(mesh: MeshBuilder, material: Material, sections: list[Section]) -> None:
    """A closed hull through the sections, rear to front; its underside is left out."""
    rear, front = sections[0], sections[-1]
    _across(mesh, material, REAR, rear[0], (-rear[1], rear[1], rear[2], rear[3]))
    _across(mesh, material, FRONT, front[0], (-front[1], front[1], front[2], front[3]))
    for (x0, w0, low0, high0), (x1, w1, low1, high1) in pairwise(sections):
        mesh.add(material, np.array([[x0, w0, low0], [x0, w0, high0], [x1, w1, high1], [x1, w1, low1]]))
        mesh.add(material, np.array([[x0, -w0, low0], [x1, -w1, low1], [x1, -w1, high1], [x0, -w0, high0]]))
        mesh.add(material, _span((x1, high1, w1), (x0, high0, w0)))


def _span(low: Edge, high: Edge) -> Floats:
    """A face symmetric about the vehicle's middle, from one crosswise edge to another; outside is toward `low`, up."""
    (x0, z0, w0), (x1, z1, w1) = low, high
    return np.array([[x0, -w0, z0], [x0, w0, z0], [x1, w1, z1], [x1, -w1, z1]])


def _along(side: int, half: float, x: tuple[float, float], z: tuple[float, float]) -> Floats:
    """An upright rectangle along the vehicle, on its left (1) or right (-1)."""
    y = side * (half + 0.01)
    corners = np.array([[x[0], y, z[0]], [x[1], y, z[0]], [x[1], y, z[1]], [x[0], y, z[1]]])
    return np.asarray(corners[::-1] if side > 0 else corners)


def _across(
    mesh: MeshBuilder, material: Material, end: float, x: float, box: tuple[float, float, float, float]
) -> None:
    """An upright rectangle across the vehicle: right and left edge, lower and upper edge (m)."""
    right, left, low, high = box
    corners = np.array([[x, right, low], [x, left, low], [x, left, high], [x, right, high]])
    mesh.add(material, corners if end > 0.0 else corners[::-1])


def _inset(face: Floats, along: float, up: float) -> Floats:
    """A pane within a four-cornered face: what is left of it inside a frame, shares of its width and height."""
    a, b, c, d = face
    u, v = np.array([along, 1.0 - along, 1.0 - along, along]), np.array([up, up, 1.0 - up, 1.0 - up])
    u, v = u[:, None], v[:, None]
    return np.asarray((a * (1 - u) + b * u) * (1 - v) + (d * (1 - u) + c * u) * v)


def _cabin(
    mesh: MeshBuilder, x: tuple[float, float, float, float], z: tuple[float, float], half: tuple[float, float]
) -> None:
    """The glasshouse of a car: x of rear foot, rear top, front top, front foot; belt and roof; half widths there."""
    back, back_top, front_top, front = x
    faces = [
        np.array(
            [[back, half[0], z[0]], [back, -half[0], z[0]], [back_top, -half[1], z[1]], [back_top, half[1], z[1]]]
        ),
        _span((front, z[0], half[0]), (front_top, z[1], half[1])),
    ]
    for side in (1.0, -1.0):
        foot, top = side * half[0], side * half[1]
        corners = np.array([[back, foot, z[0]], [front, foot, z[0]], [front_top, top, z[1]], [back_top, top, z[1]]])
        faces.append(corners if side < 0.0 else corners[[1, 0, 3, 2]])
    for face in faces:
        mesh.add(Material.BODY, face)
    mesh.add(Material.BODY, _span((front_top, z[1], half[1]), (back_top, z[1], half[1])))
    for face in faces[:2]:
        mesh.add(Material.GLASS, _inset(face, 0.07, 0.12))
    for face in faces[2:]:
        pane = _inset(face, 0.07, 0.14)
        a, b, c, d = pane
        post = [(a + (b - a) * share, d + (c - d) * share) for share in (0.47, 0.52)]
        mesh.add(Material.GLASS, np.array([[a, post[0][0], post[0][1], d], [post[1][0], b, c, post[1][1]]]))


def _underside(mesh: MeshBuilder, length: float, half: float, radius: float) -> None:
    """Tyres seen from behind and from the front, and the dark between them."""
    for end in (REAR, FRONT):
        x = end * length * 0.31 + end * radius * 0.5
        _across(mesh, Material.TRIM, end, x, (-half * 0.9, half * 0.9, radius * 0.6, radius * 1.4))
        _pair(mesh, Material.TYRE, end, x, (half * 0.66, half * 0.97, 0.0, radius * 1.4))


def _wheels(mesh: MeshBuilder, x: tuple[float, ...], half: float, radius: float) -> None:
    """Wheel arch, tyre and rim of the wheels on both sides."""
    for side in (1, -1):
        for material, share, out in (
            (Material.TRIM, 1.18, 0.005),
            (Material.TYRE, 1.0, 0.01),
            (Material.RIM, 0.6, 0.015),
        ):
            discs = [_disc((place, side * (half + out), radius), radius * share, side) for place in x]
            mesh.add(material, np.array(discs))


def _disc(center: tuple[float, float, float], radius: float, side: int) -> Floats:
    angle = np.arange(WHEEL_CORNERS) * (-side * 2.0 * math.pi / WHEEL_CORNERS)
    flat = np.zeros(WHEEL_CORNERS)
    up = np.maximum(radius * np.sin(angle), -center[2])
    return np.asarray(np.array(center) + np.stack([radius * np.cos(angle), flat, up], axis=1))


def _pair(
    mesh: MeshBuilder,
    material: Material | tuple[Material, Material],
    end: float,
    x: float,
    box: tuple[float, float, float, float],
) -> None:
    """Two upright rectangles across the vehicle, on the left and the right: inner, outer, lower, upper edge (m)."""
    inner, outer, low, high = box
    left, right = material if isinstance(material, tuple) else (material, material)
    _across(mesh, left, end, x, (inner, outer, low, high))
    _across(mesh, right, end, x, (-outer, -inner, low, high))


_INDICATORS = (Material.LEFT_INDICATOR, Material.RIGHT_INDICATOR)


def _lamps(mesh: MeshBuilder, x: float, half: float, tail: Lamp, indicator: Lamp) -> None:
    """Both tail lamps, both rear indicators."""
    for material, (inner, outer, low, high) in ((Material.TAIL_LAMP, tail), (_INDICATORS, indicator)):
        _pair(mesh, material, REAR, x, (inner * half, outer * half, low, high))


def _headlamps(mesh: MeshBuilder, x: float, half: float, lamp: Lamp) -> None:
    """Both headlamps with the front indicators under them."""
    inner, outer, low, high = lamp
    _pair(mesh, Material.HEADLAMP, FRONT, x, (inner * half, outer * half, low, high))
    _pair(mesh, _INDICATORS, FRONT, x, (inner * half, outer * half, low - 0.12, low - 0.02))


def _mirrors(mesh: MeshBuilder, x: float, half: float, z: float) -> None:
    for end in (REAR, FRONT):
        _pair(mesh, Material.TRIM, end, x, (half, half + 0.2, z, z + 0.16))
