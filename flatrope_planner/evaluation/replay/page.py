"""report.html of a replay: one page with everything in it, that opens anywhere."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from flatrope_planner.evaluation.replay.bag_result import FAILED, MOMENTS, TIMELINE
from flatrope_planner.evaluation.replay.displacement import HORIZONS_S
from flatrope_planner.evaluation.replay.moments import RANKED_BY, WORST
from flatrope_planner.evaluation.replay.output_folder import RESULT
from flatrope_planner.evaluation.replay.page_charts import acceptance_chart, horizon_chart
from flatrope_planner.evaluation.replay.page_moments import moment_card
from flatrope_planner.evaluation.replay.page_recorded import recorded_plans_section
from flatrope_planner.evaluation.replay.page_timeline import bag_timeline, shown
from flatrope_planner.evaluation.replay.summary import rows_in
from flatrope_planner.evaluation.report.frame import Frame, template

# Timelines of more bags make a page that no browser likes.
MOST_TIMELINES = 6
HEADLINE = "3s"


def write_page(file: Path, summary: Mapping[str, Any], folders: Sequence[Path]) -> None:
    """Write the page of a summary; `folders` hold the results of the bags that could be replayed."""
    assets, total = Path(__file__).parent / "assets", summary["total"]
    frame = Frame(
        title="Replay report",
        lead=_lead(summary),
        footer="Made by flatrope replay. Seconds on the axes count from the first message of a bag.",
        facts=_facts(total, summary["run"]),
        styles=[assets / "replay.css"],
    )
    body = template(assets / "page.html").substitute(
        misses="Missed: the end is more than 2 m off.",
        horizons=horizon_chart(total["errors"]),
        table=_error_table(total["errors"]),
        recorded=recorded_plans_section(summary["bags"]),
        moments="".join(_moments(folders)) or "<p>No plan whose future the bags know.</p>",
        timelines="".join(_timelines(folders)),
        acceptance=acceptance_chart(total["speculation"]),
        speculation=_pairs_table(_speculation(summary)),
        quality=_pairs_table(_quality(total)),
        bags=_bag_table(summary["bags"]),
    )
    file.write_text(frame.around(body), encoding="utf-8")


def _lead(summary: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in summary["counts"].items() if count)
    bags, plans = len(summary["bags"]), summary["total"]["plans"]
    return f"What the planner would have done on {bags} {'bag' if bags == 1 else 'bags'} ({counts}): {plans} plans."


def _facts(total: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    errors, speculation = total["errors"][HEADLINE], total["speculation"]
    yield f"{total['plans']}", "plans"
    yield _number(errors["ade_m"], ".2f", " m"), "ADE over 3 s"
    yield _number(errors["fde_m"], ".2f", " m"), "FDE at 3 s"
    yield _number(errors["miss_rate"], ".0%"), "missed at 3 s"
    yield _number(speculation.get("mean_acceptance_length"), ".2f"), "tokens a round"
    times = run["stage_ms"].get("total")
    if times:
        yield f"{times['p50']:.0f} ms", f"a plan (p95 {times['p95']:.0f} ms)"
    if run["speedup"]:
        compared = total["compared"]
        yield f"{run['speedup']['reasoning']['of_sums']:.2f}x", "reasoning, against no speculation"
        yield f"{compared['identical_trajectories']}/{compared['plans']}", "plans identical without it"


def _error_table(errors: Mapping[str, Any]) -> str:
    columns = {"plans": "d", "ade_m": ".2f", "fde_m": ".2f", "ahe_rad": ".3f", "fhe_rad": ".3f"}
    columns |= {"lateral_m": ".2f", "longitudinal_m": ".2f", "miss_rate": ".0%"}
    names = ("plans", "ADE m", "FDE m", "AHE rad", "FHE rad", "lateral m", "along m", "missed")
    head = "<tr><th>up to</th>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"
    rows = []
    for horizon in HORIZONS_S:
        of_horizon = errors[horizon]
        cells = [f"<td>{_number(of_horizon[name], form)}</td>" for name, form in columns.items()]
        if "unavailable" in of_horizon:
            cells = [f'<td class="wide" colspan="{len(columns)}">unavailable: {escape(of_horizon["unavailable"])}</td>']
        rows.append(f"<tr><td>{horizon}</td>{''.join(cells)}</tr>")
    return f"<table>{head}{''.join(rows)}</table>"


def _moments(folders: Sequence[Path]) -> Iterator[str]:
    """The worst moments of all bags: those that are known for equally long together, as only they can be compared."""
    found = [(moment, folder.name) for folder in folders for moment in _read(folder / MOMENTS)]
    found.sort(key=lambda each: (RANKED_BY.index(each[0]["horizon"]), -each[0]["error_m"]))
    for horizon, moments in groupby(found[:WORST], key=lambda each: each[0]["horizon"]):
        cards = [moment_card(moment, name if len(folders) > 1 else "") for moment, name in moments]
        cut = "" if horizon == RANKED_BY[0] else ", where the drive is known no longer"
        yield f"<h3>By ADE over {HORIZONS_S[horizon]:g} s{cut}</h3>"
        yield f'<div class="moments">{"".join(cards)}</div>'


def _timelines(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders[:MOST_TIMELINES]:
        result, rows = _read(folder / RESULT), [shown(row) for row in rows_in(folder)]
        yield f"<h2>{escape(folder.name)}: second by second</h2>"
        yield f'<div class="card seconds">{bag_timeline(rows, _read(folder / TIMELINE), result["duration_s"])}</div>'
    left_out = len(folders) - MOST_TIMELINES
    if left_out > 0:
        yield f'<p class="note">{left_out} more bags have no timeline here; their plans are in the folder of each.</p>'


def _speculation(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    total, run = summary["total"], summary["run"]
    speculation, compared = total["speculation"], total["compared"]
    if "unavailable" in speculation:
        yield "speculation", f"unavailable: {speculation['unavailable']}"
    else:
        yield "tokens a round (tau)", f"{speculation['mean_acceptance_length']:.2f}"
        yield "accepted of the proposed tokens", _number(speculation["acceptance_rate"], ".0%")
        yield "rounds of a plan", f"{speculation['rounds_per_plan']:.2f}"
        yield (
            "confirmed with the prompt",
            f"{speculation['prefill_accepted']} of {speculation['prefill_proposed']} tokens",
        )
    if "unavailable" in compared:
        yield "against no speculation", f"unavailable: {compared['unavailable']}"
    else:
        yield "identical rationales", f"{compared['identical_rationales']} of {compared['plans']}"
        yield "identical trajectories", f"{compared['identical_trajectories']} of {compared['plans']}"
    for stage, ratio in (run["speedup"] or {}).items():
        yield f"{stage}: times faster", f"{ratio['of_sums']:.2f} (ticks {ratio['p5']:.2f} to {ratio['p95']:.2f})"
    for stage, times in run["stage_ms"].items():
        if times:
            yield f"{stage}, ms", f"{times['p50']:.1f} (p95 {times['p95']:.1f})"


def _quality(total: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, title, key in (
        ("comfort", "plans within nuPlan's comfort bounds", "comfortable"),
        ("extended_comfort", "plans that follow the last one smoothly", "comfortable"),
    ):
        part = total[name]
        yield title, f"unavailable: {part['unavailable']}" if "unavailable" in part else f"{part[key]:.0%}"
    for quantity, share in total["comfort"].get("within", {}).items():
        yield f"{quantity.replace('_', ' ')} within its bound", f"{share:.0%}"
    rationale = total["rationale"]
    stability = rationale.get("stability", rationale)
    if "unavailable" in stability:
        yield "stability of the rationale", f"unavailable: {stability['unavailable']}"
    else:
        yield "rationales that stay from plan to plan", f"{stability['identical']:.0%}"
        yield "words kept from the beginning on", f"{stability['common_prefix']:.0%}"
    consistency = rationale.get("consistency", rationale)
    if "unavailable" in consistency:
        yield "trajectory does what its rationale says", f"unavailable: {consistency['unavailable']}"
    else:
        judged = consistency["consistent"] + consistency["inconsistent"]
        yield "trajectory does what its rationale says", f"{consistency['share']:.0%} of {judged} that can be judged"
    least = total["least_errors"].get(HEADLINE)
    if least and least["plans"]:
        samples = total["least_errors"]["samples"]
        yield f"least ADE over 3 s of the plan and {samples} samples", f"{least['min_ade_m']:.2f} m"
    yield "refused by the validator", f"{total['refused']} plans"


def _pairs_table(pairs: Iterator[tuple[str, str]]) -> str:
    rows = [f'<tr><td>{escape(name)}</td><td class="wide">{escape(value)}</td></tr>' for name, value in pairs]
    return f"<table>{''.join(rows)}</table>"


def _bag_table(bags: Sequence[Mapping[str, Any]]) -> str:
    head = "<tr><th>bag</th><th>result</th><th>s</th><th>plans</th><th>ADE@3s</th><th>missing, warnings</th></tr>"
    rows = []
    for bag in bags:
        status, duration_s = bag["status"], bag.get("duration_s", 0.0)
        missing = bag["error"] if status == FAILED else "; ".join([*bag["missing"], *bag["warnings"]])
        ade = "-" if status == FAILED else _number(bag["errors"][HEADLINE]["ade_m"], ".2f")
        rows.append(
            f'<tr><td>{escape(bag["name"])}</td><td class="{status}">{status}</td><td>{duration_s:.1f}</td>'
            f'<td>{bag.get("plans", 0)}</td><td>{ade}</td><td class="wide">{escape(missing)}</td></tr>'
        )
    return f"<table>{head}{''.join(rows)}</table>"


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
