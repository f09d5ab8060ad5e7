"""Task reports as diagnostic_msgs, after the conventions of diagnostic_updater."""

from collections.abc import Sequence
from typing import Protocol

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header


class Report(Protocol):
    """One line of diagnostics."""

    @property
    def task(self) -> str:
        """What is reported on."""
        ...

    @property
    def level(self) -> int:
        """0 OK, 1 WARN, 2 ERROR, 3 STALE."""
        ...

    @property
    def message(self) -> str:
        """The state in words."""
        ...

    @property
    def values(self) -> dict[str, str]:
        """Details."""
        ...


def diagnostic_array(reports: Sequence[Report], stamp: Time, *, node_name: str, hardware_id: str) -> DiagnosticArray:
    """The reports of one node as statuses named "<node>: <task>"."""
    return DiagnosticArray(
        header=Header(stamp=stamp),
        status=[
            DiagnosticStatus(
                # The field is a byte, which Python sees as bytes of length one.
                level=bytes([int(report.level)]),
                name=f"{node_name}: {report.task}",
                message=str(report.message),
                hardware_id=hardware_id,
                values=[KeyValue(key=str(key), value=str(value)) for key, value in report.values.items()],
            )
            for report in reports
        ],
    )
