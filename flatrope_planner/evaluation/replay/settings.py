"""What a replay plans with: the parameters of the planner node, from its own parameter file, without ROS."""

from dataclasses import dataclass, fields
from pathlib import Path

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.bringup.description import PLANNER
from flatrope_planner.bringup.parameter_file import read_parameter_file
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.arguments import PERIOD_LIMITS_S
from flatrope_planner.planning.chance import NO_SEED
from flatrope_planner.planning.ego_motion import AUTO
from flatrope_planner.planning.twist import TwistFit

PLANNER_FILE = "planner.param.yaml"
# Beginnings of what ROS itself adds to every node's parameters, and `ros2 param dump` writes with the others.
OF_ROS = ("use_sim_time", "start_type_description_service", "qos_overrides")
# What speculation knows (`vla.drafting.DrafterKind`, `speculation.exactness.ExactnessMode`), told without PyTorch.
DRAFTERS = ("none", "prompt_lookup", "retrieval", "network", "hybrid")
AUDIT = "audit"
EXACTNESS = ("canonical", "tolerant", AUDIT)
# As `vla.target.PRECISIONS` and INT8.
PRECISIONS = ("auto", "float32", "bfloat16", "int8")
MOST_NODES, MOST_EVERY, MOST_SEED = 127, 100_000, 999_999
OFFSET_LIMITS_M = (-10.0, 10.0)
TWIST_FRAMES = (AUTO, *(fit.value for fit in (TwistFit.CHILD, TwistFit.PARENT)))


@dataclass(frozen=True)
class PlannerSettings:
    """Of the planner node's parameters those that matter when nothing is live; as in its file."""

    target: str
    cameras: tuple[str, ...]
    precision: str
    device: str
    drafter: str
    # "" for the one beside the target's weights.
    draft: str
    draft_nodes: int
    exactness: str
    audit_every: int
    temperature: float
    top_p: float
    # -1: nothing is drawn.
    draw_seed: int
    trajectory_samples: int
    guidance: float
    compressed: bool
    rear_axle_offset_m: float
    twist_frame: str
    period_s: float

    def __post_init__(self) -> None:
        for name in ("target", "device", "draft"):
            self._require(name, isinstance(getattr(self, name), str), "a name")
        self._require("cameras", bool(self.cameras), "at least one")
        self._require("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")
        self._require("drafter", self.drafter in DRAFTERS, f"one of {', '.join(DRAFTERS)}")
        self._require("exactness", self.exactness in EXACTNESS, f"one of {', '.join(EXACTNESS)}")
        self._require("draft_nodes", _is_whole(self.draft_nodes, 1, MOST_NODES), f"a whole number of [1, {MOST_NODES}]")
        every = int(self.exactness == AUDIT)
        self._require("audit_every", _is_whole(self.audit_every, every, MOST_EVERY), f"at least {every}")
        self._require("temperature", _is_number(self.temperature, 0.0, 2.0), "a number of [0, 2]")
        self._require("top_p", _is_number(self.top_p, 0.01, 1.0), "a number of [0.01, 1]")
        self._require("draw_seed", _is_whole(self.draw_seed, NO_SEED, MOST_SEED), f"from {NO_SEED} to {MOST_SEED}")
        self._require("trajectory_samples", _is_whole(self.trajectory_samples, 1, 64), "a whole number of [1, 64]")
        draws = self.draw_seed != NO_SEED or not (self.temperature or self.trajectory_samples > 1)
        drawn = f"temperature is {self.temperature:g} and trajectory_samples {self.trajectory_samples}"
        self._require("draw_seed", draws, f"a seed where {drawn}")
        self._require("guidance", _is_number(self.guidance, 1.0, 10.0), "a number of [1, 10]")
        low_m, high_m = OFFSET_LIMITS_M
        offset = f"a number of [{low_m:g}, {high_m:g}]"
        self._require("rear_axle_offset_m", _is_number(self.rear_axle_offset_m, low_m, high_m), offset)
        self._require("twist_frame", self.twist_frame in TWIST_FRAMES, f"one of {', '.join(TWIST_FRAMES)}")
        low_s, high_s = PERIOD_LIMITS_S
        self._require("period_s", _is_number(self.period_s, low_s, high_s), f"a number of [{low_s:g}, {high_s:g}]")
        self._require("compressed", isinstance(self.compressed, bool), "true or false")

    def _require(self, name: str, fits: bool, expected: str) -> None:
        if not fits:
            msg = f"parameter {name} is {getattr(self, name)!r}, expected {expected}"
            raise InputError(msg)


def read_settings(file: Path | None) -> PlannerSettings:
    """The settings of a parameter file, over the package's own.

    Raises:
        InputError: if it is no parameter file, or sets a parameter that does not exist or to what it cannot be.
        SetupError: if the package's own file is missing.
    """
    values = default_parameters(PLANNER_FILE)
    if file is not None:
        own = read_parameter_file(file, f"/{PLANNER}", anywhere=True)
        own = {name: value for name, value in own.items() if not name.startswith(OF_ROS)}
        unknown = sorted(set(own) - set(values))
        if unknown:
            msg = f"{file} sets {unknown[0]!r}, which is no parameter of the planner; there are {', '.join(values)}"
            raise InputError(msg)
        values.update(own)
    if not isinstance(values["cameras"], list):
        msg = f"parameter cameras is {values['cameras']!r}, expected a list of names"
        raise InputError(msg)
    values["cameras"] = tuple(map(str, values["cameras"]))
    return PlannerSettings(**{field.name: values[field.name] for field in fields(PlannerSettings)})


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
