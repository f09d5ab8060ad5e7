"""What a camera could see of the world at one moment: the border between scenes and rendering.

World frame: x east, y north, z up, metres; yaw counter-clockwise. Ground is z = 0. Everything is plain data, so that a
view can be stored, compared and drawn without the simulation that made it.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Polyline = NDArray[np.float64]  # (N, 2) world points, m


class Paint(Enum):
    """How a line on the road is painted."""

    SOLID = "solid"
    DASHED = "dashed"


class LightColor(Enum):
    """State of a traffic light."""

    RED = "red"
    GREEN = "green"


class VehicleKind(Enum):
    """Shape of a vehicle; its size stands in the vehicle."""

    CAR = "car"
    VAN = "van"
    TRUCK = "truck"


@dataclass(frozen=True)
class RoadSurface:
    """A strip of asphalt between two borders of equal length (left and right seen along the road)."""

    left: Polyline
    right: Polyline


@dataclass(frozen=True)
class RoadMarking:
    """A painted line, `width_m` wide. Stop lines are short, wide and solid."""

    points: Polyline
    paint: Paint
    width_m: float = 0.15
    # BGR.
    color: tuple[int, int, int] = (235, 235, 235)


@dataclass(frozen=True)
class Crosswalk:
    """Zebra stripes: a rectangle given by its centre, yaw of the road, extent along and across the road."""

    center: tuple[float, float]
    yaw_rad: float
    length_m: float
    width_m: float


@dataclass(frozen=True)
class VehicleView:
    """A vehicle as a box: centre on the ground, extent along its yaw, across it, and up."""

    center: tuple[float, float]
    yaw_rad: float
    length_m: float
    width_m: float
    height_m: float
    kind: VehicleKind
    # BGR of the body.
    color: tuple[int, int, int]
    braking: bool = False
    # -1 right blinker, 0 none, 1 left blinker; hazard lights: `hazard`.
    indicator: int = 0
    hazard: bool = False


@dataclass(frozen=True)
class PedestrianView:
    """A standing or walking person; `phase` in [0, 1) is the step cycle."""

    center: tuple[float, float]
    yaw_rad: float
    height_m: float
    # BGR of the clothing.
    color: tuple[int, int, int]
    phase: float = 0.0


@dataclass(frozen=True)
class TrafficLightView:
    """A signal head on a post at the roadside with an arm over it, facing against `yaw_rad` (the road's direction)."""

    center: tuple[float, float]
    yaw_rad: float
    # Height of the middle of the head above the ground (m); the head is 0.7 x 1.8 m, its lenses 0.5 m.
    height_m: float
    color: LightColor


@dataclass(frozen=True)
class StopSignView:
    """An octagonal sign on a post, facing against `yaw_rad`."""

    center: tuple[float, float]
    yaw_rad: float
    # Height of the middle of the octagon (m), and its width across flats (m).
    height_m: float = 2.2
    width_m: float = 0.9


@dataclass(frozen=True)
class ConeView:
    """A traffic cone."""

    center: tuple[float, float]
    height_m: float = 0.9


@dataclass(frozen=True)
class BuildingView:
    """A box beside the road; a background that tells nothing."""

    center: tuple[float, float]
    yaw_rad: float
    length_m: float
    width_m: float
    height_m: float
    color: tuple[int, int, int]


@dataclass(frozen=True)
class TreeView:
    """A trunk and a crown."""

    center: tuple[float, float]
    height_m: float
    # BGR of the crown.
    color: tuple[int, int, int]


@dataclass(frozen=True)
class Appearance:
    """Light and colours of a scene; varied between scenes, constant within one."""

    # BGR each.
    sky_top: tuple[int, int, int] = (230, 180, 120)
    sky_horizon: tuple[int, int, int] = (245, 225, 200)
    ground: tuple[int, int, int] = (80, 130, 95)
    asphalt: tuple[int, int, int] = (95, 92, 90)
    # 1 is noon; below, everything darkens.
    brightness: float = 1.0
    # Distance (m) at which a thing has faded to the horizon colour by 63 %; infinite for none.
    haze_m: float = float("inf")
    # Standard deviation of the sensor noise, in grey levels.
    noise: float = 2.0


@dataclass(frozen=True)
class SceneView:
    """Everything visible at one moment."""

    appearance: Appearance
    surfaces: tuple[RoadSurface, ...] = ()
    markings: tuple[RoadMarking, ...] = ()
    crosswalks: tuple[Crosswalk, ...] = ()
    vehicles: tuple[VehicleView, ...] = ()
    pedestrians: tuple[PedestrianView, ...] = ()
    lights: tuple[TrafficLightView, ...] = ()
    stop_signs: tuple[StopSignView, ...] = ()
    cones: tuple[ConeView, ...] = ()
    buildings: tuple[BuildingView, ...] = ()
    trees: tuple[TreeView, ...] = ()
    # Seed of the sensor noise: differs from frame to frame, equal for equal frames.
    noise_seed: int = 0
