"""What a replay plans with: the parameters of the planner node, from its own parameter file, without ROS."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.arguments import PERIOD_LIMITS_S
from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions

E = TypeVar("E", bound=Enum)

PLANNER_FILE = "planner.param.yaml"
# Sections of a parameter file that reach the node, the more special later.
SECTIONS = ("/**", "planner", "/planner")
PARAMETERS = "ros__parameters"


@dataclass(frozen=True)
class PlannerSettings:
    """Of the planner node's parameters those that matter when nothing is live."""

    target: str
    weights: Path | None
    speculation: SpeculationOptions
    compressed: bool
    period_s: float


def read_settings(file: Path | None) -> PlannerSettings:
    """The settings of a parameter file, over the package's own.

    Raises:
        InputError: if it is no parameter file, or sets a parameter that does not exist or to what it cannot be.
        SetupError: if the package's own file is missing.
    """
    values = default_parameters(PLANNER_FILE)
    if file is not None:
        own = _parameters_in(file)
        unknown = sorted(set(own) - set(values))
        if unknown:
            msg = f"{file} sets {unknown[0]!r}, which is no parameter of the planner; there are {', '.join(values)}"
            raise InputError(msg)
        values.update(own)
    return _settings(values)


def _parameters_in(file: Path) -> dict[str, Any]:
    try:
        content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        found = [content[section][PARAMETERS] for section in SECTIONS if section in content]
        values = {name: value for section in found for name, value in section.items()}
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError, AttributeError) as err:
        msg = f"{file} is no parameter file with a section /** or planner: {PARAMETERS} ({reason(err)})"
        raise InputError(msg) from err
    if not found:
        msg = f"{file} has no section /** or planner: it sets no parameter of the planner"
        raise InputError(msg)
    return values


def _settings(values: Mapping[str, Any]) -> PlannerSettings:
    mode = _member(ExactnessMode, "exactness", values["exactness"])
    every, period_s = values["audit_every"], values["period_s"]
    low_s, high_s = PERIOD_LIMITS_S
    if isinstance(period_s, bool) or not isinstance(period_s, int | float) or not low_s <= period_s <= high_s:
        msg = f"parameter period_s is {period_s!r}, expected a number of [{low_s:g}, {high_s:g}]"
        raise InputError(msg)
    for name in ("audit_every", "draft_nodes"):
        if type(values[name]) is not int or values[name] < int(name == "draft_nodes"):
            msg = f"parameter {name} is {values[name]!r}, expected a whole number that is not negative"
            raise InputError(msg)
    if mode is ExactnessMode.AUDIT and not every:
        msg = "parameter audit_every is 0, expected at least 1 where exactness is 'audit'"
        raise InputError(msg)
    drafter = _member(DrafterKind, "drafter", values["drafter"])
    draft = _folder(values["draft"])
    return PlannerSettings(
        str(values["target"]),
        _folder(values["weights"]),
        SpeculationOptions(drafter, draft, values["draft_nodes"], Exactness(mode, every)),
        bool(values["compressed"]),
        float(period_s),
    )


def _member(kind: type[E], name: str, value: object) -> E:
    try:
        return kind(value)
    except ValueError:
        msg = f"parameter {name} is {value!r}, expected one of {', '.join(member.value for member in kind)}"
        raise InputError(msg) from None


def _folder(value: object) -> Path | None:
    return Path(str(value)) if value else None
