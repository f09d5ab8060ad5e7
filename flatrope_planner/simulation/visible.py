"""From a scene in Frenet coordinates to what cameras see: a SceneView in the world."""

import math
from collections.abc import Iterator

import numpy as np

from flatrope_planner.simulation.agents import SIZES_M, Pedestrian, TrafficVehicle
from flatrope_planner.simulation.road import LANE_WIDTH_M
from flatrope_planner.simulation.scene import Scene
from flatrope_planner.simulation.view import (
    ConeView,
    Crosswalk,
    Paint,
    PedestrianView,
    RoadMarking,
    RoadSurface,
    SceneView,
    StopSignView,
    TrafficLightView,
    VehicleView,
)

YELLOW = (70, 190, 230)
JUNCTION_WIDTH_M = 12.0
CROSSING_ROAD_M = 60.0
# Signal and sign stand this far beyond the stop line, at the near corner, where a waiting driver sees them.
SIGNAL_BEYOND_M = 4.5
SIGN_BEYOND_M = 2.0
SIGNAL_HEIGHT_M = 2.5
PEDESTRIAN_SIZE_M = 0.6
CONE_SIZE_M = 0.4
STEP_LENGTH_M = 1.4

Box = tuple[float, float, float, float, float]


class VisibleScene:
    """Draws the line between what a scene knows and what it shows; static parts are made once."""

    def __init__(self, scene: Scene) -> None:
        """Prepare the road, its paint and the roadside."""
        self._scene = scene
        self._surfaces = tuple(self._make_surfaces())
        self._markings = tuple(self._make_markings())
        self._crosswalks = tuple(self._make_crosswalks())
        self._signs = tuple(self._make_signs())
        self._cones = tuple(ConeView(scene.layout.line.at(c.s_m, c.d_m)[:2]) for c in scene.cones)

    def at(self, time_s: float, noise_seed: int) -> SceneView:
        """The view at this scene time."""
        scene = self._scene
        return SceneView(
            appearance=scene.appearance,
            surfaces=self._surfaces,
            markings=self._markings,
            crosswalks=self._crosswalks,
            vehicles=tuple(self._vehicle(v) for v in scene.vehicles),
            pedestrians=tuple(self._pedestrian(p) for p in scene.pedestrians),
            lights=tuple(self._light(light.stop_s_m, time_s, i) for i, light in enumerate(scene.lights)),
            stop_signs=self._signs,
            cones=self._cones,
            buildings=scene.buildings,
            trees=scene.trees,
            noise_seed=noise_seed,
        )

    def obstacle_boxes(self) -> Iterator[Box]:
        """World x, y, yaw, length, width of everything that must not be touched."""
        for vehicle in self._scene.vehicles:
            seen = self._vehicle(vehicle)
            yield *seen.center, seen.yaw_rad, seen.length_m, seen.width_m
        for pedestrian in self._scene.pedestrians:
            x, y, yaw = self._scene.layout.line.at(pedestrian.s_m, pedestrian.d_m)
            yield x, y, yaw, PEDESTRIAN_SIZE_M, PEDESTRIAN_SIZE_M
        for cone in self._scene.cones:
            x, y, yaw = self._scene.layout.line.at(cone.s_m, cone.d_m)
            yield x, y, yaw, CONE_SIZE_M, CONE_SIZE_M

    def _vehicle(self, vehicle: TrafficVehicle) -> VehicleView:
        length, width, height = SIZES_M[vehicle.kind]
        x, y, yaw = self._scene.layout.line.at(float(vehicle.position[0]), float(vehicle.position[1]))
        return VehicleView(
            center=(x, y),
            yaw_rad=yaw + float(vehicle.heading),
            length_m=length,
            width_m=width,
            height_m=height,
            kind=vehicle.kind,
            color=vehicle.color,
            braking=vehicle.braking,
            indicator=vehicle.indicator,
            hazard=vehicle.hazard,
        )

    def _pedestrian(self, pedestrian: Pedestrian) -> PedestrianView:
        x, y, yaw = self._scene.layout.line.at(pedestrian.s_m, pedestrian.d_m)
        facing = yaw + math.copysign(math.pi / 2.0, pedestrian.pace_mps or -pedestrian.d_m)
        phase = (pedestrian.walked_m / STEP_LENGTH_M) % 1.0
        return PedestrianView((x, y), facing, pedestrian.height_m, pedestrian.color, phase)

    def _light(self, stop_s_m: float, time_s: float, index: int) -> TrafficLightView:
        x, y, yaw = self._scene.layout.line.at(stop_s_m + SIGNAL_BEYOND_M, self._scene.layout.right_edge_m - 0.4)
        return TrafficLightView((x, y), yaw, SIGNAL_HEIGHT_M, self._scene.lights[index].color_at(time_s))

    def _make_signs(self) -> Iterator[StopSignView]:
        layout = self._scene.layout
        for sign in self._scene.stop_signs:
            x, y, yaw = layout.line.at(sign.stop_s_m + SIGN_BEYOND_M, layout.right_edge_m - 0.65)
            yield StopSignView((x, y), yaw)

    def _make_crosswalks(self) -> Iterator[Crosswalk]:
        layout, s = self._scene.layout, self._scene.crosswalk_s_m
        if s is not None:
            x, y, yaw = layout.line.at(s, (layout.left_edge_m + layout.right_edge_m) / 2.0)
            yield Crosswalk((x, y), yaw, 3.0, layout.left_edge_m - layout.right_edge_m - 1.0)

    def _stretch(self) -> tuple[float, float]:
        line = self._scene.layout.line
        return line.first_s_m + 20.0, line.last_s_m - 5.0

    def _make_surfaces(self) -> Iterator[RoadSurface]:
        layout = self._scene.layout
        line = layout.line
        from_s, to_s = self._stretch()
        yield RoadSurface(
            line.polyline(from_s, to_s, layout.left_edge_m), line.polyline(from_s, to_s, layout.right_edge_m)
        )
        if self._scene.junction_s_m is not None:
            s = self._scene.junction_s_m
            sides = [layout.left_edge_m + CROSSING_ROAD_M, layout.right_edge_m - CROSSING_ROAD_M]
            near = np.array([line.at(s, d)[:2] for d in sides])
            far = np.array([line.at(s + JUNCTION_WIDTH_M, d)[:2] for d in sides])
            yield RoadSurface(near, far)

    def _make_markings(self) -> Iterator[RoadMarking]:
        layout = self._scene.layout
        edge_left = LANE_WIDTH_M * (layout.left + layout.opposing + 0.5)
        edge_right = -LANE_WIDTH_M * (layout.right + 0.5)
        for from_s, to_s in self._between_junctions():
            for d in (edge_left, edge_right):
                yield RoadMarking(layout.line.polyline(from_s, to_s, d), Paint.SOLID)
            for d in layout.lane_offsets_m[:-1]:
                yield from self._separator(from_s, to_s, d + LANE_WIDTH_M / 2.0)
            for d in layout.opposing_offsets_m[:-1]:
                yield RoadMarking(layout.line.polyline(from_s, to_s, d + LANE_WIDTH_M / 2.0), Paint.DASHED)
            if layout.opposing:
                center = LANE_WIDTH_M * (layout.left + 0.5)
                yield RoadMarking(layout.line.polyline(from_s, to_s, center), Paint.SOLID, 0.18, YELLOW)
        for stop_s in [light.stop_s_m for light in self._scene.lights] + [x.stop_s_m for x in self._scene.stop_signs]:
            across = np.array([layout.line.at(stop_s, d)[:2] for d in (edge_right, LANE_WIDTH_M * (layout.left + 0.5))])
            yield RoadMarking(across, Paint.SOLID, 0.5)

    def _separator(self, from_s: float, to_s: float, d_m: float) -> Iterator[RoadMarking]:
        """Dashes between two lanes of the ego's direction; beside an on-ramp they end a solid line."""
        ramp = self._scene.ramp_s_m
        line = self._scene.layout.line
        if ramp is None or d_m > 0.0:
            yield RoadMarking(line.polyline(from_s, to_s, d_m), Paint.DASHED)
            return
        yield RoadMarking(line.polyline(from_s, ramp[1] - 45.0, d_m), Paint.SOLID)
        yield RoadMarking(line.polyline(ramp[1] - 45.0, ramp[1], d_m), Paint.DASHED, 0.3)
        yield RoadMarking(line.polyline(ramp[1], to_s, d_m), Paint.SOLID)

    def _between_junctions(self) -> list[tuple[float, float]]:
        from_s, to_s = self._stretch()
        if self._scene.junction_s_m is None:
            return [(from_s, to_s)]
        return [(from_s, self._scene.junction_s_m), (self._scene.junction_s_m + JUNCTION_WIDTH_M, to_s)]
