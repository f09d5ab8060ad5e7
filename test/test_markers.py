"""Markers show the scene as it is, and the report draws them from above."""

from dataclasses import replace

import numpy as np
import pytest
from visualization_msgs.msg import Marker

from flatrope_planner.conversion.markers import object_markers, road_markers
from flatrope_planner.evaluation.report.shapes import Shape, shapes_of
from flatrope_planner.nodes.scenery import camera_mount
from flatrope_planner.planning.pose import rotation_matrix
from flatrope_planner.simulation.camera import FRONT_WIDE
from flatrope_planner.simulation.view import (
    Appearance,
    ConeView,
    LightColor,
    Paint,
    RoadMarking,
    RoadSurface,
    SceneView,
    TrafficLightView,
    VehicleKind,
    VehicleView,
)

LEFT = np.array([[0.0, 2.0], [10.0, 2.0], [20.0, 2.0]])
VIEW = SceneView(
    appearance=Appearance(asphalt=(0, 51, 255)),
    surfaces=(RoadSurface(LEFT, LEFT * [1.0, -1.0]),),
    markings=(RoadMarking(LEFT, Paint.SOLID), RoadMarking(LEFT, Paint.DASHED)),
    vehicles=(VehicleView((5.0, 1.0), np.pi / 2.0, 4.0, 2.0, 1.5, VehicleKind.CAR, (0, 0, 255)),),
    lights=(TrafficLightView((18.0, -3.0), 0.0, 2.9, LightColor.GREEN),),
    cones=(ConeView((7.0, -1.0)),),
)


def shapes(markers: list[Marker]) -> list[Shape]:
    return [shape for marker in markers for shape in shapes_of(marker)]


def test_every_array_begins_by_clearing_the_one_before() -> None:
    for array in (road_markers(VIEW, 5, "map"), object_markers(VIEW, 5, "map")):
        assert array.markers[0].action == Marker.DELETEALL
        assert {marker.header.frame_id for marker in array.markers} == {"map"}
        assert len({marker.id for marker in array.markers[1:]}) == len(array.markers) - 1


def test_the_road_is_its_surface_and_its_paint() -> None:
    surface, solid, dashed = shapes(road_markers(VIEW, 5, "map").markers)
    assert (surface.kind, surface.color) == ("mesh", "rgba(255,51,0,1.00)")
    # Area of the triangles: 20 m x 4 m.
    a, b, c = (surface.points_m[i::3] for i in range(3))
    cross = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert np.abs(cross).sum() / 2.0 == pytest.approx(80.0)
    assert solid.points_m.tolist() == [[0.0, 2.0], [10.0, 2.0], [10.0, 2.0], [20.0, 2.0]]
    assert dashed.points_m[:, 0].tolist() == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]


def test_a_vehicle_is_its_footprint() -> None:
    vehicle, light, cone = shapes(object_markers(VIEW, 5, "map").markers)
    # 4 m along y, 2 m along x about (5, 1).
    assert sorted(np.round(vehicle.points_m, 6).tolist()) == [[4.0, -1.0], [4.0, 3.0], [6.0, -1.0], [6.0, 3.0]]
    assert vehicle.color == "rgba(255,0,0,1.00)"
    assert (light.kind, light.name, light.color) == ("disc", "traffic_light", "rgba(40,220,90,1.00)")
    assert cone.points_m[0].tolist() == [7.0, -1.0]


@pytest.mark.parametrize("pitch_deg", [0.0, 10.0])
def test_a_camera_mount_is_the_optical_frame(pitch_deg: float) -> None:
    mount = camera_mount(replace(FRONT_WIDE, pitch_deg=pitch_deg), "ego_vehicle")
    turn = mount.transform.rotation
    right, down, forward = rotation_matrix(np.array([turn.x, turn.y, turn.z, turn.w])).T
    up = np.radians(pitch_deg)
    np.testing.assert_allclose(right, [0.0, -1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(down, [np.sin(up), 0.0, -np.cos(up)], atol=1e-9)
    np.testing.assert_allclose(forward, [np.cos(up), 0.0, np.sin(up)], atol=1e-9)
    assert mount.child_frame_id == "ego_vehicle/front_wide"
