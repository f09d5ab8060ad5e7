"""Pure Python build (FLATROPE_PURE_PYTHON=1): all of the package but the generated messages."""

from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

PACKAGE = "flatrope_planner"
NODES = (
    "bag_player_node",
    "controller_node",
    "diagnostics_node",
    "faulty_planner",
    "plan_witness",
    "planner_node",
    "recorder_node",
    "sensor_player",
    "simulator_node",
    "transport_probe",
)


def files(folder: str) -> list[str]:
    """All files below a folder."""
    return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


def package_data() -> list[str]:
    """All files of the package but modules and what Python makes of them, relative to the package."""
    return [str(Path(file).relative_to(PACKAGE)) for file in files(PACKAGE) if Path(file).suffix not in (".py", ".pyc")]


setup(
    name=PACKAGE,
    version=run_path(f"{PACKAGE}/_version.py")["__version__"],
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: package_data()},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/config", files("config")),
        (f"share/{PACKAGE}/launch", files("launch")),
        (f"share/{PACKAGE}/msg", files("msg")),
        (f"share/{PACKAGE}/requirements", files("requirements")),
        (f"share/{PACKAGE}/security", files("security")),
    ],
    zip_safe=False,
    python_requires=">=3.10",
    # For `flatrope replay --ray`.
    extras_require={"ray": ["ray"]},
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
