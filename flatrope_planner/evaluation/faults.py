"""The faults of the fault run: what is done, for how long, and what a planner should say and do meanwhile."""

from dataclasses import dataclass

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.fault_injections import (
    BrokenFromTheStart,
    ClockLeap,
    FaultyModel,
    HaltedPlanner,
    Injection,
    KilledPublisher,
    SensorFault,
)
from flatrope_planner.evaluation.planner_starts import PlannerStart

WIDE, TELE, ODOMETRY, CLOCK = "front_wide", "front_tele", "odometry", "clock"
BOTH = (WIDE, TELE)


@dataclass(frozen=True)
class Fault:
    """One fault."""

    name: str
    # In words, for people.
    meaning: str
    injection: Injection
    # What the planner's status should say while it lasts, as a regular expression; "": it need not say anything.
    words: str = ""
    # Whether good plans should go on coming meanwhile.
    harmless: bool = False
    lasts_s: float = 2.5
    # How the planner under test is started.
    start: PlannerStart = PlannerStart.PLAIN

    @property
    def standing(self) -> bool:
        """Whether it never ends: the planner starts with it."""
        return isinstance(self.injection, BrokenFromTheStart)


# A killed process says no goodbye: until its lease is over (20 s), the middleware still counts its publishers.
_SILENT = r"no publisher|nothing|silent|no data|for \d"
_WIDE_AND_TELE = rf"{WIDE}[\s\S]*{TELE}|{TELE}[\s\S]*{WIDE}"

_PICTURES = (
    Fault("camera_missing", "the tele camera sends nothing", SensorFault((TELE,), "missing"), TELE),
    Fault("cameras_missing", "both cameras send nothing", SensorFault(BOTH, "missing"), _WIDE_AND_TELE),
    Fault(
        "camera_frozen_stamp",
        "the wide camera sends the same stamp again and again",
        SensorFault((WIDE,), "frozen_stamp"),
        r"stamp|frozen|stuck|same time|behind|apart",
    ),
    Fault("image_truncated", "half of each picture's data", SensorFault(BOTH, "truncated"), r"truncat|bytes|data"),
    Fault("image_wrong_step", "rows of a wrong length", SensorFault(BOTH, "wrong_step"), r"step"),
    Fault("image_unknown_encoding", "encodings that nobody knows", SensorFault(BOTH, "unknown_encoding"), r"encoding"),
)
_ODOMETRY = (
    Fault("odometry_missing", "no odometry", SensorFault((ODOMETRY,), "missing"), r"odometry"),
    Fault("odometry_nan", "NaN in pose and twist", SensorFault((ODOMETRY,), "nan"), r"finite|nan"),
    Fault("odometry_infinite", "an infinite position", SensorFault((ODOMETRY,), "infinite"), r"finite|inf\b"),
    Fault(
        "odometry_zero_quaternion",
        "orientations of four zeros",
        SensorFault((ODOMETRY,), "zero_quaternion"),
        r"quaternion|orientation|rotation",
    ),
    Fault(
        "odometry_parent_twist",
        "the twist in the parent's frame",
        SensorFault((ODOMETRY,), "parent_twist"),
        r"twist|parent",
    ),
)
_STAMPS = (
    Fault(
        "stamps_future",
        "everything stamped 100 s ahead",
        SensorFault((*BOTH, ODOMETRY), "future_stamp"),
        r"future|ahead|to come",
    ),
    Fault("stamps_zero", "everything stamped zero", SensorFault((*BOTH, ODOMETRY), "zero_stamp"), r"zero|stamp"),
    Fault("stamps_swapped", "each two messages out of order", SensorFault((*BOTH, ODOMETRY), "swapped"), harmless=True),
    Fault("stamps_twice", "every message twice", SensorFault((*BOTH, ODOMETRY), "twice"), harmless=True),
)
_TIME = (
    Fault(
        "clock_forward",
        "the clock leaps by 100 s",
        ClockLeap(100.0),
        r"clock|jump|leap|gap|waiting|missing",
        lasts_s=0.0,
    ),
    Fault(
        "clock_back",
        "the clock leaps back by 5 s, as a bag that loops",
        ClockLeap(-5.0),
        r"clock|jump|leap|back|anew|waiting|missing",
        lasts_s=0.0,
    ),
    Fault(
        "clock_stopped",
        "the clock and all sensors stand still",
        SensorFault((CLOCK,), "stop"),
        r"clock|still|paused|for \d|no publisher",
        lasts_s=2.0,
    ),
)
_PROCESSES = (
    Fault("camera_publisher_killed", "SIGKILL to who sends pictures", KilledPublisher("cameras"), _SILENT),
    Fault("odometry_publisher_killed", "SIGKILL to who sends odometry", KilledPublisher(ODOMETRY), _SILENT),
    Fault("planner_halted", "SIGSTOP to the planner", HaltedPlanner(), lasts_s=2.0),
)
_MODEL = tuple(
    Fault(f"model_{name}", meaning, FaultyModel(order), words, lasts_s=lasts_s, start=PlannerStart.FAULTY_CORE)
    for name, order, meaning, words, lasts_s in (
        ("slow", "slow", "each tick takes 3 s more", r"slow|late\b|deadline|budget|overdue|takes|miss", 4.0),
        ("raises", "raises", "each tick raises", r"fail|raise|RuntimeError", 2.5),
        ("not_finite", "not_finite", "plans of NaN", r"finite|nan", 2.5),
        ("teleports", "teleports", "plans that begin 50 m away", r"teleport|jump|leap|feasib|ego|start|away", 2.5),
        ("reverses", "reverses", "plans that reverse", r"revers|backward|feasib|begins with -", 2.5),
    )
)
_COMPRESSED = (
    Fault(
        "jpeg_random",
        "compressed pictures of noise",
        SensorFault(BOTH, "random_jpeg"),
        r"decod|jpeg|compressed",
        start=PlannerStart.COMPRESSED,
    ),
    Fault(
        "jpeg_cut",
        "the first half of each JPEG",
        SensorFault(BOTH, "cut_jpeg"),
        r"decod|jpeg|compressed|truncat|cut",
        start=PlannerStart.COMPRESSED,
    ),
)
_STARTS = (
    Fault(
        "draft_corrupt",
        "a draft of damaged files",
        BrokenFromTheStart(),
        r"draft|target writes alone",
        start=PlannerStart.CORRUPT_DRAFT,
    ),
    Fault(
        "draft_mismatched",
        "a draft for another target",
        BrokenFromTheStart(),
        r"draft|another target",
        start=PlannerStart.MISMATCHED_DRAFT,
    ),
    Fault(
        "full_disk",
        "no room for logs, while NaN odometry gives reason to log",
        SensorFault((ODOMETRY,), "nan"),
        r"finite|nan",
        start=PlannerStart.FULL_DISK,
    ),
    Fault(
        "stale_shared_memory",
        "what a killed planner leaves in /dev/shm, and damaged files beside it",
        BrokenFromTheStart(),
        start=PlannerStart.STALE_SHARED_MEMORY,
    ),
)
# Faults of one start follow each other, so that they can share a planner.
FAULTS = (*_PICTURES, *_ODOMETRY, *_STAMPS, *_TIME, *_PROCESSES, *_MODEL, *_COMPRESSED, *_STARTS)


def faults_named(names: list[str]) -> tuple[Fault, ...]:
    """The faults of these names in their order; all when there is none.

    Raises:
        InputError: naming one that does not exist.
    """
    known = {fault.name for fault in FAULTS}
    for name in names:
        if name not in known:
            msg = f"there is no fault {name!r}; `flatrope bench faults --list` names them"
            raise InputError(msg)
    return tuple(fault for fault in FAULTS if not names or fault.name in names)
