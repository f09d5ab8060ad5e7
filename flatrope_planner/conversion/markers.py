"""A scene as visualization_msgs markers: the road, which stays, and what moves or changes on it."""

from collections.abc import Iterable, Iterator

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from flatrope_planner.conversion.odometry import pose_message
from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.domain import Floats
from flatrope_planner.planning.pose import Pose, yaw_quaternion
from flatrope_planner.simulation.view import LightColor, Paint, RoadMarking, RoadSurface, SceneView

# Heights (m) that keep flat things from hiding each other.
SURFACE_Z_M, PAINT_Z_M = 0.0, 0.02
DASH_M = 3.0
STRIPE_M = 0.5
PERSON_M, CONE_M, LAMP_M, TRUNK_M = 0.6, 0.4, 0.7, 3.0

Rgb = tuple[int, int, int]
WHITE: Rgb = (235, 235, 235)
STOP_RED: Rgb = (200, 30, 35)
ORANGE: Rgb = (245, 120, 25)
LIGHTS: dict[LightColor, Rgb] = {LightColor.RED: (235, 40, 40), LightColor.GREEN: (40, 220, 90)}


def road_markers(view: SceneView, stamp_ns: int, frame_id: str) -> MarkerArray:
    """Surfaces, paint, houses and trees: constant within a scene, and it clears those of the scene before."""
    return _array([*_ground(view), *_roadside(view)], stamp_ns, frame_id)


def object_markers(view: SceneView, stamp_ns: int, frame_id: str) -> MarkerArray:
    """Vehicles, people, lights, signs and cones as they are at this moment."""
    return _array([*_vehicles(view), *_people(view), *_signals(view)], stamp_ns, frame_id)


def _array(markers: Iterable[Marker], stamp_ns: int, frame_id: str) -> MarkerArray:
    header = to_header(stamp_ns, frame_id)
    kept = [Marker(header=header, action=Marker.DELETEALL)]
    for number, marker in enumerate(markers):
        marker.header, marker.id = header, number
        kept.append(marker)
    return MarkerArray(markers=kept)


def _ground(view: SceneView) -> Iterator[Marker]:
    asphalt = _rgb(view.appearance.asphalt)
    for surface in view.surfaces:
        yield _listed("surface", Marker.TRIANGLE_LIST, _triangles(surface), asphalt, Vector3(x=1.0, y=1.0, z=1.0))
    for marking in view.markings:
        solid = marking.paint is Paint.SOLID
        points_m = _pairs(marking.points) if solid else _dashes(marking)
        yield _listed("paint", Marker.LINE_LIST, points_m, _rgb(marking.color), Vector3(x=float(marking.width_m)))
    for walk in view.crosswalks:
        across_m = np.arange(-walk.width_m / 2.0 + STRIPE_M, walk.width_m / 2.0, 2.0 * STRIPE_M)
        for offset_m in across_m:
            x = walk.center[0] - np.sin(walk.yaw_rad) * offset_m
            y = walk.center[1] + np.cos(walk.yaw_rad) * offset_m
            yield _solid("paint", Marker.CUBE, (x, y, PAINT_Z_M, walk.yaw_rad), (walk.length_m, STRIPE_M, 0.01), WHITE)


def _roadside(view: SceneView) -> Iterator[Marker]:
    for house in view.buildings:
        place = (*house.center, house.height_m / 2.0, house.yaw_rad)
        size = (house.length_m, house.width_m, house.height_m)
        yield _solid("building", Marker.CUBE, place, size, _rgb(house.color))
    for tree in view.trees:
        place = (*tree.center, tree.height_m / 2.0, 0.0)
        yield _solid("tree", Marker.CYLINDER, place, (TRUNK_M, TRUNK_M, tree.height_m), _rgb(tree.color))


def _vehicles(view: SceneView) -> Iterator[Marker]:
    for vehicle in view.vehicles:
        place = (*vehicle.center, vehicle.height_m / 2.0, vehicle.yaw_rad)
        size = (vehicle.length_m, vehicle.width_m, vehicle.height_m)
        yield _solid("vehicle", Marker.CUBE, place, size, _rgb(vehicle.color))


def _people(view: SceneView) -> Iterator[Marker]:
    for person in view.pedestrians:
        place = (*person.center, person.height_m / 2.0, person.yaw_rad)
        size = (PERSON_M, PERSON_M, person.height_m)
        yield _solid("pedestrian", Marker.CYLINDER, place, size, _rgb(person.color))


def _signals(view: SceneView) -> Iterator[Marker]:
    for light in view.lights:
        place = (*light.center, light.height_m, light.yaw_rad)
        yield _solid("traffic_light", Marker.SPHERE, place, (LAMP_M, LAMP_M, LAMP_M), LIGHTS[light.color])
    for sign in view.stop_signs:
        place = (*sign.center, sign.height_m, sign.yaw_rad)
        yield _solid("stop_sign", Marker.CYLINDER, place, (sign.width_m, sign.width_m, sign.width_m), STOP_RED)
    for cone in view.cones:
        place = (*cone.center, cone.height_m / 2.0, 0.0)
        yield _solid("cone", Marker.CYLINDER, place, (CONE_M, CONE_M, cone.height_m), ORANGE)


def _solid(
    name: str, kind: int, place: tuple[float, float, float, float], size_m: tuple[float, float, float], color: Rgb
) -> Marker:
    """A body at x, y, z (m) and yaw (rad)."""
    x, y, z, yaw_rad = (float(v) for v in place)
    length, width, height = (float(v) for v in size_m)
    return Marker(
        ns=name,
        type=kind,
        pose=pose_message(Pose(x, y, z, yaw_quaternion(yaw_rad))),
        scale=Vector3(x=length, y=width, z=height),
        color=_color(color),
    )


def _listed(name: str, kind: int, points_m: Floats, color: Rgb, scale: Vector3) -> Marker:
    """A list of triangles or lines from points (N, 3)."""
    marker = Marker(ns=name, type=kind, scale=scale, color=_color(color))
    marker.pose.orientation.w = 1.0
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in points_m.tolist()]
    return marker


def _triangles(surface: RoadSurface) -> Floats:
    """(6 (N - 1), 3): two triangles for each piece of the strip."""
    left, right = surface.left, surface.right
    corners = np.stack([left[:-1], right[:-1], right[1:], left[:-1], right[1:], left[1:]], axis=1).reshape(-1, 2)
    return _at_height(corners, SURFACE_Z_M)


def _pairs(points_m: Floats) -> Floats:
    """(2 (N - 1), 3): the ends of each piece of a polyline (N, 2)."""
    return _at_height(np.stack([points_m[:-1], points_m[1:]], axis=1).reshape(-1, 2), PAINT_Z_M)


def _dashes(marking: RoadMarking) -> Floats:
    """The ends of every other piece of `DASH_M` of the line."""
    step_m = np.linalg.norm(np.diff(marking.points, axis=0), axis=1)
    distance_m = np.concatenate([[0.0], np.cumsum(step_m)])
    starts_m = np.arange(0.0, distance_m[-1] - DASH_M, 2.0 * DASH_M)
    ends_m = np.stack([starts_m, starts_m + DASH_M], axis=1).reshape(-1)
    axes = [np.interp(ends_m, distance_m, marking.points[:, axis]) for axis in range(2)]
    return _at_height(np.stack(axes, axis=1), PAINT_Z_M)


def _at_height(points_m: Floats, z_m: float) -> Floats:
    return np.column_stack([points_m, np.full(len(points_m), z_m)])


def _rgb(bgr: Rgb) -> Rgb:
    return bgr[::-1]


def _color(color: Rgb) -> ColorRGBA:
    red, green, blue = (value / 255.0 for value in color)
    return ColorRGBA(r=red, g=green, b=blue, a=1.0)
