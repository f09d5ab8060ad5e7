"""What a rationale says will be done: read from its main clauses, in the words of nano and of Alpamayo alike.

A rationale is a command to oneself with a reason behind it: "Nudge left to pass the parked car, since ...". Only what
is commanded counts. What other road users do, and why, stands in clauses that open with a word of `_CAUSAL`.
"""

import re
from dataclasses import dataclass
from enum import Enum

from flatrope_planner.domain import Decision


class Speed(Enum):
    """What is said of the speed."""

    STOP = "stop"
    SLOW = "slow down"
    # Let others go first: slower or not, but not faster.
    YIELD = "yield"
    HOLD = "keep the speed"
    # Drive on, faster or not, but do not stand.
    PROCEED = "proceed"
    ACCELERATE = "accelerate"


class Steering(Enum):
    """What is said of the way."""

    KEEP_LANE = "keep the lane"
    # A shift within or beyond the lane.
    LEFT = "move left"
    RIGHT = "move right"
    # A new direction, at a junction.
    TURN_LEFT = "turn left"
    TURN_RIGHT = "turn right"


@dataclass(frozen=True)
class StatedDecision:
    """What is said; None where nothing is said that a trajectory could break, such as of a speed to be adapted."""

    speed: Speed | None
    steering: Steering | None
    # Words it was read from.
    words: str

    @property
    def decision(self) -> Decision:
        """The one word for it: the side if one is said, else the speed."""
        if self.steering in _SIDES:
            return _SIDES[self.steering]
        return Decision.KEEP if self.speed is None else _SPEEDS[self.speed]


_SIDES: dict[Steering | None, Decision] = {
    Steering.LEFT: Decision.LEFT,
    Steering.TURN_LEFT: Decision.LEFT,
    Steering.RIGHT: Decision.RIGHT,
    Steering.TURN_RIGHT: Decision.RIGHT,
}
_SPEEDS = {
    Speed.STOP: Decision.STOP,
    Speed.SLOW: Decision.SLOW,
    Speed.YIELD: Decision.SLOW,
    Speed.HOLD: Decision.KEEP,
    Speed.PROCEED: Decision.KEEP,
    Speed.ACCELERATE: Decision.ACCELERATE,
}

# Marks of the tokenizer that a sampled text may hold, and verbs that are none.
_MARKUP = re.compile(r"<\|.*?\|>|\bstop[- ]and[- ]go\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?;:\n]+(?=\s|$|[A-Z])")
# Opens a clause that says why or until when, not what.
_CAUSAL = r"because|since|as|due|while|after|until|so that|when|if|where|once|which|who|that|given|although|though"
# "Keep the lane and speed" is one clause.
_CLAUSE = re.compile(
    rf",|\b(?={_CAUSAL}\b)|\b(?:and(?!\s+(?:the\s+|our\s+)?speed\b(?!\s+up))|then|so|therefore|hence|but)\b"
)
_SUBORDINATE = re.compile(rf"(?:{_CAUSAL})\b")
# Makes a clause say what is not done, wherever it stands: "stopping is not needed". One that opens with a negation
# commands nothing anyway.
_DENIAL = re.compile(
    r"(?<!to )\bnot\b|n't\b|\b(?:never|cannot|no (?:longer|further|more|need))\b|"
    r"\b(?:is|are|be) (?:\w+ly )?(?:un(?:necessary|needed)|needless|impossible|forbidden|prohibited|blocked|closed)\b"
)
# Makes what is said a plan for a case that may never come.
_CONDITION = re.compile(r"\b(?:if|unless|in case)\b")
# Right behind what looks like a verb, it makes the name of a thing ("stop sign ahead", "left turn lane");
# not so behind "keep within the lane".
_THING = re.compile(
    r"(?:[- ](?:moving|driving))?[- ](?:signs?|lines?|bars?|lights?|lamps?|signals?|lanes?|pockets?|zones?|"
    r"area|distance|vehicles?|cars?|vans?|trucks?|lorry|lorries|bus(?:es)?|trams?|trains?|bikes?|bicycles?|"
    r"motorcycles?|cyclists?|riders?|pedestrians?|people|persons?|child(?:ren)?|traffic|queues?)\b"
)
# What may stand before the verb: who, that it must be, how.
_LEAD_IN = re.compile(
    r"(?:(?:(?:the\s+)?ego(?:\s+(?:vehicle|car))?|we|i|shall|should|must|will|can|needs?|have|has|is|are|am|going|plans?|"
    r"prepare|begin|start|continue|initiate|perform|execute|make|complete|take|an?|the|to|now|first|please|also|"
    r"safely|gently|slightly|gradually|smoothly|carefully|cautiously|slowly|briefly|firmly|softly|immediately|again|"
    r"just|slight|gentle|smooth)\s+)*"
)
# Verbs are matched with their endings, the first pattern that fits wins. `None` leaves the speed open.
_SPEED_VERBS: tuple[tuple[str, Speed | None], ...] = (
    (r"wait\w*\ for\ .*\b(?:gap|opening|space|room|chance|opportunity)\b", None),
    (r"(?:keep|continu)\w*\ (?:going|driving|moving|on|ahead|straight|forward)\b", Speed.PROCEED),
    (r"(?:hold|keep|maintain)\w*\ (?:the\ |our\ )?(?:position|brakes?)\b", Speed.STOP),
    (r"(?:stay|remain|keep|hold)\w*\ (?:stop|stopped|still|stationary|standing|at\ a\ standstill)\b", Speed.STOP),
    (
        r"""(?:come|coming|brak\w*|slow\w*|decelerat\w*)\ (?:down\ )?(?:\w+ly\ )?to\ (?:an?\ )?(?:\w+\ )?
        (?:stop|halt|standstill)\b""",
        Speed.STOP,
    ),
    (r"(?:stop|stops|stopping|halt|halts|halting|wait|waits|waiting)\b", Speed.STOP),
    (
        r"""(?:slow(?:s|ing)?(?:\ down)?|decelerat\w*|brak(?:e|es|ing)|eas(?:e|es|ing)\ off|
        reduc\w*\ (?:the\ |our\ )?speed)\b""",
        Speed.SLOW,
    ),
    (r"(?:yield(?:s|ing)?\b|(?:give|gives|giving)\ way\b|let(?:s|ting)?\ )", Speed.YIELD),
    (
        r"(?:accelerat\w*|speed(?:s|ing)?\ up|pick(?:s|ing)?\ up\ speed|increas\w*\ (?:the\ |our\ )?speed)\b",
        Speed.ACCELERATE,
    ),
    (r"(?:resum\w*|proceed\w*|go|goes|drives?\ (?:on|off|through)|start\ moving|set\ off)\b", Speed.PROCEED),
    (r"(?:adapt|adjust)\w*\ (?:the\ |our\ )?speed\ to\ (?:slow|decelerat|reduc)", Speed.SLOW),
    (r"(?:adapt|adjust|match|regulat|modulat|creep|control)\w*", None),
    (
        r"""(?:keep|maintain|hold|leav|increas)\w*\ (?:(?:an?|the|enough|sufficient|safe|more|our)\ )*(?:\w+\ )?
        (?:distance|gap|clearance|headway|spacing)\b""",
        None,
    ),
    (r"follow\w*\ (?:the\ )?(?:lead|vehicle|car|truck|van)\b", None),
    (r"(?:keep|maintain|hold|continu)\w*\b.*\bspeed\b", Speed.HOLD),
)
_SIDE = r"(?P<side>left|right)(?:ward|wards)?\b"
# "to the", "into our", "lanes slightly to the".
_TOWARDS = r"""(?:\ (?:over|out|off|back|a|bit|little|slightly|smoothly|lanes?))*
    (?:\ (?:in)?to(?:wards?)?)?(?:\ (?:the|our|one|an?))?(?:\ (?:lanes?|adjacent|next|far|bit|little))*\ """
_STEERING_VERBS: tuple[tuple[str, str], ...] = (
    (rf"(?:keep|stay|remain)\w*\ (?:\w+\ )?(?:(?:on|to|in)\ the\ )?{_SIDE}", "keep"),
    (r"(?P<side>left|right)(?:[-\ ]hand)?\ (?:lane[-\ ]change|shift|nudge)\b", "move"),
    (r"(?P<side>left|right)(?:[-\ ]hand)?\ turn\b", "turn"),
    (rf"(?:turn|mak)\w*(?:\ an?)?(?:\ (?:sharp|slight|tight|protected|unprotected|wide))*\ {_SIDE}", "turn"),
    (
        rf"""(?:nudg|mov|steer|shift|swerv|veer|drift|lean|pull|edg|bear|bias|offset|deviat|evad|pass|overtak)\w*
        {_TOWARDS}{_SIDE}""",
        "move",
    ),
    (
        rf"(?:lane[-\ ]chang|chang|merg|split|exit|fork|switch|cross|branch|diverg)\w*{_TOWARDS}{_SIDE}",
        "move",
    ),
    (
        r"""(?:keep|maintain|hold|follow|stay|remain|continu)\w*\ (?:\w+\ ){0,2}?(?:(?:in|within|on|at)\ )?
        (?:(?:the|our|its)\ )?(?:\w+\ )?(?:lane|center|centre|course|path|route|straight)\b""",
        "keep",
    ),
    (r"(?:keep|hold|continu|cruis|maintain|driv|stay)\w*\b", "keep"),
)
_SIDE_WORDS = {
    ("move", "left"): Steering.LEFT,
    ("move", "right"): Steering.RIGHT,
    ("turn", "left"): Steering.TURN_LEFT,
    ("turn", "right"): Steering.TURN_RIGHT,
}
_READ_SPEED = [(re.compile(pattern, re.VERBOSE), speed) for pattern, speed in _SPEED_VERBS]
_READ_STEERING = [(re.compile(pattern, re.VERBOSE), kind) for pattern, kind in _STEERING_VERBS]


def stated_decision(text: str) -> StatedDecision | None:
    """What the text says will be done, or None if it says nothing of the kind."""
    for sentence in _SENTENCE.split(_MARKUP.sub(" ", text)):
        if _CONDITION.search(sentence.lower()):
            continue
        found = [reading for clause in _main_clauses(sentence) for reading in [_read(clause)] if reading is not None]
        if found:
            return _together(found)
    return None


def decision_of(text: str) -> Decision | None:
    """The decision a rationale stands for, or None when it says none."""
    stated = stated_decision(text)
    return None if stated is None else stated.decision


def _main_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, in small letters, without those that give reasons."""
    clauses = [" ".join(clause.split()) for clause in _CLAUSE.split(sentence.lower())]
    return [clause for clause in clauses if clause and not _SUBORDINATE.match(clause)]


def _read(clause: str) -> StatedDecision | None:
    if _DENIAL.search(clause):
        return None
    lead_in = _LEAD_IN.match(clause)
    rest = clause[lead_in.end() :] if lead_in else clause
    # "continue" and "start" lead in ("continue to slow down") and are verbs ("continue straight").
    for words in (rest, clause):
        stated = _read_verb(words)
        if stated is not None:
            return stated
    return None


def _read_verb(words: str) -> StatedDecision | None:
    spoken = next(((m[0], speed) for pattern, speed in _READ_SPEED if (m := _verb(pattern, words))), None)
    steered = next(
        ((m, kind) for pattern, kind in _READ_STEERING if (m := _verb(pattern, words, named=kind != "keep"))), None
    )
    if spoken is None and steered is None:
        return None
    steering = None
    if steered is not None:
        match, kind = steered
        side = match.groupdict().get("side") or ""
        steering = _SIDE_WORDS.get((kind, side), Steering.KEEP_LANE)
        keeps_lane = "lane" in words or "cent" in words or "straight" in words
        if steering is Steering.KEEP_LANE and not keeps_lane:
            steering = None
    said = spoken[0] if spoken is not None else match[0]
    return StatedDecision(spoken[1] if spoken is not None else None, steering, said.strip())


def _verb(pattern: re.Pattern[str], words: str, *, named: bool = True) -> re.Match[str] | None:
    """The verb the words open with, unless they name a thing and such names may be met."""
    found = pattern.match(words)
    return None if found is None or (named and _THING.match(words, found.end())) else found


def _together(found: list[StatedDecision]) -> StatedDecision:
    """What several clauses say: the first that speaks of the speed, the first that speaks of the way."""
    speed = next((stated.speed for stated in found if stated.speed is not None), None)
    steering = next((stated.steering for stated in found if stated.steering is not None), None)
    return StatedDecision(speed, steering, ", ".join(dict.fromkeys(stated.words for stated in found)))
