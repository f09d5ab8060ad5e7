"""Pure Python build (FLATROPE_PURE_PYTHON=1): all of the package but the generated messages."""

from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

PACKAGE = "flatrope_planner"
NODES = ("planner_node", "diagnostics_node", "simulator_node", "controller_node")


def files(folder: str, start: str = ".") -> list[str]:
    """All files below a folder, as paths relative to start."""
    return sorted(str(path.relative_to(start)) for path in Path(start, folder).rglob("*") if path.is_file())


setup(
    name=PACKAGE,
    version=run_path(f"{PACKAGE}/_version.py")["__version__"],
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: [*files("weights", PACKAGE), *files("evaluation/report/assets", PACKAGE)]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/config", files("config")),
        (f"share/{PACKAGE}/launch", files("launch")),
    ],
    zip_safe=False,
    python_requires=">=3.10",
    maintainer="flatrope_planner maintainers",
    maintainer_email="flatrope-planner@example.org",
    description="Vision-language-action planning for ROS 2 with an exactly verified speculative reasoner.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            *(f"{node} = {PACKAGE}.nodes.{node}:main" for node in NODES),
            f"flatrope = {PACKAGE}.cli:main",
        ],
    },
)
