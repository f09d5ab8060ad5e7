"""What a driver has to know of the present moment, as numbers: for teaching a target to read a scene."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.causes import CauseKind
from flatrope_planner.simulation.constraints import find_leaders, find_stop_points
from flatrope_planner.simulation.driver import lateral_target
from flatrope_planner.simulation.passing import find_leans
from flatrope_planner.simulation.view import LightColor
from flatrope_planner.simulation.world import World

BEND_LOOKS_M = (8.0, 16.0, 24.0, 32.0)
SHIFT_LOOK_M = 12.0
GREEN_RANGE_M = 45.0


class Fact(IntEnum):
    """What is told; its number is the place in `Situation`."""

    LANE_OFFSET = 0
    HEADING = 1
    BEND_1 = 2
    BEND_2 = 3
    BEND_3 = 4
    BEND_4 = 5
    SHIFT = 6
    LEADER_GAP = 7
    LEADER_SPEED = 8
    LEADER_ACCELERATION = 9
    RED_LIGHT_GAP = 10
    STOP_SIGN_GAP = 11
    PEDESTRIAN_GAP = 12
    GREEN_LIGHT_GAP = 13
    OBSTACLE_GAP = 14


# What counts as 1: m, rad, 1/m, m/s, m/s^2.
SCALES = np.array([1.0, 0.1, 0.02, 0.02, 0.02, 0.02, 1.5, 15.0, 5.0, 2.0, 15.0, 15.0, 15.0, 15.0, 15.0])
_STOP_FACTS = {
    CauseKind.RED_LIGHT: Fact.RED_LIGHT_GAP,
    CauseKind.STOP_SIGN: Fact.STOP_SIGN_GAP,
    CauseKind.PEDESTRIAN: Fact.PEDESTRIAN_GAP,
}


@dataclass(frozen=True)
class Situation:
    """Facts by number: whether there is such a thing, and its value in units of `SCALES` (0 where there is none)."""

    # bool (facts,) and float64 (facts,).
    present: NDArray[np.bool_]
    value: Floats


def situation(world: World) -> Situation:
    """The facts of a world now."""
    facts: dict[Fact, float] = dict(_road_facts(world))
    front = world.front_s_m
    leans = find_leans(world)
    facts[Fact.SHIFT] = lateral_target(leans, world.s_m + SHIFT_LOOK_M)
    ahead = [lean.full_s_m - world.s_m for lean in leans if lean.hold_s_m > world.s_m]
    if ahead and min(ahead) < 50.0:
        facts[Fact.OBSTACLE_GAP] = min(ahead)
    leaders = find_leaders(world, leans)
    if leaders:
        leader = min(leaders, key=lambda leader: leader.rear_s_m)
        facts[Fact.LEADER_GAP] = leader.rear_s_m - front
        facts[Fact.LEADER_SPEED], facts[Fact.LEADER_ACCELERATION] = leader.speed_mps, leader.accel_mps2
    for stop in sorted(find_stop_points(world), key=lambda stop: -stop.s_m):
        facts[_STOP_FACTS[stop.cause.kind]] = stop.s_m - front
    for light in world.scene.lights:
        gap_m = light.stop_s_m - front
        if light.color_at(world.time_s) is LightColor.GREEN and -4.0 < gap_m < GREEN_RANGE_M:
            facts[Fact.GREEN_LIGHT_GAP] = gap_m
    present, value = np.zeros(len(Fact), dtype=np.bool_), np.zeros(len(Fact))
    for fact, number in facts.items():
        present[fact], value[fact] = True, number / SCALES[fact]
    return Situation(present, value)


def _road_facts(world: World) -> dict[Fact, float]:
    line = world.scene.layout.line
    _, _, yaw = line.at(world.s_m)
    bends = [line.curvature_at(world.s_m + look_m) for look_m in BEND_LOOKS_M]
    places = (Fact.BEND_1, Fact.BEND_2, Fact.BEND_3, Fact.BEND_4)
    heading = (world.ego.yaw_rad - yaw + np.pi) % (2.0 * np.pi) - np.pi
    return {Fact.LANE_OFFSET: world.d_m, Fact.HEADING: float(heading), **dict(zip(places, bends, strict=True))}
