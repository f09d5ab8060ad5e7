"""What patches show, worked out by hand for a camera 1.6 m ahead of and 1.5 m above the origin, and scene facts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from flatrope_planner.simulation.camera import FRONT_TELE, FRONT_WIDE
from flatrope_planner.simulation.sights import Sight, SightMap, find_sights
from flatrope_planner.simulation.situation import SCALES, Fact, situation
from flatrope_planner.simulation.view import (
    Appearance,
    BuildingView,
    LightColor,
    PedestrianView,
    SceneView,
    TrafficLightView,
    VehicleKind,
    VehicleView,
)
from flatrope_planner.simulation.world import Family, World
from flatrope_planner.training.samples import PATCHES
from flatrope_planner.training.teaching import sights_by_token

LANE = (np.array([[2.0, 1.75], [60.0, 1.75]]), np.array([[2.0, -1.75], [60.0, -1.75]]))
# Its rear stands 20 m in front of the lens.
CAR = VehicleView((21.6 + 2.3, 0.0), 0.0, 4.6, 1.9, 1.5, VehicleKind.CAR, (0, 0, 0), braking=True, indicator=1)


def look(camera: object = FRONT_WIDE, **things: object) -> SightMap:
    view = SceneView(Appearance(), **things)  # type: ignore[arg-type]
    return find_sights(view, camera, (0.0, 0.0, 0.0), LANE, PATCHES)  # type: ignore[arg-type]


def places(found: SightMap, sight: Sight) -> set[tuple[int, int]]:
    return set(zip(*(index.tolist() for index in np.nonzero(found.kinds >> sight & 1)), strict=True))


def test_a_car_fills_the_patches_it_covers() -> None:
    # Focal length 448 px: 0.95 m either side are 21 px, the ground lies 33.6 px below the horizon in the middle.
    found = look(vehicles=(CAR,))
    assert places(found, Sight.VEHICLE) == {(5, 13), (5, 14), (6, 13), (6, 14)}
    assert places(found, Sight.BRAKE_LAMPS) == places(found, Sight.LEFT_INDICATOR) == places(found, Sight.VEHICLE)
    assert not places(found, Sight.RIGHT_INDICATOR)
    assert found.depth_m[6, 13] == pytest.approx(20.0)
    assert np.count_nonzero(found.depth_m) == 4
    # The tele camera's focal length is 3.73 times as long.
    assert len(places(look(FRONT_TELE, vehicles=(CAR,)), Sight.VEHICLE)) > 16


def test_lamps_at_the_rear_are_not_seen_from_the_front() -> None:
    found = look(vehicles=(replace(CAR, yaw_rad=np.pi),))
    assert places(found, Sight.ONCOMING) == places(found, Sight.VEHICLE)
    assert not places(found, Sight.BRAKE_LAMPS)


def test_near_things_hide_far_ones_and_far_ones_do_not_count() -> None:
    wall = BuildingView((15.0, 0.0), 0.0, 2.0, 30.0, 8.0, (0, 0, 0))
    assert not places(look(vehicles=(CAR,), buildings=(wall,)), Sight.VEHICLE)
    assert not places(look(vehicles=(replace(CAR, center=(95.0, 0.0)),)), Sight.VEHICLE)


def test_a_light_is_where_its_head_is_and_a_small_person_is_not_lost() -> None:
    light = TrafficLightView((41.6, -4.0), 0.0, 2.5, LightColor.RED)
    # 40 m: between 1.6 and 3.4 m above the ground, 1.1 to 21 px above the horizon; 41 to 49 px right of the middle.
    assert places(look(lights=(light,)), Sight.RED_LIGHT) == {(4, 15)}
    assert places(look(lights=(replace(light, color=LightColor.GREEN),)), Sight.GREEN_LIGHT) == {(4, 15)}
    stands, walks = (PedestrianView((61.6, 3.0), 0.0, 1.7, (0, 0, 0), phase) for phase in (0.0, 0.4))
    assert places(look(pedestrians=(stands,)), Sight.PERSON)
    assert not places(look(pedestrians=(stands,)), Sight.WALKING)
    assert places(look(pedestrians=(walks,)), Sight.WALKING) == places(look(pedestrians=(stands,)), Sight.PERSON)


def test_the_lane_narrows_toward_the_horizon() -> None:
    lane = places(look(), Sight.LANE)
    widths = [sum(row == at for row, _ in lane) for at in range(10)]
    assert widths[:5] == [0] * 5
    assert widths[5:] == sorted(widths[5:])
    # At the lower edge (160 px below the horizon) the lane is 4.2 m away and 373 px wide: 12 or 13 patches.
    assert 11 <= widths[9] <= 13


def test_tokens_hold_the_four_patches_they_are_merged_from() -> None:
    kinds = torch.arange(2 * 4 * 6).reshape(2, 4, 6) % 7
    bits, depth = sights_by_token(kinds, kinds.float())
    assert bits.shape == (2, 6, 4, len(Sight))
    # Token (1, 2) of the second picture: patches of rows 2 and 3, columns 4 and 5.
    assert depth[1, 5].tolist() == kinds[1, 2:, 4:].flatten().tolist()
    assert [sum(int(b) << i for i, b in enumerate(patch)) for patch in bits[1, 5]] == depth[1, 5].tolist()


def test_a_situation_tells_what_the_scene_is_about() -> None:
    world = World(Family.LEAD, 3)
    told = situation(world)
    lead = min((v for v in world.scene.vehicles if abs(v.position[1]) < 1.0), key=lambda v: float(v.position[0]))
    gap_m = float(lead.position[0]) - lead.LENGTH / 2.0 - world.front_s_m
    assert told.present[Fact.LEADER_GAP]
    assert told.value[Fact.LEADER_GAP] * SCALES[Fact.LEADER_GAP] == pytest.approx(gap_m)
    assert told.value[Fact.LEADER_SPEED] * SCALES[Fact.LEADER_SPEED] == pytest.approx(float(lead.speed))
    assert told.value[Fact.LANE_OFFSET] == pytest.approx(world.scene.start.d_m)
    assert told.value[Fact.HEADING] * SCALES[Fact.HEADING] == pytest.approx(world.scene.start.yaw_rad)
    assert not told.present[[Fact.RED_LIGHT_GAP, Fact.STOP_SIGN_GAP, Fact.GREEN_LIGHT_GAP]].any()

    world = World(Family.STOP_SIGN, 3)
    told = situation(world)
    gap_m = world.scene.stop_signs[0].stop_s_m - world.front_s_m
    assert told.value[Fact.STOP_SIGN_GAP] * SCALES[Fact.STOP_SIGN_GAP] == pytest.approx(gap_m)
    assert (told.value[~told.present] == 0.0).all()
