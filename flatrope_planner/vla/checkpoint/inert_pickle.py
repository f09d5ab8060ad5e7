"""What a pickle describes, without running it.

A pickle is a program: whoever unpickles it calls whatever it names. Here its instructions only put values together;
what it names stays a name, what it would call stays a note of the call, and nothing of it is ever looked up.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flatrope_planner.errors import InputError, reason

# Of the files that are read so, the largest has a few thousand.
MOST_INSTRUCTIONS = 2_000_000


@dataclass(frozen=True)
class Named:
    """Something in a module."""

    module: str
    name: str


@dataclass(eq=False)
class Call:
    """What would be made by a call, and what would be put into it afterwards."""

    function: Any
    arguments: Any
    state: Any = None
    # By `thing[key] = value`, as with dictionaries of other classes.
    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """Something that lies outside the pickle, by what it is found."""

    key: Any


class _Mark:
    """Where a run of values begins on the stack."""


def read_inert(content: bytes) -> Any:
    """Dictionaries, lists, tuples, numbers, strings and bytes as they are; all else as `Named`, `Call` or `Stored`.

    Raises:
        InputError: when it is no pickle, or one with instructions that are not known here.
    """
    try:
        return _Machine().run(content)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as err:
        msg = f"no pickle that can be read without running it ({reason(err)})"
        raise InputError(msg) from err


class _Machine:
    """A stack, and values that were noted to be used again."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        """Raise an error of Python's for what is broken."""
        for count, (code, argument, _) in enumerate(pickletools.genops(content)):
            if count > MOST_INSTRUCTIONS:
                msg = f"more than {MOST_INSTRUCTIONS} instructions"
                raise ValueError(msg)
            if code.name == "STOP":
                break
            if code.name in _IGNORED:
                continue
            if code.name in _CONSTANTS:
                self._stack.append(_CONSTANTS[code.name]())
            elif code.name in _LITERALS:
                self._stack.append(argument)
            elif code.name in _INSTRUCTIONS:
                _INSTRUCTIONS[code.name](self, argument)
            else:
                msg = f"the instruction {code.name}"
                raise ValueError(msg)
        (made,) = self._stack
        return made

    def mark(self, _: Any) -> None:
        self._stack.append(_Mark())

    def memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def put(self, index: Any) -> None:
        self._memo[int(index)] = self._stack[-1]

    def get(self, index: Any) -> None:
        self._stack.append(self._memo[int(index)])

    def since_mark(self) -> list[Any]:
        """Take the values behind the last mark, and the mark."""
        place = max((i for i, value in enumerate(self._stack) if isinstance(value, _Mark)), default=None)
        if place is None:
            msg = "a list without a beginning"
            raise ValueError(msg)
        values = self._stack[place + 1 :]
        del self._stack[place:]
        return values

    def collect(self, kind: Callable[[list[Any]], Any]) -> None:
        self._stack.append(kind(self.since_mark()))

    def tuple_of(self, count: int) -> None:
        values = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self._stack.append(values)

    def append(self, _: Any) -> None:
        value = self._stack.pop()
        self._stack[-1].append(value)

    def extend(self, _: Any) -> None:
        values = self.since_mark()
        self._stack[-1].extend(values)

    def set_item(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self.put_into([key, value])

    def set_items(self, _: Any) -> None:
        self.put_into(self.since_mark())

    def put_into(self, values: list[Any]) -> None:
        """Keys and values by turns, into what lies on top."""
        thing = self._stack[-1]
        items = thing.items if isinstance(thing, Call) else thing
        items.update(_pairs(values))

    def name(self, argument: Any) -> None:
        """One string of module and name, or both on the stack."""
        if argument is None:
            name, module = self._stack.pop(), self._stack.pop()
        else:
            module, name = str(argument).split(" ", 1)
        self._stack.append(Named(module, name))

    def call(self, _: Any) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        self._stack.append(Call(function, arguments))

    def build(self, _: Any) -> None:
        state = self._stack.pop()
        if isinstance(self._stack[-1], Call):
            self._stack[-1].state = state

    def stored(self, argument: Any) -> None:
        self._stack.append(Stored(self._stack.pop() if argument is None else argument))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


_IGNORED = {"PROTO", "FRAME"}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("STRING", "SHORT_BINSTRING", "BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark,
    "MEMOIZE": _Machine.memoize,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    "TUPLE": lambda machine, _: machine.collect(tuple),
    "LIST": lambda machine, _: machine.collect(list),
    "DICT": lambda machine, _: machine.collect(_pairs),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    **dict.fromkeys(("GLOBAL", "STACK_GLOBAL"), _Machine.name),
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _Machine.call),
    "BUILD": _Machine.build,
    **dict.fromkeys(("PERSID", "BINPERSID"), _Machine.stored),
}
