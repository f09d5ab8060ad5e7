"""How each family of scenes is built. Same family, split and seed: same scene."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from flatrope_planner.simulation.agents import (
    SIZES_M,
    Cone,
    Pedestrian,
    StopSign,
    TrafficLight,
    TrafficPlace,
    TrafficVehicle,
    add_vehicle,
    build_traffic,
)
from flatrope_planner.simulation.road import Bend, GuideLine, RoadLayout
from flatrope_planner.simulation.scene import CRUISE_MPS, EgoStart, Family, Scene, Split, StoryTime
from flatrope_planner.simulation.scenery import (
    CLOTHES,
    VEHICLE_COLORS,
    draw_appearance,
    draw_kind,
    draw_surroundings,
    pick,
)
from flatrope_planner.simulation.view import VehicleKind

BEFORE_M = 80.0
JUNCTION_WIDTH_M = 12.0


@dataclass(frozen=True)
class Draw:
    """The dice of one scene."""

    rng: np.random.Generator
    split: Split

    def uniform(self, low: float, high: float) -> float:
        """A number of the range."""
        return float(self.rng.uniform(low, high))

    def chance(self, probability: float) -> bool:
        """True with the probability."""
        return bool(self.rng.uniform() < probability)

    def outside(self, trained: tuple[float, float], shelf: tuple[float, float]) -> float:
        """A number of the training range, or of the one kept for the on-shelf split."""
        return self.uniform(*(shelf if self.split is Split.ON_SHELF else trained))


def build_scene(family: Family, seed: int, split: Split) -> Scene:
    """The scene of this family, seed and split."""
    entropy = [list(Family).index(family), list(Split).index(split), seed]
    draw = Draw(np.random.default_rng(entropy), split)
    scene = _BUILDERS[family](draw)
    gap = None
    if scene.junction_s_m is not None:
        gap = (scene.junction_s_m, scene.junction_s_m + JUNCTION_WIDTH_M)
    if scene.ramp_s_m is not None:
        gap = scene.ramp_s_m
    scene.buildings, scene.trees = draw_surroundings(draw.rng, scene.layout, split, gap)
    return scene


def _gentle_road(draw: Draw) -> list[Bend]:
    """A straight road, or one so slightly curved that speed need not change."""
    curvature = draw.uniform(-1 / 180.0, 1 / 180.0) if draw.chance(0.4) else 0.0
    return [Bend(BEFORE_M + draw.uniform(0.0, 40.0)), Bend(400.0, curvature)]


def _layout(
    draw: Draw, bends: list[Bend], *, left: int | None = None, right: int = 0, shoulder_m: float = 0.5
) -> RoadLayout:
    """Lanes about the ego lane: one more to the left by chance, opposing traffic by chance."""
    extra = int(draw.chance(0.4)) if left is None else left
    opposing = 2 if draw.split is Split.ON_SHELF else int(draw.chance(0.7))
    return RoadLayout(GuideLine(bends, BEFORE_M), left=extra, right=right, opposing=opposing, shoulder_m=shoulder_m)


def _scene(draw: Draw, layout: RoadLayout, speed_mps: tuple[float, float] = (5.0, 10.5)) -> Scene:
    """Road, light and ego, with oncoming cars and cars in the other lanes as background."""
    road = build_traffic(layout, np.random.RandomState(int(draw.rng.integers(2**31))))
    start = EgoStart(draw.uniform(-0.3, 0.3), draw.uniform(-0.03, 0.03), draw.uniform(*speed_mps))
    scene = Scene(layout, road, draw_appearance(draw.rng, draw.split), start)
    for lane in range(layout.opposing):
        s = draw.uniform(20.0, 60.0)
        while s < layout.line.last_s_m - 30.0:
            _car(draw, scene, TrafficPlace(s, lane, against=True), draw.uniform(7.0, 11.0))
            s += draw.outside((25.0, 90.0), (14.0, 30.0))
    return scene


def _car(
    draw: Draw, scene: Scene, place: TrafficPlace, speed_mps: float, kind: VehicleKind | None = None
) -> TrafficVehicle:
    return add_vehicle(scene.road, place, speed_mps, kind or draw_kind(draw.rng), pick(draw.rng, VEHICLE_COLORS))


def _neighbours(draw: Draw, scene: Scene) -> None:
    """Cars ahead in the left lane of the ego's direction, which keep to it."""
    for number in range(scene.layout.right + 1, scene.layout.right + 1 + scene.layout.left):
        if draw.chance(0.6):
            _car(draw, scene, TrafficPlace(draw.uniform(12.0, 50.0), number), draw.uniform(8.5, 11.0))


def _bystanders(draw: Draw, scene: Scene, probability: float) -> None:
    """People on the verge who do not cross."""
    while draw.chance(probability):
        edge = scene.layout.left_edge_m if draw.chance(0.5) else scene.layout.right_edge_m
        d = edge + np.sign(edge) * draw.uniform(1.0, 2.5)
        scene.pedestrians.append(_person(draw, draw.uniform(15.0, 110.0), float(d), 0.0))
        probability *= 0.7


def _person(draw: Draw, s_m: float, d_m: float, pace_mps: float) -> Pedestrian:
    return Pedestrian(s_m, d_m, pace_mps, draw.uniform(1.6, 1.9), pick(draw.rng, CLOTHES))


def _free_road(draw: Draw) -> Scene:
    slow = draw.chance(0.5)
    scene = _scene(draw, _layout(draw, _gentle_road(draw)), (0.0, 6.0) if slow else (8.0, 11.5))
    _neighbours(draw, scene)
    _bystanders(draw, scene, 0.6)
    scene.goal_s_m = draw.uniform(90.0, 120.0)
    return scene


def _curve(draw: Draw) -> Scene:
    radius_m = draw.outside((18.0, 40.0), (14.0, 17.0))
    turn_rad = draw.uniform(0.6, 1.5)
    curvature = (1.0 if draw.chance(0.5) else -1.0) / radius_m
    entry_m = draw.uniform(35.0, 60.0)
    bends = [Bend(BEFORE_M + entry_m), Bend(radius_m * turn_rad, curvature), Bend(160.0)]
    scene = _scene(draw, _layout(draw, bends), (7.0, 10.5))
    _bystanders(draw, scene, 0.3)
    scene.goal_s_m = entry_m + radius_m * turn_rad + 35.0
    return scene


def _lead(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, _gentle_road(draw)), (7.0, 10.0))
    lead = _car(
        draw, scene, TrafficPlace(draw.outside((20.0, 38.0), (14.0, 18.0)), scene.layout.right), scene.start.speed_mps
    )
    lead.target_speed = draw.uniform(7.5, 9.5)
    _neighbours(draw, scene)
    slow_at_s, hold_s = draw.uniform(1.0, 4.0), draw.uniform(3.0, 6.0)
    slow_to_mps = 0.0 if draw.chance(0.65) else draw.uniform(3.0, 5.0)
    lead.script_brake_mps2 = draw.outside((1.4, 2.4), (2.6, 3.2))
    away_s = slow_at_s + lead.target_speed / lead.script_brake_mps2 + hold_s

    def brake_then_leave(now: StoryTime) -> None:
        if now.time_s >= away_s:
            lead.target_speed = CRUISE_MPS + 1.0
        elif now.time_s >= slow_at_s:
            lead.target_speed = slow_to_mps

    scene.scripts.append(brake_then_leave)
    scene.goal_s_m = draw.uniform(80.0, 100.0)
    return scene


def _cut_in(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, _gentle_road(draw), left=1), (8.0, 10.0))
    speed = scene.start.speed_mps - draw.uniform(0.5, 2.5)
    lane = scene.layout.right + 1
    cutter = _car(draw, scene, TrafficPlace(draw.outside((13.0, 22.0), (10.0, 12.5)), lane), speed)
    _car(draw, scene, TrafficPlace(cutter.position[0] + draw.uniform(14.0, 25.0), lane), speed - 0.5)
    at_s = draw.uniform(1.0, 4.0)
    after_mps = draw.uniform(6.0, 7.5)

    def change_lane(now: StoryTime) -> None:
        # Traffic that would cut in behind or beside the ego waits for a gap in front of it.
        ahead_m = cutter.position[0] - cutter.LENGTH / 2.0 - now.front_s_m
        if now.time_s >= at_s - 1.0 and cutter.target_lane_index[2] == lane:
            cutter.indicator = -1
            cutter.target_speed = max(speed, now.speed_mps + 0.8) if ahead_m < 9.0 else speed
        if now.time_s >= at_s and ahead_m > 7.0:
            cutter.target_lane_index = (*cutter.target_lane_index[:2], lane - 1)
        if abs(cutter.position[1]) < 0.4:
            cutter.indicator = 0
            cutter.target_speed = after_mps if now.time_s < at_s + 9.0 else CRUISE_MPS + 1.0

    scene.scripts.append(change_lane)
    scene.goal_s_m = draw.uniform(110.0, 130.0)
    return scene


def _stopped_vehicle(draw: Draw) -> Scene:
    half_out = draw.chance(0.4)
    layout = _layout(draw, _gentle_road(draw), left=0 if half_out else 1, shoulder_m=1.0 if half_out else 0.5)
    layout = replace(layout, opposing=1 if half_out else layout.opposing)
    scene = _scene(draw, layout, (7.0, 10.5))
    if half_out:
        # The opposing lane stays empty where the ego has to lean into it.
        scene.road.vehicles.clear()
    offset = draw.uniform(-1.9, -1.3) if half_out else draw.uniform(-0.3, 0.3)
    place = TrafficPlace(draw.outside((48.0, 70.0), (38.0, 45.0)), scene.layout.right, offset_m=offset)
    stopped = _car(draw, scene, place, 0.0, draw_kind(draw.rng))
    stopped.parked, stopped.hazard = True, draw.chance(0.8)
    _bystanders(draw, scene, 0.3)
    scene.goal_s_m = place.s_m + 55.0
    return scene


def _pedestrian(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, _gentle_road(draw)), (6.0, 10.5))
    s = draw.uniform(45.0, 75.0)
    scene.crosswalk_s_m = s if draw.chance(0.8) else None
    from_left = draw.chance(0.4)
    edge = scene.layout.left_edge_m + 0.6 if from_left else scene.layout.right_edge_m - 0.6
    pace = draw.outside((1.1, 1.7), (0.8, 1.0)) * (-1.0 if from_left else 1.0)
    walker = _person(draw, s, edge, pace)
    scene.pedestrians.append(walker)
    _bystanders(draw, scene, 0.4)
    crosses = draw.chance(0.85)
    # Walking starts when the ego, braking comfortably, can still stop for it.
    at_gap_m = draw.uniform(30.0, 42.0)

    def cross(now: StoryTime) -> None:
        walker.walking |= crosses and s - now.front_s_m < at_gap_m

    scene.scripts.append(cross)
    scene.goal_s_m = s + 40.0
    return scene


def _traffic_light(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, [Bend(500.0)]), (6.0, 10.5))
    stop_s = draw.uniform(45.0, 75.0)
    scene.junction_s_m = stop_s + 5.0
    green_all_along = draw.chance(0.35)
    arrival_s = stop_s / 8.0
    green_from = 0.0 if green_all_along else arrival_s + draw.outside((0.5, 5.0), (6.0, 9.0))
    light = TrafficLight(stop_s, green_from)
    scene.lights.append(light)
    if green_all_along and draw.chance(0.4):
        gap_m = draw.uniform(48.0, 60.0)

        def turn_red(now: StoryTime) -> None:
            # Far enough ahead to stop comfortably; green again after a while.
            if stop_s - now.front_s_m < gap_m and light.red_from_s == float("inf") and now.front_s_m < stop_s - 40.0:
                light.red_from_s = now.time_s
            if now.time_s > light.red_from_s + 9.0:
                light.green_from_s, light.red_from_s = now.time_s, 1e9

        scene.scripts.append(turn_red)
    _bystanders(draw, scene, 0.4)
    scene.goal_s_m = stop_s + 40.0
    return scene


def _stop_sign(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, [Bend(500.0)], left=0), (6.0, 10.5))
    stop_s = draw.uniform(42.0, 70.0)
    scene.junction_s_m = stop_s + 3.5
    scene.stop_signs.append(StopSign(stop_s))
    _bystanders(draw, scene, 0.3)
    scene.goal_s_m = stop_s + 35.0
    return scene


def _cones(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, [Bend(500.0)], left=0, shoulder_m=1.0), (7.0, 10.0))
    scene.road.vehicles.clear()
    first = draw.uniform(40.0, 55.0)
    taper_m, straight_m, inner_d = 14.0, draw.uniform(15.0, 25.0), draw.uniform(-1.0, -0.6)
    for i in range(5):
        scene.cones.append(Cone(first + taper_m * i / 4.0, -1.9 + (inner_d + 1.9) * i / 4.0))
    for i in range(1, int(straight_m / 4.0) + 1):
        scene.cones.append(Cone(first + taper_m + 4.0 * i, inner_d))
    scene.goal_s_m = first + taper_m + straight_m + 35.0
    return scene


def _merge(draw: Draw) -> Scene:
    scene = _scene(draw, _layout(draw, [Bend(500.0)], right=1), (8.0, 10.0))
    joins = draw.uniform(60.0, 75.0)
    scene.ramp_s_m = (10.0, joins + 15.0)
    speed = scene.start.speed_mps - draw.uniform(0.0, 1.5)
    merger = _car(draw, scene, TrafficPlace(draw.uniform(12.0, 20.0), 0), speed)

    def merge(now: StoryTime) -> None:
        ahead_m = merger.position[0] - SIZES_M[merger.kind][0] / 2.0 - now.front_s_m
        merger.indicator = 1 if abs(merger.position[1]) > 0.4 else 0
        merger.target_speed = max(speed, now.speed_mps + 1.0) if ahead_m < 7.0 else speed
        if merger.position[0] > joins - 28.0 and ahead_m > 6.0:
            merger.target_lane_index = (*merger.target_lane_index[:2], 1)

    scene.scripts.append(merge)
    scene.goal_s_m = joins + 50.0
    return scene


_BUILDERS: dict[Family, Callable[[Draw], Scene]] = {
    Family.FREE_ROAD: _free_road,
    Family.CURVE: _curve,
    Family.LEAD: _lead,
    Family.CUT_IN: _cut_in,
    Family.STOPPED_VEHICLE: _stopped_vehicle,
    Family.PEDESTRIAN: _pedestrian,
    Family.TRAFFIC_LIGHT: _traffic_light,
    Family.STOP_SIGN: _stop_sign,
    Family.CONES: _cones,
    Family.MERGE: _merge,
}
