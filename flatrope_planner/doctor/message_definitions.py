"""Definitions of messages as their sources have them, to compare with what was built."""

import re
from pathlib import Path

from flatrope_planner.bringup.configuration import PACKAGE

# Names of types in .msg files, and what generated messages call them.
_BUILT_IN = {
    "bool": "boolean",
    "byte": "octet",
    "char": "uint8",
    "float32": "float",
    "float64": "double",
    **{
        name: name
        for name in ("string", "wstring", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
    },
}
_FIELD = re.compile(r"(?P<type>[\w/<>=]+)(?P<array>\[(?P<bound>(?:<=)?\d*)\])?\s+(?P<name>[a-z]\w*)(?:\s+[^=].*)?")


def fields_of(file: Path) -> dict[str, str]:
    """Fields of a .msg file by name, with their types as `get_fields_and_field_types` writes them."""
    fields = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        found = _FIELD.fullmatch(line.partition("#")[0].strip())
        if found:
            fields[found["name"]] = _type_of(found["type"], found["array"], found["bound"])
    return fields


def _type_of(name: str, array: str | None, bound: str | None) -> str:
    name, _, length = name.partition("<=")
    kind = _BUILT_IN.get(name) or (name if "/" in name else f"{PACKAGE}/{name}")
    if length:
        kind = f"{kind}<{length}>"
    if array is None:
        return kind
    if not bound:
        return f"sequence<{kind}>"
    return f"sequence<{kind}, {bound[2:]}>" if bound.startswith("<=") else f"{kind}[{bound}]"
