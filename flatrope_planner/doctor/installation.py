"""Whether the package is installed where ROS 2 finds it, with messages that match their sources."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from flatrope_planner._version import __version__
from flatrope_planner.bringup.configuration import PACKAGE, installed_share
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.message_definitions import fields_of
from flatrope_planner.doctor.places import CHECKOUT, shared_folder
from flatrope_planner.errors import reason

SOURCE = "`make setup` in a checkout; in a workspace: colcon build, then `. install/setup.bash`"


def check_installation() -> Iterator[Finding]:
    """Whether ROS 2 finds the package."""
    share = installed_share()
    facts = {"version": __version__, "modules": str(CHECKOUT), "share": str(share) if share else None}
    if share is None:
        found = f"{PACKAGE} {__version__} runs from {CHECKOUT}, but is in no sourced workspace"
        yield Finding("package", Mark.FAIL, found, SOURCE, facts)
    else:
        yield Finding("package", Mark.OK, f"{PACKAGE} {__version__}, installed in {share.parents[1]}", facts=facts)


def check_messages() -> Iterator[Finding]:
    """Whether the generated messages can be imported and are those of the sources."""
    try:
        built = import_module(f"{PACKAGE}.msg")
    except ImportError as err:
        yield Finding("messages", Mark.FAIL, f"cannot be imported: {reason(err)}", SOURCE)
        return
    folder = shared_folder("msg")
    sources = sorted(folder.glob("*.msg")) if folder else []
    stale = [file.stem for file in sources if not _matches(file, built)]
    facts = {"messages": [file.stem for file in sources], "stale": stale}
    if stale:
        found = f"built from older sources: {', '.join(stale)}"
        yield Finding("messages", Mark.FAIL, found, "`make setup`, or colcon build again", facts)
    else:
        yield Finding("messages", Mark.OK, f"{len(sources)} messages, built from these sources", facts=facts)


def _matches(file: Path, built: Any) -> bool:
    message = getattr(built, file.stem, None)
    return message is not None and dict(message.get_fields_and_field_types()) == fields_of(file)
