"""Where in a picture things are, patch by patch: known from the scene, for teaching a vision tower to see.

Things are boxes here, near ones hide far ones, buildings hide what is behind them. What a thing is about to do (brake
lamps, indicators) counts only where it can be seen.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.projection import NEAR_M, Projector, clip_near
from flatrope_planner.simulation.rendering_order import Footprint, painting_order
from flatrope_planner.simulation.view import LightColor, PedestrianView, SceneView, VehicleView

# A patch is looked at in this many cells each way, so that things much smaller than it are still found in it.
CELLS = 4
# Upright things farther away than this are background.
FARTHEST_M = 80.0
PERSON_HALF_M, HEAD_HALF_M, HEAD_HEIGHT_M = 0.3, 0.35, 1.8

Strip = tuple[Floats, Floats]


class Sight(IntEnum):
    """What a patch can show; the bit of that number is set in `SightMap.kinds`."""

    LANE = 0
    CROSSWALK = 1
    VEHICLE = 2
    # A vehicle seen from the front.
    ONCOMING = 3
    BRAKE_LAMPS = 4
    LEFT_INDICATOR = 5
    RIGHT_INDICATOR = 6
    PERSON = 7
    WALKING = 8
    RED_LIGHT = 9
    GREEN_LIGHT = 10
    STOP_SIGN = 11


@dataclass(frozen=True)
class SightMap:
    """What the patches of one picture show."""

    # uint16 (rows, columns), bits by `Sight`.
    kinds: NDArray[np.uint16]
    # float32 (rows, columns): distance (m) of the nearest upright thing in the patch, 0 where there is none.
    depth_m: NDArray[np.float32]


@dataclass(frozen=True)
class _Thing:
    footprint: Footprint
    # From where to where it reaches above the ground (m).
    low_m: float
    high_m: float
    kinds: int


def find_sights(
    view: SceneView, camera: CameraModel, ego: tuple[float, float, float], lane: Strip, patches: tuple[int, int]
) -> SightMap:
    """What a camera's picture shows in each of `patches` (rows, columns).

    Args:
        view: the scene.
        camera: the camera that looks.
        ego: world x, y (m) and yaw (rad) of the ego.
        lane: left and right border (N, 2) of the ego's lane ahead, m.
        patches: rows and columns the picture is cut into.
    """
    eye = Projector(camera, ego)
    rows, columns = patches
    scale = np.array([columns, rows]) * CELLS / np.array([camera.width_px, camera.height_px])
    # Number of the topmost thing in each cell, 0 for none.
    top = np.zeros((rows * CELLS, columns * CELLS), dtype=np.int32)
    kinds, depths = [0, _bits(Sight.LANE), _bits(Sight.CROSSWALK)], [0.0, 0.0, 0.0]
    _fill_ground(top, eye, np.concatenate([lane[0], lane[1][::-1]]), (1, scale))
    for walk in view.crosswalks:
        corners = _corners(Footprint(walk.center, walk.yaw_rad, (walk.length_m / 2.0, walk.width_m / 2.0)))
        _fill_ground(top, eye, corners, (2, scale))
    things = list(_things(view, eye.position))
    for index, _ in painting_order(eye, [thing.footprint for thing in things]):
        nearest_m = _fill_box(top, eye, things[index], (len(kinds), scale))
        told = things[index].kinds if nearest_m <= FARTHEST_M else 0
        kinds.append(told)
        depths.append(nearest_m if told else 0.0)
    cells = top.reshape(rows, CELLS, columns, CELLS).transpose(0, 2, 1, 3).reshape(rows, columns, -1)
    found = np.bitwise_or.reduce(np.array(kinds, dtype=np.uint16)[cells], axis=-1)
    depth = np.array(depths, dtype=np.float32)[cells]
    nearest = np.where(depth > 0.0, depth, np.inf).min(axis=-1)
    return SightMap(found, np.where(np.isfinite(nearest), nearest, 0.0).astype(np.float32))


def _bits(*sights: Sight) -> int:
    return sum(1 << sight for sight in sights)


def _things(view: SceneView, eye: Floats) -> Iterator[_Thing]:
    for building in view.buildings:
        half = (building.length_m / 2.0, building.width_m / 2.0)
        yield _Thing(Footprint(building.center, building.yaw_rad, half), 0.0, building.height_m, 0)
    for vehicle in view.vehicles:
        half = (vehicle.length_m / 2.0, vehicle.width_m / 2.0)
        yield _Thing(
            Footprint(vehicle.center, vehicle.yaw_rad, half), 0.0, vehicle.height_m, _vehicle_kinds(vehicle, eye)
        )
    for person in view.pedestrians:
        yield _Thing(_spot(person.center, PERSON_HALF_M), 0.0, person.height_m, _person_kinds(person))
    for light in view.lights:
        low, high = light.height_m - HEAD_HEIGHT_M / 2.0, light.height_m + HEAD_HEIGHT_M / 2.0
        shown = Sight.RED_LIGHT if light.color is LightColor.RED else Sight.GREEN_LIGHT
        yield _Thing(_spot(light.center, HEAD_HALF_M), low, high, _bits(shown))
    for sign in view.stop_signs:
        half_m = sign.width_m / 2.0
        spot = _spot(sign.center, half_m)
        yield _Thing(spot, sign.height_m - half_m, sign.height_m + half_m, _bits(Sight.STOP_SIGN))


def _vehicle_kinds(vehicle: VehicleView, eye: Floats) -> int:
    toward_eye = eye[:2] - np.array(vehicle.center)
    if float(toward_eye @ [math.cos(vehicle.yaw_rad), math.sin(vehicle.yaw_rad)]) > 0.0:
        return _bits(Sight.VEHICLE, Sight.ONCOMING)
    shown = [Sight.VEHICLE]
    shown += [Sight.BRAKE_LAMPS] if vehicle.braking else []
    shown += [Sight.LEFT_INDICATOR] if vehicle.hazard or vehicle.indicator > 0 else []
    shown += [Sight.RIGHT_INDICATOR] if vehicle.hazard or vehicle.indicator < 0 else []
    return _bits(*shown)


def _person_kinds(person: PedestrianView) -> int:
    return _bits(Sight.PERSON, Sight.WALKING) if person.phase > 0.0 else _bits(Sight.PERSON)


def _spot(center: tuple[float, float], half_m: float) -> Footprint:
    return Footprint(center, 0.0, (half_m, half_m))


def _corners(footprint: Footprint) -> Floats:
    """(4, 2) corners in order."""
    cos, sin = math.cos(footprint.yaw_rad), math.sin(footprint.yaw_rad)
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * np.array(footprint.half)
    return np.asarray(signs @ np.array([[cos, sin], [-sin, cos]]) + np.array(footprint.center))


def _fill_ground(top: NDArray[np.int32], eye: Projector, outline: Floats, paint: tuple[int, Floats]) -> None:
    seen = eye.ground_to_camera(outline)
    seen = clip_near(seen) if seen[:, 2].min() < NEAR_M else seen
    if len(seen) >= 3:
        cv2.fillPoly(top, [_cells(eye.to_pixels(seen), paint[1])], paint[0])


def _fill_box(top: NDArray[np.int32], eye: Projector, thing: _Thing, paint: tuple[int, Floats]) -> float:
    """Fill a box's outline; returns the distance (m) of its nearest corner."""
    base = _corners(thing.footprint)
    box = np.concatenate([np.column_stack([base, np.full(4, high)]) for high in (thing.low_m, thing.high_m)])
    seen = eye.to_camera(box)
    nearest_m = max(float(seen[:, 2].min()), NEAR_M)
    if seen[:, 2].max() < NEAR_M:
        return nearest_m
    seen[:, 2] = np.maximum(seen[:, 2], NEAR_M)
    cv2.fillConvexPoly(top, cv2.convexHull(_cells(eye.to_pixels(seen), paint[1])), paint[0])
    return nearest_m


def _cells(pixels: Floats, scale: Floats) -> NDArray[np.int32]:
    """Pixels -> cells; what lies far outside is drawn in, as OpenCV wants small numbers."""
    return np.clip(np.floor(pixels * scale), -10_000, 10_000).astype(np.int32)
