"""Draws a SceneView through a camera: sky and ground, then everything that stands on it, far things first."""

from collections.abc import Callable, Iterator
from functools import partial

from flatrope_planner.domain import Image
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.canvas import Canvas
from flatrope_planner.simulation.projection import Projector
from flatrope_planner.simulation.rendering_ground import paint_ground
from flatrope_planner.simulation.rendering_order import Footprint, painting_order
from flatrope_planner.simulation.rendering_people import paint_pedestrian
from flatrope_planner.simulation.rendering_signals import paint_cone, paint_light, paint_stop_sign
from flatrope_planner.simulation.rendering_surroundings import backdrop, paint_building, paint_ridges, paint_tree
from flatrope_planner.simulation.rendering_vehicles import paint_vehicle
from flatrope_planner.simulation.sensor_noise import add_noise
from flatrope_planner.simulation.view import SceneView

# Half widths of slender things (m).
PERSON_M, POST_M, CONE_M, TRUNK_M = 0.3, 0.35, 0.25, 0.3

# Paints one thing at its depth (m).
Painter = Callable[[float], None]


def render(view: SceneView, camera: CameraModel, ego: tuple[float, float, float]) -> Image:
    """What the camera sees from the ego at world x, y (m) and yaw (rad): uint8 (H, W, 3), RGB."""
    eye = Projector(camera, ego)
    canvas = Canvas(backdrop(view.appearance, camera), eye, view.appearance)
    paint_ground(canvas, view)
    paint_ridges(canvas)
    things = list(_upright(canvas, view))
    for index, depth_m in painting_order(eye, [footprint for footprint, _ in things]):
        things[index][1](depth_m)
    # Knuth's multiplicative hash spreads neighbouring seeds; each camera cuts elsewhere.
    place = (view.noise_seed * 2654435761 + camera.width_px) >> 8
    add_noise(canvas.image, view.appearance.noise, place)
    return canvas.image


def _upright(canvas: Canvas, view: SceneView) -> Iterator[tuple[Footprint, Painter]]:
    """Everything that stands on the ground."""
    for building in view.buildings:
        half = (building.length_m / 2.0, building.width_m / 2.0)
        yield Footprint(building.center, building.yaw_rad, half), partial(paint_building, canvas, building)
    for vehicle in view.vehicles:
        half = (vehicle.length_m / 2.0, vehicle.width_m / 2.0)
        yield Footprint(vehicle.center, vehicle.yaw_rad, half), partial(paint_vehicle, canvas, vehicle)
    for tree in view.trees:
        yield _spot(tree.center, TRUNK_M), partial(paint_tree, canvas, tree)
    for person in view.pedestrians:
        yield _spot(person.center, PERSON_M), partial(paint_pedestrian, canvas, person)
    for light in view.lights:
        yield _spot(light.center, POST_M), partial(paint_light, canvas, light)
    for sign in view.stop_signs:
        yield _spot(sign.center, POST_M), partial(paint_stop_sign, canvas, sign)
    for cone in view.cones:
        yield _spot(cone.center, CONE_M), partial(paint_cone, canvas, cone)


def _spot(center: tuple[float, float], half_m: float) -> Footprint:
    return Footprint(center, 0.0, (half_m, half_m))
