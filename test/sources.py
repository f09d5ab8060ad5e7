"""What tests of the package read from its sources."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "flatrope_planner"
MODULES = sorted((ROOT / PACKAGE).rglob("*.py"))
MESSAGE_PACKAGES = {
    *("builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "nav_msgs", "rosgraph_msgs"),
    *("sensor_msgs", "std_msgs", "visualization_msgs"),
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py")


def imports_in(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported in the tree, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = str(node.module)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of(path: Path) -> set[str]:
    return set(imports_in(ast.parse(path.read_text())))


def foreign_imports() -> dict[str, set[str]]:
    """Foreign top-level module -> rooms that import it."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for name in imports_of(path):
            top = name.split(".")[0]
            if top != PACKAGE and top not in sys.stdlib_module_names:
                found.setdefault(top, set()).add(room_of(path))
    return found
