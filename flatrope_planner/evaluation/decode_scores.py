"""How contestants of `flatrope bench decode` wrote: line by line, summed up, as a table."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from flatrope_planner.evaluation.generate_reference import Written, is_same
from flatrope_planner.speculation.decoder import DecodedRationale
from flatrope_planner.speculation.target import DecodingState

S = TypeVar("S", bound=DecodingState)

# Names of what transformers writes by itself, and with its own prompt lookup; and of the engine alone.
GENERATE, GENERATE_LOOKUP, ALONE = "generate", "generate-prompt-lookup", "none"


@dataclass(frozen=True)
class Line:
    """How one contestant wrote one rationale."""

    # The same text as the engine alone at the same width, and as `generate`.
    identical: bool
    identical_generate: bool
    committed: int
    rounds: int
    proposed: int
    accepted: int
    foreseen: int
    # Fewest rounds in which a text of this length can be written.
    fewest_rounds: int
    reasoning_s: float
    draft_s: float = 0.0


# By contestant, one for each moment.
Lines = dict[str, list[Line]]


def line_of(decoded: DecodedRationale[S], alone: DecodedRationale[S], judge: Written, reach: int) -> Line:
    """A contestant's; `reach` is the most tokens a block of its may hold in a row."""
    stats = decoded.speculation
    return Line(
        identical=decoded.token_ids == alone.token_ids,
        identical_generate=is_same(judge, decoded.token_ids),
        committed=stats.committed,
        rounds=stats.rounds,
        proposed=stats.proposed,
        accepted=stats.accepted,
        foreseen=stats.prefill_accepted,
        fewest_rounds=-(-stats.committed // reach),
        reasoning_s=decoded.stage_ms["reasoning"] * 1e-3,
        draft_s=decoded.stage_ms["draft"] * 1e-3,
    )


def line_of_generate(written: Written, judge: Written, plain: DecodedRationale[S], reach: int = 1) -> Line:
    """One of `generate`; `judge` is what it writes token by token, `reach` the most tokens a pass may bring."""
    committed = len(written.tokens) - 1
    return Line(
        identical=is_same(written, plain.token_ids),
        identical_generate=written.tokens == judge.tokens,
        committed=committed,
        rounds=written.passes,
        proposed=0,
        accepted=0,
        foreseen=0,
        fewest_rounds=-(-committed // reach),
        reasoning_s=written.reasoning_s,
    )


def joined(parts: Iterable[Lines]) -> Lines:
    """All lines of several drives."""
    every: Lines = defaultdict(list)
    for lines in parts:
        for name, some in lines.items():
            every[name] += some
    return dict(every)


def summaries(parts: Iterable[Lines]) -> dict[str, dict[str, float]]:
    """Every contestant's figures."""
    every = joined(parts)
    return {name: _summary(lines, every[GENERATE], every[ALONE]) for name, lines in every.items()}


def _summary(lines: Sequence[Line], generate: Sequence[Line], plain: Sequence[Line]) -> dict[str, float]:
    committed, rounds = sum(line.committed for line in lines), sum(line.rounds for line in lines)
    proposed, reasoning_s = sum(line.proposed for line in lines), sum(line.reasoning_s for line in lines)
    return {
        "tau": round(committed / rounds, 3) if rounds else 0.0,
        "tau_ceiling": round(committed / max(sum(line.fewest_rounds for line in lines), 1), 3),
        "rounds": round(rounds / len(lines), 3),
        "acceptance_rate": round(sum(line.accepted for line in lines) / proposed, 4) if proposed else 0.0,
        "foreseen": round(sum(line.foreseen for line in lines) / len(lines), 3),
        "identical": share_of(line.identical for line in lines),
        "identical_generate": share_of(line.identical_generate for line in lines),
        "reasoning_ms": round(reasoning_s / len(lines) * 1e3, 2),
        "draft_ms": round(sum(line.draft_s for line in lines) / len(lines) * 1e3, 2),
        "speedup": round(sum(line.reasoning_s for line in generate) / reasoning_s, 3),
        "speedup_plain": round(sum(line.reasoning_s for line in plain) / reasoning_s, 3),
    }


def share_of(marks: Iterable[bool]) -> float:
    """Part of the marks that are set; 0 for none."""
    known = list(marks)
    return sum(known) / len(known) if known else 0.0


def headline(first: Mapping[str, Mapping[str, float]], everything: Lines, exact: Lines) -> dict[str, Any]:
    """The figures of one split at one precision, but identity over everything that was written.

    Args:
        first: figures of the split.
        everything: lines of all splits and precisions.
        exact: those in float32, which alone must equal `generate` to the last token.
    """
    drafters = {
        name: {
            **figures,
            "identical": share_of(line.identical for line in everything[name]),
            "identical_hf_fp32": share_of(line.identical_generate for line in exact[name]) if exact else None,
        }
        for name, figures in first.items()
    }
    return {
        "drafters": drafters,
        "tau_ceiling": {name: figures["tau_ceiling"] for name, figures in first.items()},
        "rationales": len(everything[ALONE]),
    }


def headline_table(drafters: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures as text."""
    head = ("tau", "ceiling", "rounds", "accepted", "identical", "as HF fp32", "reasoning", "speed")
    lines = [f"{'':<24}" + "".join(f"{word:>11}" for word in head)]
    for name, row in drafters.items():
        exact = "" if row["identical_hf_fp32"] is None else f"{row['identical_hf_fp32']:.1%}"
        lines.append(
            f"{name:<24}{row['tau']:>11.2f}{row['tau_ceiling']:>11.2f}{row['rounds']:>11.2f}"
            f"{row['acceptance_rate']:>11.1%}{row['identical']:>11.1%}{exact:>11}"
            f"{row['reasoning_ms']:>8.1f} ms{row['speedup']:>10.2f}x"
        )
    return "\n".join(lines)
