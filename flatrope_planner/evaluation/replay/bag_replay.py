"""Replays one bag: messages in, rows of plans out, in the order of their t0, while the bag streams by."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_source import BagSource, RawMessage
from flatrope_planner.evaluation.replay.calibration import Calibration
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.driven_path import DrivenPath, DrivenPoses
from flatrope_planner.evaluation.replay.holes import Holes, needed_s
from flatrope_planner.evaluation.replay.leaps import Leaps
from flatrope_planner.evaluation.replay.messages import odometry_sample, read, stamp_of, typestore_of
from flatrope_planner.evaluation.replay.moments import SmallPicture, small_picture
from flatrope_planner.evaluation.replay.picture_store import RawPicture
from flatrope_planner.evaluation.replay.pictures import decoded_picture
from flatrope_planner.evaluation.replay.recorded_plans import RecordedPlans
from flatrope_planner.evaluation.replay.recorded_time import RecordedTime
from flatrope_planner.evaluation.replay.rejections import Rejections
from flatrope_planner.evaluation.replay.rows import OpenTick, RowMaker
from flatrope_planner.evaluation.replay.schedule import AtTimes, EveryPeriod, Schedule
from flatrope_planner.evaluation.replay.stepping import Stepper
from flatrope_planner.evaluation.replay.topics import TopicWishes, choose_topics
from flatrope_planner.planning.camera_identity import CameraIdentity
from flatrope_planner.planning.driven_arc import EgoMoment, driven_arc
from flatrope_planner.planning.ego_motion import AUTO, EgoMotion
from flatrope_planner.planning.odometry import OdometrySample

# Of the driven speed this much is kept for the timeline.
TIMELINE_PERIOD_S = 0.2


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay a bag."""

    # Shortest time between the observations of two plans (s).
    period_s: float
    # Plan at the t0 of the plans that were recorded instead.
    at_recorded: bool = False
    wishes: TopicWishes = field(default_factory=TopicWishes)
    # How far ahead of the rear axle the odometry's origin is (m), and in which frame its twist: child, parent, auto.
    rear_axle_offset_m: float = 0.0
    twist_frame: str = AUTO


@dataclass(frozen=True)
class ScoredTick:
    """A plan with everything that is known of it."""

    row: dict[str, Any]
    tick: OpenTick
    driven: DrivenPoses
    # What the first camera saw at t0.
    picture: SmallPicture


class BagReplay:
    """One pass over an open bag."""

    def __init__(self, source: BagSource, contestants: Contestants, options: ReplayOptions) -> None:
        """Find the topics.

        Raises:
            InputError: if an input of the planner is not in the bag.
        """
        self._start_ns, self._end_ns = source.span_ns
        spec = contestants.planner.observation_spec
        self.topics = choose_topics(source.topics, spec.cameras, options.wishes)
        self._source, self._contestants = source, contestants
        self._store = typestore_of(source.connections)
        self._stepper = Stepper(spec, self._schedule(options), self._decoded, self._begin_anew)
        self._identity = CameraIdentity(self.topics.cameras)
        self._motion = EgoMotion(options.rear_axle_offset_m, options.twist_frame)
        self._cameras = {topic: camera for camera, topic in self.topics.cameras.items()}
        self._rows = RowMaker()
        self._time = RecordedTime(self._start_ns)
        self._holes = Holes(options.period_s, self._time.silences, needed_s(spec))
        self._path, self._open = DrivenPath(), deque[tuple[OpenTick, SmallPicture]]()
        # Scored, but not handed out yet.
        self._scored = deque[ScoredTick]()
        self._drive = 0
        self.calibration, self.recorded_plans = Calibration(), RecordedPlans()
        self.ego_frame = self.frame_id = ""
        # Topic -> messages that were read, and what of them was of no use.
        self.messages: Counter[str] = Counter()
        self.rejections = Rejections()
        self._leaps = Leaps((self.topics.odometry, *self._cameras), self.rejections)
        # What speaks against the cameras being who they are called, in words, in the order of time.
        self.warnings: list[str] = []
        # Seconds since the bag's start, and speed driven (m/s).
        self.driven: list[tuple[float, float]] = []
        self.planning_s = 0.0

    @property
    def duration_s(self) -> float:
        """From the first message to the last stamp."""
        return self._time.end_s

    @property
    def drives(self) -> int:
        """How often the stamps began."""
        return self._drive + 1

    @property
    def not_ready(self) -> dict[str, int]:
        """Why there was no observation when one was due -> how often."""
        return self._stepper.not_ready.counts

    @property
    def looked_at(self) -> Counter[str]:
        """Topic -> pictures that a plan asked for."""
        return self._stepper.looked_at

    def useless(self) -> list[str]:
        """What was of no use, a line for each topic and kind; once all is read."""
        return self.rejections.lines(self.messages, self.looked_at)

    def holes(self) -> list[str]:
        """Stretches for which nothing was planned, a line each; once all is read."""
        spacing_s = max(self._time.spacing_s(topic) for topic in self.topics.cameras.values())
        self._time.close()
        # Cameras slower than the planner wants are no excuse.
        spacing_s = min(spacing_s, self._contestants.planner.observation_spec.frame_period_s)
        return self._holes.lines(self._time.end_s, self._stepper.refused.commonest, spacing_s)

    def why_never_ready(self) -> str:
        """What kept the planner from an observation most often; empty if nothing did."""
        return self._stepper.not_ready.commonest

    def _schedule(self, options: ReplayOptions) -> Schedule:
        """The schedule asked for; that of recorded plans takes a pass of its own, over nothing but them."""
        if not options.at_recorded:
            return EveryPeriod(options.period_s)
        if not self.topics.recorded_plans:
            msg = "no recorded plans to plan at the times of"
            raise InputError(msg)
        times_ns = set[int]()
        for moment in self._source.moments(self.topics.recorded_plans):
            for message in moment:
                # Those without a stamp are told of when they are measured.
                with suppress(InputError):
                    times_ns.add(stamp_of(message))
        return AtTimes(times_ns)

    def scored(self, told: Callable[[float], None]) -> Iterator[ScoredTick]:
        """The plans; `told` hears how much of the bag has been read (0 to 1)."""
        self._contestants.reset()
        span_ns = max(self._end_ns - self._start_ns, 1)
        for moment in self._source.moments(self.topics.names):
            now_ns = moment[0].log_ns
            for message in moment:
                self.messages[message.topic] += 1
                for settled in self._leaps.settled(message):
                    self._take(settled)
                self._plan(now_ns)
            self._close(self._path.newest_ns)
            yield from self._handed_out()
            told((now_ns - self._start_ns) / span_ns)
        for message in self._leaps.rest():
            self._take(message)
        self._plan(None)
        self._close(None)
        yield from self._handed_out()
        for topic, complaint in self._stepper.broken:
            self.rejections.add(topic, complaint, undecodable=True)
        for topic, complaint in self._stepper.strays():
            self.rejections.add(topic, complaint)

    def _handed_out(self) -> Iterator[ScoredTick]:
        while self._scored:
            yield self._scored.popleft()

    def _begin_anew(self) -> None:
        """What is open ends with what was driven until now."""
        self._close(None)
        self._contestants.reset()
        self._path, self._drive = DrivenPath(), self._drive + 1
        self._time.begin_anew()
        self._holes.begin_anew()
        self._leaps.begin_anew()

    def _decoded(self, message: RawMessage) -> Image:
        image, frame_id = decoded_picture(self._store, message)
        self._identity.look(self._cameras[message.topic], image, frame_id)
        self.warnings += [sign for sign in self._identity.signs() if sign not in self.warnings]
        return image

    def _take(self, message: RawMessage) -> None:
        """Take in one message."""
        expected = self.topics.types_of(message.topic)
        if message.message_type not in expected:
            complaint = f"{message.topic}: a {message.message_type}, expected {' or '.join(expected)}"
            self.rejections.add(message.topic, complaint)
            return
        try:
            if message.topic in self._cameras:
                picture = RawPicture(self._cameras[message.topic], stamp_of(message), message)
                self._stepper.add_picture(picture, message.log_ns)
                self._time.hear_picture(message.topic, picture.stamp_ns, message.log_ns)
            elif message.topic == self.topics.odometry:
                stamp_of(message)
                self._take_odometry(odometry_sample(read(self._store, message)), message.log_ns)
            else:
                self._take_other(message)
        except InputError as err:
            self.rejections.add(message.topic, str(err))

    def _take_odometry(self, sample: OdometrySample, log_ns: int) -> None:
        self.frame_id, self.ego_frame = sample.frames
        counted = self._stepper.add_odometry(self._motion.take(sample), self.topics.odometry)
        if not counted:
            # Perhaps time begins anew: what has come until now is planned first.
            self._plan(None)
        for each in counted:
            self._path.add(each)
            self._time.hear_odometry(self.topics.odometry, each.stamp_ns, log_ns)
            into_s = self._time.into_s(each.stamp_ns)
            if not self.driven or abs(into_s - self.driven[-1][0]) >= TIMELINE_PERIOD_S - 1e-6:
                self.driven.append((round(into_s, 3), round(each.speed_mps, 3)))

    def _take_other(self, message: RawMessage) -> None:
        content = read(self._store, message)
        if message.topic == self.topics.command:
            self._stepper.set_command(content.data)
        elif message.topic in self.topics.recorded_plans:
            self._take_plan(message, content)
        else:
            self.calibration.take(message.topic, message.message_type, content)

    def _take_plan(self, message: RawMessage, plan: Any) -> None:
        stamp_of(message)
        if self.frame_id not in ("", plan.header.frame_id):
            msg = f"{message.topic}: a plan in {plan.header.frame_id!r}, the odometry is in {self.frame_id!r}"
            raise InputError(msg)
        self.recorded_plans.take(plan)

    def _plan(self, now_ns: int | None) -> None:
        """Plan what has fallen due at this time of the recording."""
        for due in self._stepper.due(now_ns):
            started_s = time.perf_counter()
            planned = self._contestants.plan(due.observation)
            self.planning_s += time.perf_counter() - started_s
            first_camera = next(iter(due.observation.frames.values()))
            ego = EgoMoment(planned.plan.t0_ns, due.pose_t0, self.frame_id, driven_arc(due.observation.ego_history))
            tick = OpenTick(planned, ego, self._drive, self._time.into_s(planned.plan.t0_ns))
            self._holes.planned(tick.t0_s, due.refused)
            self._open.append((tick, small_picture(first_camera[-1].image)))

    def _close(self, until_ns: int | None) -> None:
        """Score the plans whose future has been driven until a time; None: all of them."""
        self.recorded_plans.measure(self._path, until_ns)
        while self._open and (until_ns is None or self._open[0][0].end_ns <= until_ns):
            tick, picture = self._open.popleft()
            row, driven = self._rows.row(tick, self._path)
            self._scored.append(ScoredTick(row, _without_samples(tick), driven, picture))


def _without_samples(tick: OpenTick) -> OpenTick:
    """What is scored need not be carried on."""
    return replace(tick, planned=replace(tick.planned, samples=(), plain=None))
