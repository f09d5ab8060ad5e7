"""What a check finds: how bad it is, in words, and what to do about it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Mark(Enum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    # What was looked at, in a word or two; several findings may share it.
    check: str
    mark: Mark
    # What was found, on one line.
    found: str
    # What to do, on one line; empty where there is nothing to be done.
    remedy: str = ""
    # Figures behind the words, for programs: plain values only.
    facts: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "mark": self.mark.value, "facts": dict(self.facts)}


def worst(findings: Iterable[Finding]) -> Mark:
    """The worst of all marks; ok where there is none."""
    order = list(Mark)
    return max((finding.mark for finding in findings), key=order.index, default=Mark.OK)
