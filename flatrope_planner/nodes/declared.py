"""Parameters as ROS sees them: declared with meaning and range, checked at start and whenever they are set."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter

from flatrope_planner.bringup.configuration import default_parameters, parameter_meanings
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.nodes.parameters import AT_ONCE, AT_START, Effect, OneOf, Range, checked

T = TypeVar("T")

# Beginning of the names that ROS itself understands in a node's parameters, without having declared them.
OF_ROS = "qos_overrides."


@dataclass(frozen=True)
class Rule:
    """What is valid for one parameter, and when a new value takes effect."""

    base: Any
    limits: Range | OneOf | None
    # None: when the node as such reads its parameters.
    effect: Effect | None


@dataclass(frozen=True)
class Changes(Generic[T]):
    """What a node makes of parameters that are set while it runs."""

    # Gets all values after a change.
    take: Callable[[T], None]
    # Whether those that do not take effect at once may be set now.
    free: Callable[[], bool] = lambda: False
    # When those are read, and what to do to change them.
    read: str = AT_START.value


def rules(kind: type) -> dict[str, Rule]:
    """The rule of every parameter of a class in `parameters`."""
    return {name: _rule(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


class DeclaredParameters(Generic[T]):
    """The parameters of a node as they are at present."""

    def __init__(self, node: Node, kind: type[T], file_name: str, changes: Changes[T] | None = None) -> None:
        """Declare the parameters of `kind` with the defaults of `config/<file_name>`; read what they are set to.

        Args:
            node: gets them.
            kind: one of the classes in `parameters`.
            file_name: of the file with defaults and meanings.
            changes: what the node makes of changes; None: nothing, and what takes effect at once is there to be read.

        Raises:
            InputError: naming a parameter whose value is of the wrong type or outside its range.
            SetupError: if the file has no default for one of them, or sets one that does not exist.
        """
        self._rules, self._changes = rules(kind), changes or Changes(take=lambda _values: None)
        defaults = default_parameters(file_name)
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        if set(defaults) != set(names):
            msg = f"{file_name} and {kind.__name__} differ in: {', '.join(sorted(set(defaults) ^ set(names)))}"
            raise SetupError(msg)
        self.values = kind(**{name: _declare(node, name, self._rules[name], defaults[name]) for name in names})
        meanings = parameter_meanings(file_name)
        for name in names:
            node.set_descriptor(name, self._descriptor(name, meanings[name]))
        node.add_on_set_parameters_callback(self._set)
        _name_undeclared(node)
        _warn_of_unknown(node)

    def _descriptor(self, name: str, meaning: str) -> ParameterDescriptor:
        rule = self._rules[name]
        limits = [str(rule.limits)] if rule.limits else []
        descriptor = ParameterDescriptor(description=meaning)
        descriptor.additional_constraints = "; ".join([*limits, self._when(rule)])
        # A whole number is as good as a float, also when it is set later; the type is checked here.
        descriptor.dynamic_typing = True
        if isinstance(rule.limits, Range) and rule.base is float:
            low, high = rule.limits.low, rule.limits.high
            descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        elif isinstance(rule.limits, Range):
            low, high = int(rule.limits.low), int(rule.limits.high)
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
        return descriptor

    def _set(self, parameters: Iterable[Parameter]) -> SetParametersResult:
        """Take new values, all of them or none."""
        new = {parameter.name: parameter.value for parameter in parameters if parameter.name in self._rules}
        if not new:
            return SetParametersResult(successful=True)
        try:
            self.values = self._changed(new)
        except InputError as err:
            return SetParametersResult(successful=False, reason=str(err))
        self._changes.take(self.values)
        return SetParametersResult(successful=True)

    def _changed(self, new: Mapping[str, object]) -> T:
        """The values with new ones among them.

        Raises:
            InputError: naming one that is not valid, or that cannot be changed now.
        """
        values = {
            name: checked(name, value, self._rules[name].base, self._rules[name].limits) for name, value in new.items()
        }
        for name, value in values.items():
            # Setting what is already so, as loading a whole file does, changes nothing.
            if value != getattr(self.values, name) and not self._may_change(self._rules[name]):
                msg = f"parameter {name} is {self._when(self._rules[name])}"
                raise InputError(msg)
        return replace(self.values, **values)  # type: ignore[type-var]

    def _may_change(self, rule: Rule) -> bool:
        return rule.effect is AT_ONCE or (rule.effect is None and self._changes.free())

    def _when(self, rule: Rule) -> str:
        return rule.effect.value if rule.effect else self._changes.read


def read_parameters(node: Node, kind: type[T], file_name: str) -> T:
    """The parameters of a node that reads them once, at start; for errors see `DeclaredParameters`."""
    return DeclaredParameters(node, kind, file_name).values


def _rule(hint: Any) -> Rule:
    base, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    limits = [note for note in notes if isinstance(note, (Range, OneOf))]
    effects = [note for note in notes if isinstance(note, Effect)]
    return Rule(base, limits[0] if limits else None, effects[0] if effects else None)


def _declare(node: Node, name: str, rule: Rule, default: object) -> object:
    """Declare without limits, so that what is wrong is told in words of ours."""
    given = node.declare_parameter(name, default, ParameterDescriptor(dynamic_typing=True)).value
    value = checked(name, given, rule.base, rule.limits)
    if isinstance(given, int) and isinstance(value, float):
        node.set_parameters([Parameter(name, value=value)])
    return value


def _name_undeclared(node: Node) -> None:
    """Have a parameter that the node does not have refused by its name, which rclpy loses on the way."""

    def known(parameters: list[Parameter]) -> list[Parameter]:
        unknown = [parameter.name for parameter in parameters if not node.has_parameter(parameter.name)]
        if unknown:
            # As rclpy does it next, with what it leaves of the names.
            raise ParameterNotDeclaredException(_named(node, unknown))
        return parameters

    if hasattr(node, "add_pre_set_parameters_callback"):
        # Humble's has none.
        node.add_pre_set_parameters_callback(known)


def _named(node: Node, unknown: Iterable[str]) -> list[str]:
    """The names, each with the one that is meant if it is misspelt."""
    known = list(node.get_parameters_by_prefix(""))
    close = {name: get_close_matches(name, known, 1) for name in unknown}
    return [f"{name} (is {near[0]} meant?)" if near else name for name, near in close.items()]


def _warn_of_unknown(node: Node) -> None:
    """Name the parameters that were given but that the node does not have: most are misspelt."""
    known = list(node.get_parameters_by_prefix(""))
    # rclpy has no other way to ask for what was given but not declared.
    given = [name for name in node._parameter_overrides if not name.startswith(OF_ROS)]  # noqa: SLF001
    unknown = [name for name in given if name not in known]
    if unknown:
        named = ", ".join(_named(node, unknown))
        node.get_logger().warning(f"parameters that this node does not have are ignored: {named}")
