"""Where the package's files lie: in the checkout that runs, or where the build has installed them."""

from pathlib import Path

from flatrope_planner.bringup.configuration import installed_share

CHECKOUT = Path(__file__).resolve().parents[2]


def shared_folder(name: str) -> Path | None:
    """The folder of that name in the checkout, or else in the installed package's share/; None if there is neither."""
    installed = installed_share()
    for root in (CHECKOUT, *([installed] if installed else [])):
        if (root / name).is_dir():
            return root / name
    return None
