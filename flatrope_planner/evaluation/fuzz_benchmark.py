"""Broken messages by the hundred thousand through codec, ego motion and buffer: refused by name, or taken in."""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from flatrope_planner.errors import InputError, NotReadyError, reason
from flatrope_planner.progress import with_progress

if TYPE_CHECKING:
    from flatrope_planner.conversion.broken_messages import Message

CAMERA = "camera"
# An observation is cut out of the buffer at every so many-th message.
OBSERVE_EVERY = 10
MOST_REASONS, MOST_ESCAPES = 40, 20
# Names, lists and numbers: what differs between two refusals of one kind.
_PARTICULARS = re.compile(
    r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|(?<=begin with ).*(?= are)|(?<=supported are ).*|(?<=mark )\w+|[\w.+-]*\d[\w.+-]*"
)


@dataclass
class _Tally:
    accepted: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    observations: Counter[str] = field(default_factory=Counter)
    escapes: list[str] = field(default_factory=list)
    escaped: int = 0
    slowest_ms: float = 0.0


def run_fuzz(messages: int, seed: int) -> dict[str, Any]:
    """Feed that many messages of that seed; an exception other than a refusal has escaped."""
    from flatrope_planner.conversion.broken_messages import BrokenMessages

    stream, intake, tally = BrokenMessages(seed), _Intake(), _Tally()
    began_s = time.perf_counter()
    with _quiet_libraries() as terminal:
        for number in with_progress(range(messages), messages, "messages", terminal):
            message = stream.next()
            fed_s = time.perf_counter()
            _feed(intake, message, number, tally)
            tally.slowest_ms = max(tally.slowest_ms, (time.perf_counter() - fed_s) * 1e3)
    return {
        "messages": messages,
        "seed": seed,
        "accepted": tally.accepted.total(),
        "rejected": tally.rejected.total(),
        "escaped": tally.escaped,
        "accepted_by_kind": dict(tally.accepted),
        "rejected_by_kind": dict(tally.rejected),
        "observations": dict(tally.observations),
        "reasons": dict(tally.reasons.most_common(MOST_REASONS)),
        "escapes": tally.escapes,
        "slowest_ms": tally.slowest_ms,
        "duration_s": time.perf_counter() - began_s,
    }


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{count:>8}  {why}" for why, count in result["reasons"].items()]
    lines.append(
        f"\n{result['messages']} messages in {result['duration_s']:.1f} s: {result['accepted']} accepted, "
        f"{result['rejected']} rejected, {result['escaped']} escaped; the slowest took {result['slowest_ms']:.1f} ms; "
        f"observations: {result['observations']}"
    )
    return "\n".join([*lines, *result["escapes"]])


class _Intake:
    """What the planner node does with a message."""

    def __init__(self) -> None:
        from flatrope_planner.planning.ego_motion import EgoMotion
        from flatrope_planner.planning.observation import ObservationBuffer, ObservationSpec

        self._motion = EgoMotion(rear_axle_offset_m=1.4)
        self._buffer = ObservationBuffer(ObservationSpec((CAMERA,), 2, 0.1))

    def take(self, message: "Message") -> None:
        """Take it in.

        Raises:
            InputError: if it is refused.
        """
        from flatrope_planner.conversion.images import camera_frame
        from flatrope_planner.conversion.odometry import odometry_sample

        if hasattr(message, "child_frame_id"):
            self._buffer.add_odometry(self._motion.take(odometry_sample(message)))
        else:
            self._buffer.add_image(CAMERA, camera_frame(message))

    def observe(self) -> None:
        """Use what has come.

        Raises:
            NotReadyError: if it is not enough.
        """
        self._motion.complaints()
        self._motion.values()
        self._buffer.observe()


def _feed(intake: _Intake, message: "Message", number: int, tally: _Tally) -> None:
    kind = type(message).__name__
    try:
        intake.take(message)
        tally.accepted[kind] += 1
    except InputError as err:
        tally.rejected[kind] += 1
        tally.reasons[f"{kind}: {_PARTICULARS.sub('#', str(err))}"] += 1
    except Exception as err:  # Any other is what is looked for.
        _note(tally, f"message {number}, {kind}: {type(err).__name__}: {reason(err)}")
    if number % OBSERVE_EVERY:
        return
    try:
        intake.observe()
        tally.observations["complete"] += 1
    except NotReadyError:
        tally.observations["not ready"] += 1
    except Exception as err:  # As above.
        _note(tally, f"observation at message {number}: {type(err).__name__}: {reason(err)}")


def _note(tally: _Tally, escape: str) -> None:
    tally.escaped += 1
    if len(tally.escapes) < MOST_ESCAPES:
        tally.escapes.append(escape)


@contextmanager
def _quiet_libraries() -> Iterator[TextIO]:
    """Nothing of what decoders complain about on stderr; a stream to the real one."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with os.fdopen(os.dup(kept), "w") as terminal:
            yield terminal
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
