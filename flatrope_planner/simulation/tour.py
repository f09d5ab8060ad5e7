"""Which scenes to drive, in words."""

from flatrope_planner.errors import InputError
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Family

TOUR = "tour"


def families_of(text: str) -> tuple[Family, ...]:
    """The families named in "tour" or "lead,curve".

    Raises:
        InputError: naming one that does not exist.
    """
    if text == TOUR:
        return TRAINED_FAMILIES
    try:
        return tuple(Family(name.strip()) for name in text.split(","))
    except ValueError as err:
        msg = f"family is {text!r}, expected {TOUR} or, separated by commas, {', '.join(f.value for f in Family)}"
        raise InputError(msg) from err
