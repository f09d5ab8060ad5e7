"""One scene: the road, what stands and moves on it, and the script that makes it a story."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from highway_env.road.road import Road

from flatrope_planner.simulation.agents import Cone, Pedestrian, StopSign, TrafficLight, TrafficVehicle
from flatrope_planner.simulation.road import RoadLayout
from flatrope_planner.simulation.view import Appearance, BuildingView, TreeView

# The speed the ego drives at when nothing speaks against it.
CRUISE_MPS = 10.0


class Family(Enum):
    """Kind of scene. The last two are never trained on."""

    FREE_ROAD = "free_road"
    CURVE = "curve"
    LEAD = "lead"
    CUT_IN = "cut_in"
    STOPPED_VEHICLE = "stopped_vehicle"
    PEDESTRIAN = "pedestrian"
    TRAFFIC_LIGHT = "traffic_light"
    STOP_SIGN = "stop_sign"
    CONES = "cones"
    MERGE = "merge"


UNSEEN_FAMILIES = (Family.CONES, Family.MERGE)
TRAINED_FAMILIES = tuple(family for family in Family if family not in UNSEEN_FAMILIES)


class Split(Enum):
    """Where a scene's parameters come from: see docs/architecture.md."""

    TRAIN = "train"
    # Trained families, the ranges of training, seeds of its own.
    VAL = "val"
    # Trained families at appearance, density and road parameters outside the training ranges.
    ON_SHELF = "on_shelf"


@dataclass(frozen=True)
class EgoStart:
    """Where the ego begins, relative to its lane: offset (m), heading error (rad), speed (m/s)."""

    d_m: float = 0.0
    yaw_rad: float = 0.0
    speed_mps: float = CRUISE_MPS


@dataclass(frozen=True)
class StoryTime:
    """What a script may react to: scene time (s) and the ego's front bumper and speed."""

    time_s: float
    front_s_m: float
    speed_mps: float


Script = Callable[[StoryTime], None]


@dataclass
class Scene:
    """A family's scene, ready to run. Frenet coordinates throughout."""

    layout: RoadLayout
    road: Road
    appearance: Appearance
    start: EgoStart = EgoStart()
    goal_s_m: float = 120.0
    # Where the crossing road begins, if there is one (s, m).
    junction_s_m: float | None = None
    crosswalk_s_m: float | None = None
    # On-ramp joining from the right: where it meets the road and where it ends (s, m).
    ramp_s_m: tuple[float, float] | None = None
    pedestrians: list[Pedestrian] = field(default_factory=list)
    lights: list[TrafficLight] = field(default_factory=list)
    stop_signs: list[StopSign] = field(default_factory=list)
    cones: list[Cone] = field(default_factory=list)
    buildings: tuple[BuildingView, ...] = ()
    trees: tuple[TreeView, ...] = ()
    scripts: list[Script] = field(default_factory=list)

    @property
    def vehicles(self) -> list[TrafficVehicle]:
        """All traffic, the ego's proxy left out."""
        return [v for v in self.road.vehicles if isinstance(v, TrafficVehicle)]
