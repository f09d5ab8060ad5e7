"""The simulation's loop: its schedule, whom it obeys, and that it waits."""

import time
from dataclasses import replace
from itertools import pairwise
from threading import Thread

import pytest

from flatrope_planner.domain import DriveCommand, seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.nodes.command_mailbox import CommandMailbox
from flatrope_planner.nodes.driving import (
    CAMERA_STEPS,
    GAP_S,
    HANDOVER_STEPS,
    Driving,
    DrivingSettings,
    Moment,
)
from flatrope_planner.simulation.tour import families_of
from flatrope_planner.simulation.world import STEP_S, TRAINED_FAMILIES, Family, Split, World

FAST = DrivingSettings(
    families=(Family.FREE_ROAD,),
    split=Split.VAL,
    seed=1,
    real_time_factor=0.0,
    wait_for_command=True,
    start_timeout_s=30.0,
    control_timeout_s=30.0,
    once=True,
)
HALT = DriveCommand(0.0, 0.0)


class Notebook:
    """A stage that writes down what it is shown, and may answer."""

    def __init__(self, mailbox: CommandMailbox, answer_until: int = 10**9, close_at: int = 10**9) -> None:
        self._mailbox, self._answer_until, self._close_at = mailbox, answer_until, close_at
        # Per moment: steps, stamp, pictures, reference, speed.
        self.moments: list[tuple[int, int, bool, bool, float]] = []
        self.concluded: list[World] = []
        self.timeouts: list[int] = []
        self.warnings: list[str] = []

    def show(self, moment: Moment) -> None:
        world = moment.world
        reference = moment.reference is not None
        self.moments.append((world.steps, moment.stamp_ns, moment.has_pictures, reference, world.ego.speed_mps))
        if HANDOVER_STEPS <= world.steps < self._answer_until:
            self._mailbox.put(DriveCommand(6.0, 0.0))
        if world.steps == self._close_at:
            self._mailbox.close()

    def conclude(self, world: World, control_timeouts: int) -> None:
        self.concluded.append(world)
        self.timeouts.append(control_timeouts)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_schedule_of_an_episode() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox)
    Driving(FAST, mailbox, stage).run()
    steps, stamps, pictures, references, speeds = zip(*stage.moments, strict=True)
    assert list(steps) == list(range(len(steps)))
    assert stamps[0] == seconds_to_ns(1.0)
    assert {later - earlier for earlier, later in pairwise(stamps)} == {seconds_to_ns(STEP_S)}
    assert [step for step in steps if pictures[step]] == list(range(0, len(steps), 2))
    assert [step for step in steps[:-1] if references[step]] == list(range(0, len(steps) - 1, 10))
    # It obeys our 6 m/s, whatever the reference driver would do.
    assert speeds[-1] == pytest.approx(6.0, abs=0.1)
    assert len(stage.concluded) == 1
    assert stage.concluded[0].outcome.done
    assert not stage.warnings
    assert stage.timeouts == [0]


def test_until_the_handover_commands_are_ignored() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox)
    show = stage.show

    def show_and_halt(moment: Moment) -> None:
        show(moment)
        if moment.world.steps < HANDOVER_STEPS:
            mailbox.put(HALT)

    stage.show = show_and_halt  # type: ignore[method-assign]
    Driving(FAST, mailbox, stage).run()
    speeds = [speed for steps, _, _, _, speed in stage.moments if steps <= HANDOVER_STEPS]
    assert min(speeds) > 3.0


def stands_at(stage: Notebook, step: int) -> None:
    """Wait until the world has come to this step, and see that it goes no further."""
    until_s = time.monotonic() + 20.0
    while not stage.moments or stage.moments[-1][0] < step:
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.01)
    time.sleep(0.2)
    assert stage.moments[-1][0] == step


def test_without_commands_time_stands_still_after_one_picture() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox, answer_until=60)
    thread = Thread(target=Driving(FAST, mailbox, stage).run)
    thread.start()
    # The last command, given at step 59, is good for two steps.
    stands_at(stage, 59 + CAMERA_STEPS)
    mailbox.put(HALT)
    stands_at(stage, 59 + 2 * CAMERA_STEPS)
    assert thread.is_alive()
    mailbox.close()
    thread.join(10.0)
    assert not thread.is_alive()


def test_standing_still_has_an_end_and_is_told() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox, answer_until=0, close_at=HANDOVER_STEPS + 6)
    Driving(replace(FAST, start_timeout_s=0.2, control_timeout_s=0.01), mailbox, stage).run()
    # Only the first command may take long, as a model may have to be loaded.
    assert stage.warnings == ["no command for 0.2 s: the reference driver goes on, one picture at a time"]
    assert stage.moments[-1][0] == HANDOVER_STEPS + 6


def test_every_wait_in_vain_is_counted_for_its_episode() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox, answer_until=0)
    show = stage.show

    def show_and_answer_in_the_second(moment: Moment) -> None:
        show(moment)
        if stage.concluded:
            mailbox.put(DriveCommand(6.0, 0.0))

    stage.show = show_and_answer_in_the_second  # type: ignore[method-assign]
    families = (Family.FREE_ROAD, Family.FREE_ROAD)
    Driving(replace(FAST, families=families, start_timeout_s=0.0, control_timeout_s=0.0), mailbox, stage).run()
    # Without any command the car waits before every other step from the handover on; the last moment has no step.
    steps = stage.concluded[0].steps - HANDOVER_STEPS
    assert stage.timeouts == [-(-steps // CAMERA_STEPS), 0]


def test_who_does_not_wait_drives_on_without_commands() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox, answer_until=0)
    Driving(replace(FAST, wait_for_command=False), mailbox, stage).run()
    assert stage.concluded[0].outcome.success


def test_episodes_are_apart_in_time_and_seeds_go_on() -> None:
    mailbox = CommandMailbox()
    stage = Notebook(mailbox)
    conclude = stage.conclude

    def conclude_three(world: World, control_timeouts: int) -> None:
        conclude(world, control_timeouts)
        if len(stage.concluded) == 3:
            mailbox.close()

    stage.conclude = conclude_three  # type: ignore[method-assign]
    families = (Family.FREE_ROAD, Family.CURVE)
    Driving(replace(FAST, families=families, once=False), mailbox, stage).run()
    assert [(world.family, world.seed) for world in stage.concluded] == [
        (Family.FREE_ROAD, 1),
        (Family.CURVE, 1),
        (Family.FREE_ROAD, 2),
    ]
    first_of_second = next(i for i, moment in enumerate(stage.moments) if i and moment[0] == 0)
    gap_ns = stage.moments[first_of_second][1] - stage.moments[first_of_second - 1][1]
    assert gap_ns == seconds_to_ns(GAP_S)


def test_families_by_name() -> None:
    assert families_of("tour") == TRAINED_FAMILIES
    assert families_of("lead, cones") == (Family.LEAD, Family.CONES)
    with pytest.raises(InputError, match=r"'lead,boat'.*stop_sign"):
        families_of("lead,boat")
