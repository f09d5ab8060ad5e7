"""Parameters of all nodes: each node has its own in one frozen object.

Defaults stand in config/<node>.param.yaml alone, and so does what a parameter means. Here is what is valid, and what
takes effect at once when it is set on a running node. How ROS gets to see them: `declared`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from flatrope_planner.bringup.description import REAL_TIME_FACTOR_LIMITS, SEED_LIMITS, is_topic_part
from flatrope_planner.dimensions import SHORTEST_PLAN_PERIOD_S
from flatrope_planner.errors import InputError
from flatrope_planner.planning.chance import NO_SEED


class Effect(Enum):
    """When a new value takes effect, where that is not when the node as such reads its parameters."""

    AT_ONCE = "takes effect at once"
    AT_START = "read once, at start: start the node anew with it"


AT_ONCE, AT_START = Effect


# What a value of a type is called where another was given.
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value allowed."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class OneOf:
    """The values allowed."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return " | ".join(self.values)


@dataclass(frozen=True)
class PlannerParameters:
    """config/planner.param.yaml."""

    target: str
    precision: Annotated[str, OneOf(("auto", "float32", "bfloat16", "int8"))]
    device: str
    drafter: Annotated[str, OneOf(("hybrid", "network", "retrieval", "prompt_lookup", "none"))]
    draft: str
    draft_nodes: Annotated[int, Range(1, 127)]
    exactness: Annotated[str, OneOf(("canonical", "tolerant", "audit"))]
    audit_every: Annotated[int, Range(0, 100_000)]
    temperature: Annotated[float, Range(0.0, 2.0)]
    top_p: Annotated[float, Range(0.01, 1.0)]
    draw_seed: Annotated[int, Range(NO_SEED, SEED_LIMITS[1])]
    trajectory_samples: Annotated[int, Range(1, 64)]
    guidance: Annotated[float, Range(1.0, 10.0)]
    cameras: tuple[str, ...]
    compressed: bool
    rear_axle_offset_m: Annotated[float, Range(-10.0, 10.0)]
    twist_frame: Annotated[str, OneOf(("auto", "child", "parent"))]
    period_s: Annotated[float, Range(SHORTEST_PLAN_PERIOD_S, 10.0), AT_ONCE]
    input_timeout_s: Annotated[float, Range(0.1, 60.0), AT_ONCE]
    max_input_age_s: Annotated[float, Range(0.0, 60.0), AT_ONCE]
    image_reliability: Annotated[str, OneOf(("best_effort", "reliable"))]
    image_durability: Annotated[str, OneOf(("volatile", "transient_local"))]
    image_depth: Annotated[int, Range(1, 1000)]
    odometry_reliability: Annotated[str, OneOf(("best_effort", "reliable"))]
    odometry_durability: Annotated[str, OneOf(("volatile", "transient_local"))]
    odometry_depth: Annotated[int, Range(1, 1000)]
    command_reliability: Annotated[str, OneOf(("best_effort", "reliable"))]
    command_durability: Annotated[str, OneOf(("volatile", "transient_local"))]
    command_depth: Annotated[int, Range(1, 1000)]
    status_period_s: Annotated[float, Range(0.1, 10.0), AT_ONCE]
    autostart: Annotated[bool, AT_START]
    deadline_s: Annotated[float, Range(0.0, 10.0), AT_ONCE]
    max_plan_age_s: Annotated[float, Range(0.0, 60.0), AT_ONCE]
    refuse_inconsistent: Annotated[bool, AT_ONCE]
    corridor_check: bool
    corridor_horizon_s: Annotated[float, Range(0.1, 6.4)]
    corridor_margin_m: Annotated[float, Range(0.0, 2.0)]
    vehicle_width_m: Annotated[float, Range(0.5, 4.0)]
    vehicle_front_m: Annotated[float, Range(0.5, 15.0)]
    vehicle_rear_m: Annotated[float, Range(0.0, 10.0)]
    points_frame: str
    points_x_m: Annotated[float, Range(-20.0, 20.0)]
    points_y_m: Annotated[float, Range(-20.0, 20.0)]
    points_z_m: Annotated[float, Range(-20.0, 20.0)]
    points_yaw_rad: Annotated[float, Range(-3.15, 3.15)]

    def __post_init__(self) -> None:
        # Said at start, as for any other parameter, and not when the model is loaded.
        if len(set(self.cameras)) < len(self.cameras) or not all(is_topic_part(camera) for camera in self.cameras):
            msg = f"parameter cameras is {list(self.cameras)}, expected names that make topics, each once"
            raise InputError(msg)
        if self.exactness == "audit" and not self.audit_every:
            msg = "parameter audit_every is 0, expected at least 1 where exactness is 'audit'"
            raise InputError(msg)
        if self.draw_seed == NO_SEED and (self.temperature or self.trajectory_samples > 1):
            msg = (
                f"parameter draw_seed is {NO_SEED}, expected a seed where temperature is {self.temperature:g} "
                f"and trajectory_samples {self.trajectory_samples}"
            )
            raise InputError(msg)
        if 0.0 < self.max_plan_age_s < self.deadline_s:
            msg = f"parameter max_plan_age_s is {self.max_plan_age_s}, expected at least deadline_s, {self.deadline_s}"
            raise InputError(msg)


@dataclass(frozen=True)
class DiagnosticsParameters:
    """config/diagnostics.param.yaml."""

    hardware_id: Annotated[str, AT_ONCE]
    planner_name: Annotated[str, AT_ONCE]
    publish_period_s: Annotated[float, Range(0.1, 10.0), AT_ONCE]
    window_s: Annotated[float, Range(1.0, 600.0), AT_ONCE]
    stale_after_s: Annotated[float, Range(0.5, 600.0), AT_ONCE]
    latency_warn_ms: Annotated[float, Range(0.0, 100000.0), AT_ONCE]
    latency_error_ms: Annotated[float, Range(0.0, 100000.0), AT_ONCE]
    age_warn_ms: Annotated[float, Range(0.0, 100000.0), AT_ONCE]
    age_error_ms: Annotated[float, Range(0.0, 100000.0), AT_ONCE]
    rate_warn_hz: Annotated[float, Range(0.0, 100.0), AT_ONCE]
    rate_error_hz: Annotated[float, Range(0.0, 100.0), AT_ONCE]
    dropped_warn_share: Annotated[float, Range(0.0, 1.0), AT_ONCE]
    dropped_error_share: Annotated[float, Range(0.0, 1.0), AT_ONCE]
    acceptance_length_warn: Annotated[float, Range(0.0, 1000.0), AT_ONCE]


@dataclass(frozen=True)
class ControllerParameters:
    """config/controller.param.yaml."""

    rate_hz: Annotated[float, Range(1.0, 200.0)]
    max_plan_age_s: Annotated[float, Range(0.1, 6.4)]
    odometry_timeout_s: Annotated[float, Range(0.05, 10.0), AT_ONCE]
    rear_axle_offset_m: Annotated[float, Range(-10.0, 10.0)]
    twist_frame: Annotated[str, OneOf(("auto", "child", "parent"))]
    simulator_waits: bool
    braking_mps2: Annotated[float, Range(0.5, 8.0)]


@dataclass(frozen=True)
class SimulatorParameters:
    """config/simulator.param.yaml."""

    role: str
    family: str
    split: Annotated[str, OneOf(("train", "val", "on_shelf"))]
    seed: Annotated[int, Range(*SEED_LIMITS)]
    real_time_factor: Annotated[float, Range(*REAL_TIME_FACTOR_LIMITS)]
    image_width_px: Annotated[int, Range(32, 4096)]
    image_height_px: Annotated[int, Range(32, 4096)]
    synchronous_mode_wait_for_vehicle_control_command: bool
    control_timeout_s: Annotated[float, Range(0.1, 600.0)]
    start_timeout_s: Annotated[float, Range(0.0, 600.0)]
    exit_when_done: bool


def checked(name: str, value: object, base: Any, limits: Range | OneOf | None) -> object:
    """The value in its type, within its limits.

    Raises:
        InputError: saying what was expected.
    """
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if base == tuple[str, ...]:
        fits = isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, str) for item in value)
        value = tuple(value) if fits and isinstance(value, (list, tuple)) else value
        wanted = "a list of names"
    else:
        fits = type(value) is base
        wanted = KINDS[base]
    if fits and isinstance(limits, Range):
        fits = isinstance(value, (int, float)) and limits.low <= value <= limits.high
    if fits and isinstance(limits, OneOf):
        fits = value in limits.values
    if not fits:
        msg = f"parameter {name} is {value!r}, expected {wanted}{'' if limits is None else f' of {limits}'}"
        raise InputError(msg)
    return value
