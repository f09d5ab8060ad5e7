"""The nouns of planning: what goes in, what comes out. No ROS, no torch.

Frames: right-handed, x forward, y left, z up, metres and radians. "Ego frame" has its origin on the ground under the
rear axle at t0. Arrays are NumPy; shapes are written above each field.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.dimensions import (
    ACTION_SIZE,
    FUTURE_PERIOD_S,
    FUTURE_POINTS,
    HISTORY_POSES,
    NANOSECONDS_PER_SECOND,
)
from flatrope_planner.errors import InputError

Floats = NDArray[np.float64]
Image = NDArray[np.uint8]


class Decision(Enum):
    """What a plan does, coarsely: the word a rationale opens with stands for one of these."""

    KEEP = "keep"
    ACCELERATE = "accelerate"
    SLOW = "slow"
    STOP = "stop"
    LEFT = "left"
    RIGHT = "right"


def require_array(name: str, value: NDArray[np.generic], shape: tuple[int | None, ...], dtype: type) -> None:
    """Check dtype and shape (None: any size) of one field.

    Raises:
        InputError: naming the field, what came and what was expected.
    """
    fits = value.ndim == len(shape) and all(want in (None, got) for got, want in zip(value.shape, shape, strict=True))
    if value.dtype != dtype or not fits:
        wanted = "x".join("*" if n is None else str(n) for n in shape)
        msg = f"{name}: got {value.dtype} of shape {value.shape}, expected {np.dtype(dtype)} of shape {wanted}"
        raise InputError(msg)


@dataclass(frozen=True)
class CameraFrame:
    """One picture."""

    # Time of exposure (ns).
    stamp_ns: int
    # uint8 (H, W, 3), RGB.
    image: Image

    def __post_init__(self) -> None:
        require_array("camera image", self.image, (None, None, 3), np.uint8)


@dataclass(frozen=True)
class EgoHistory:
    """Where the ego has been, oldest first, ending at t0, every 0.1 s."""

    # float64 (16, 3), ego frame, m; the last row is the origin.
    position_m: Floats
    # float64 (16, 3, 3), rotation body -> ego frame; the last one is the identity.
    rotation: Floats

    def __post_init__(self) -> None:
        require_array("history positions", self.position_m, (HISTORY_POSES, 3), np.float64)
        require_array("history rotations", self.rotation, (HISTORY_POSES, 3, 3), np.float64)


@dataclass(frozen=True)
class Observation:
    """Everything the planner knows at t0."""

    # Time the plan is made for (ns).
    t0_ns: int
    # Camera name -> frames, oldest first; cameras in the order the target wants them.
    frames: dict[str, tuple[CameraFrame, ...]]
    ego_history: EgoHistory
    # Route hint such as "turn left", or None.
    command: str | None = None


@dataclass(frozen=True)
class ObservationSpec:
    """What a target wants to see."""

    # Camera names in the target's order.
    cameras: tuple[str, ...]
    # Frames of each camera, `frame_period_s` apart, the last one at t0.
    frames_per_camera: int
    frame_period_s: float
    # Whether a route hint is told to it at all.
    reads_commands: bool = True

    def check(self, observation: Observation) -> None:
        """Compare an observation with it.

        Raises:
            InputError: when it has other cameras, not this many pictures of each, or not the oldest first.
        """
        taken = {name: len(pictures) for name, pictures in observation.frames.items()}
        wanted = dict.fromkeys(self.cameras, self.frames_per_camera)
        if taken != wanted:
            msg = f"observation: pictures {taken}, expected {wanted}"
            raise InputError(msg)
        for camera, frames in observation.frames.items():
            stamps = [frame.stamp_ns for frame in frames]
            if stamps != sorted(stamps):
                msg = f"observation: pictures of {camera} at {stamps} ns, expected the oldest first"
                raise InputError(msg)


@dataclass(frozen=True)
class Trajectory:
    """A planned motion in the ego frame; row i holds at t0 + (i + 1) * 0.1 s."""

    # float64 (64, 3), m.
    position_m: Floats
    # float64 (64,), rad, counter-clockwise from ego forward.
    yaw_rad: Floats
    # float64 (64,), m/s along the body.
    speed_mps: Floats
    # float64 (64, 2), the actions (m/s^2, 1/m) that lead to each row.
    action: Floats

    def __post_init__(self) -> None:
        require_array("trajectory positions", self.position_m, (FUTURE_POINTS, 3), np.float64)
        require_array("trajectory yaw", self.yaw_rad, (FUTURE_POINTS,), np.float64)
        require_array("trajectory speed", self.speed_mps, (FUTURE_POINTS,), np.float64)
        require_array("trajectory actions", self.action, (FUTURE_POINTS, ACTION_SIZE), np.float64)

    @property
    def time_from_start_s(self) -> Floats:
        """float64 (64,): seconds after t0 of each row."""
        return np.arange(1.0, FUTURE_POINTS + 1) * FUTURE_PERIOD_S


@dataclass(frozen=True)
class DriveCommand:
    """Wanted speed (m/s) and yaw rate (rad/s, left positive), as in geometry_msgs/Twist."""

    speed_mps: float
    yaw_rate_radps: float


@dataclass(frozen=True)
class RationaleToken:
    """One token of a rationale and where it came from."""

    text: str
    # "target" when the target itself produced it, else the name of the drafter whose proposal was accepted.
    source: str
    # Verification round that committed it, 0 for the prefill.
    round: int
    # Logit of the chosen token minus that of the runner-up, in the target.
    margin: float


@dataclass(frozen=True)
class Rationale:
    """The written reason of one tick."""

    text: str
    tokens: tuple[RationaleToken, ...] = ()
    # False when the token budget ended it instead of the target's own end token.
    complete: bool = True


@dataclass(frozen=True)
class SpeculationStats:
    """What speculation did for one rationale (words: docs/architecture.md)."""

    # Verification passes behind the prefill.
    rounds: int
    # Tokens offered to and accepted by the target over all rounds, bonus tokens not counted.
    proposed: int
    accepted: int
    # Committed tokens after the first one, bonus tokens counted, end marks that a spent budget forces not.
    committed: int
    # Name of the drafter, "" for none.
    drafter: str = ""
    # Tokens offered to and accepted by the target in the prefill.
    prefill_proposed: int = 0
    prefill_accepted: int = 0
    # Element n: rounds in which exactly n proposals were accepted.
    acceptance_histogram: tuple[int, ...] = ()

    @property
    def mean_acceptance_length(self) -> float:
        """Committed tokens per round (tau); 0 when there was no round."""
        return self.committed / self.rounds if self.rounds else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted of the proposed tokens; 0 when nothing was proposed."""
        return self.accepted / self.proposed if self.proposed else 0.0

    @property
    def accepted_at(self) -> tuple[int, ...]:
        """Element i: rounds in which the proposal at position i was accepted."""
        return tuple(sum(self.acceptance_histogram[i + 1 :]) for i in range(len(self.acceptance_histogram) - 1))


@dataclass(frozen=True)
class SpeculationHealth:
    """How speculation does in a planner that runs."""

    # Name of the drafter, "" for none.
    drafter: str = ""
    # canonical, tolerant or audit (docs/architecture.md).
    exactness: str = "canonical"
    speculating: bool = False
    # What shows that a text was not the target's own, "" for nothing.
    broken_promise: str = ""
    # Why speculation helps less than it should, "" for nothing.
    problem: str = ""
    # Rationales written twice, and how many of them differed.
    audited: int = 0
    divergences: int = 0


@dataclass(frozen=True)
class Plan:
    """The product of one tick."""

    t0_ns: int
    trajectory: Trajectory
    rationale: Rationale
    speculation: SpeculationStats
    # Stage -> milliseconds of wall time: "vision", "prefill", "reasoning", "action", "total".
    stage_ms: dict[str, float] = field(default_factory=dict)


def seconds_to_ns(seconds: float) -> int:
    """Nearest whole nanosecond."""
    return round(seconds * NANOSECONDS_PER_SECOND)


def ns_to_seconds(nanoseconds: int) -> float:
    """Seconds as float; exact enough for durations, not for comparing absolute stamps."""
    return nanoseconds / NANOSECONDS_PER_SECOND
