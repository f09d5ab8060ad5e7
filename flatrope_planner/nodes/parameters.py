"""Parameters of all nodes: each node reads its own once, at start, into one frozen object.

Defaults stand in config/<node>.param.yaml alone, and so does what a parameter means. Here is what is valid.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.bringup.description import REAL_TIME_FACTOR_LIMITS, SEED_LIMITS
from flatrope_planner.errors import InputError, SetupError

T = TypeVar("T")


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
    weights: str
    precision: Annotated[str, OneOf(("auto", "float32", "bfloat16"))]
    device: str
    drafter: Annotated[str, OneOf(("hybrid", "network", "retrieval", "prompt_lookup", "none"))]
    draft: str
    draft_nodes: Annotated[int, Range(1, 127)]
    exactness: Annotated[str, OneOf(("canonical", "tolerant", "audit"))]
    audit_every: Annotated[int, Range(0, 100_000)]
    cameras: tuple[str, ...]
    compressed: bool
    period_s: Annotated[float, Range(0.05, 10.0)]
    input_timeout_s: Annotated[float, Range(0.1, 60.0)]
    status_period_s: Annotated[float, Range(0.1, 10.0)]

    def __post_init__(self) -> None:
        # Said at start, as for any other parameter, and not when the model is loaded.
        if self.exactness == "audit" and not self.audit_every:
            msg = "parameter audit_every is 0, expected at least 1 where exactness is 'audit'"
            raise InputError(msg)


@dataclass(frozen=True)
class DiagnosticsParameters:
    """config/diagnostics.param.yaml."""

    hardware_id: str
    planner_name: str
    publish_period_s: Annotated[float, Range(0.1, 10.0)]
    window_s: Annotated[float, Range(1.0, 600.0)]
    stale_after_s: Annotated[float, Range(0.5, 600.0)]
    latency_warn_ms: Annotated[float, Range(0.0, 100000.0)]
    latency_error_ms: Annotated[float, Range(0.0, 100000.0)]
    age_warn_ms: Annotated[float, Range(0.0, 100000.0)]
    age_error_ms: Annotated[float, Range(0.0, 100000.0)]
    rate_warn_hz: Annotated[float, Range(0.0, 100.0)]
    rate_error_hz: Annotated[float, Range(0.0, 100.0)]
    dropped_warn_share: Annotated[float, Range(0.0, 1.0)]
    dropped_error_share: Annotated[float, Range(0.0, 1.0)]
    acceptance_length_warn: Annotated[float, Range(0.0, 1000.0)]


@dataclass(frozen=True)
class ControllerParameters:
    """config/controller.param.yaml."""

    rate_hz: Annotated[float, Range(1.0, 200.0)]
    max_plan_age_s: Annotated[float, Range(0.1, 6.4)]
    odometry_timeout_s: Annotated[float, Range(0.05, 10.0)]
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


def read_parameters(node: Node, kind: type[T], file_name: str) -> T:
    """Declare the parameters of `kind` with the defaults of `config/<file_name>` and read what they are set to.

    Raises:
        InputError: naming a parameter whose value is of the wrong type or outside its range.
        SetupError: if the file has no default for one of them, or sets one that does not exist.
    """
    defaults = default_parameters(file_name)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if set(defaults) != set(names):
        msg = f"{file_name} and {kind.__name__} differ in: {', '.join(sorted(set(defaults) ^ set(names)))}"
        raise SetupError(msg)
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: _declare(node, name, hints[name], defaults[name]) for name in names})


def _declare(node: Node, name: str, hint: Any, default: object) -> object:
    base, limits = (get_args(hint)[0], get_args(hint)[1]) if get_origin(hint) is Annotated else (hint, None)
    # Dynamic typing lets `rate:=10` set a float; the type is checked here, with words of our own.
    descriptor = ParameterDescriptor(
        read_only=True, dynamic_typing=True, additional_constraints="" if limits is None else str(limits)
    )
    return checked(name, node.declare_parameter(name, default, descriptor).value, base, limits)


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
        wanted = f"a {base.__name__}"
    if fits and isinstance(limits, Range):
        fits = isinstance(value, (int, float)) and limits.low <= value <= limits.high
    if fits and isinstance(limits, OneOf):
        fits = value in limits.values
    if not fits:
        msg = f"parameter {name} is {value!r}, expected {wanted}{'' if limits is None else f' of {limits}'}"
        raise InputError(msg)
    return value
