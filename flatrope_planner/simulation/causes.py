"""Why the driver does what it does, as data: the thing that binds, and what a passenger would say about it."""

from dataclasses import dataclass
from enum import Enum

from flatrope_planner.simulation.view import VehicleKind


class CauseKind(Enum):
    """What binds."""

    FREE = "free road"
    CURVE = "curve"
    LEAD = "lead vehicle"
    LEAD_BRAKES = "lead vehicle braking"
    LEAD_STANDS = "lead vehicle standing"
    CUT_IN = "vehicle cutting in"
    MERGE = "merging vehicle"
    PEDESTRIAN = "pedestrian"
    PEDESTRIAN_CLEAR = "pedestrian gone"
    RED_LIGHT = "red light"
    GREEN_LIGHT = "green light"
    STOP_SIGN = "stop sign"
    STOPPED_AT_SIGN = "stopped at the sign"
    STOPPED_VEHICLE = "stopped vehicle"
    CONES = "cones"
    PASSED = "obstacle passed"


_STANDING = {CauseKind.LEAD_STANDS, CauseKind.PEDESTRIAN, CauseKind.RED_LIGHT, CauseKind.STOP_SIGN}


@dataclass(frozen=True)
class Cause:
    """A kind, with what a passenger would add: which side, what sort of vehicle."""

    kind: CauseKind
    left: bool = False
    vehicle: VehicleKind = VehicleKind.CAR

    @property
    def stands(self) -> bool:
        """Whether it makes the ego stop, not merely slow down."""
        return self.kind in _STANDING
