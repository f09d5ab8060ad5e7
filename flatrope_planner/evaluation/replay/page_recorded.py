"""The plans that are in the bags, on the page, beside those of the replay for the same moments."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from flatrope_planner.evaluation.replay.displacement import HORIZONS_S


def recorded_plans_section(bags: Sequence[Mapping[str, Any]]) -> str:
    """A table of both for every bag with plans in it; nothing where there is none."""
    with_plans = [bag for bag in bags if bag.get("recorded_plans", {}).get("plans")]
    if not with_plans:
        return ""
    head = "".join(f"<th>{horizon}</th>" for horizon in HORIZONS_S)
    rows = "".join(row for bag in with_plans for row in _rows(bag))
    return (
        '<h2>Against the plans in the bag</h2><p class="note">ADE in metres over each horizon, of the plans that were '
        "published when the bag was recorded, and of the replay's plans for the same moments.</p>"
        f'<div class="card"><table><tr><th>bag</th><th>plans</th><th></th>{head}</tr>{rows}</table></div>'
    )


def _rows(bag: Mapping[str, Any]) -> Iterator[str]:
    same = bag["recorded_plans"]["same_t0"]
    name = f"<td>{escape(bag['name'])}</td>"
    if not same["plans"]:
        why = f"none of the {bag['recorded_plans']['plans']} is for the same moment: --at-recorded plans at theirs"
        yield f'<tr>{name}<td>0</td><td class="wide" colspan="{1 + len(HORIZONS_S)}">{why}</td></tr>'
        return
    yield f'<tr>{name}<td>{same["plans"]}</td><td class="wide">in the bag</td>{_cells(same["recorded_ade_m"])}</tr>'
    yield f'<tr><td></td><td></td><td class="wide">replayed</td>{_cells(same["replayed_ade_m"])}</tr>'


def _cells(ade_m: Mapping[str, float | None]) -> str:
    found = [ade_m[horizon] for horizon in HORIZONS_S]
    return "".join(f"<td>{'-' if value is None else f'{value:.2f}'}</td>" for value in found)
