"""What a planner does about speculation that fails it, and what it says."""

import pytest
from stand_ins import SPEC, StraightCore, feed
from test_decoder import TEXT, Scripted, ToyPrompt, ToyState, ToyTarget, chain
from test_exactness_modes import Unsteady
from test_worker import polled_until, working

from flatrope_planner.domain import SpeculationHealth
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.worker import speculation_report
from flatrope_planner.speculation.canary import WINDOW
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.speculation.target import StepResult

RIGHT = chain(10, 11, 12)


def reasoner(target: ToyTarget, drafter: Drafter, exactness: Exactness | None = None) -> Reasoner[ToyPrompt, ToyState]:
    return Reasoner(target, drafter, 8, exactness or Exactness())


class Ageing(Unsteady):
    """Steady at first: a self-test finds nothing."""

    steady = True

    def step(self, state: ToyState, block: Block) -> StepResult:
        return ToyTarget.step(self, state, block) if self.steady else super().step(state, block)


class Wrong(Scripted):
    """Never right; counts the drives."""

    drives = 1

    def propose(self, nodes: int, depth: int) -> Candidates:
        return chain(*(7,) * min(nodes, depth, 2))

    def reset(self) -> None:
        self.drives += 1


@pytest.mark.parametrize("mode", [ExactnessMode.CANONICAL, ExactnessMode.AUDIT])
def test_a_failed_self_test_ends_speculation_and_says_so(mode: ExactnessMode) -> None:
    drafter = Scripted(*[RIGHT] * 40)
    tested = reasoner(Unsteady(), drafter, Exactness(mode, 1 if mode is ExactnessMode.AUDIT else 0))
    for _ in range(2):
        decoded = tested.decode(ToyPrompt())
        assert decoded.token_ids == TEXT
        assert (decoded.speculation.proposed, decoded.speculation.prefill_proposed) == (0, 0)
    health = tested.health
    assert health.broken_promise.startswith("the self-test changed ")
    assert health.broken_promise.endswith("texts on this device: speculation is off")
    assert not health.speculating
    # Nobody asks a drafter that is off, and nobody then complains that it does nothing.
    assert drafter.asked == []
    for _ in range(WINDOW):
        tested.decode(ToyPrompt())
    assert tested.health.problem == ""


def test_a_steady_target_passes_the_self_test_once() -> None:
    class Counting(ToyTarget):
        prompts = 0

        def prefill(self, prompt: ToyPrompt, block: Block) -> tuple[ToyState, object]:  # type: ignore[override]
            self.prompts += 1
            return super().prefill(prompt, block)

    target = Counting()
    tested = reasoner(target, Scripted(*[RIGHT] * 40))
    assert tested.decode(ToyPrompt()).speculation.prefill_accepted == 3
    with_test = target.prompts
    assert with_test > 2
    tested.decode(ToyPrompt())
    assert target.prompts == with_test + 1
    assert tested.health == SpeculationHealth(drafter="scripted", speculating=True)


@pytest.mark.parametrize(
    ("drafter", "mode"), [(NoDrafter(), ExactnessMode.CANONICAL), (Scripted(), ExactnessMode.TOLERANT)]
)
def test_there_is_nothing_to_test_without_a_drafter_or_a_promise(drafter: Drafter, mode: ExactnessMode) -> None:
    tested = reasoner(Unsteady(), drafter, Exactness(mode))
    assert tested.decode(ToyPrompt()).token_ids == TEXT
    assert tested.health == SpeculationHealth(
        drafter=drafter.name, exactness=mode.value, speculating=bool(drafter.name)
    )


@pytest.mark.parametrize(
    ("mode", "ending", "audits"), [(ExactnessMode.AUDIT, ": speculation is off", 2), (ExactnessMode.CANONICAL, "", 3)]
)
def test_an_audit_that_finds_a_difference_is_told(mode: ExactnessMode, ending: str, audits: int) -> None:
    target = Ageing()
    audited = reasoner(target, Scripted(*[RIGHT] * 40), Exactness(mode, 1))
    audited.decode(ToyPrompt())
    assert (audited.health.audited, audited.health.divergences, audited.health.broken_promise) == (1, 0, "")
    target.steady = False
    # The text of the audit is the one that is used.
    assert audited.decode(ToyPrompt()).token_ids == TEXT
    health = audited.health
    assert health.broken_promise == "1 of 2 audited texts differ, at a margin of up to 2.5" + ending
    assert (health.audited, health.divergences, health.speculating) == (2, 1, not ending)
    # Only speculation that goes on has to be audited.
    assert audited.decode(ToyPrompt()).token_ids == TEXT
    assert audited.health.audited == audits


def test_a_draft_that_does_nothing_is_complained_of_while_it_is_used() -> None:
    for drafter, words in ((Scripted(), "proposed nothing"), (Wrong(), "hardly ever right: 1.00 tokens a round")):
        watched = reasoner(ToyTarget(), drafter)
        for _ in range(WINDOW - 1):
            watched.decode(ToyPrompt())
        assert watched.health.problem == ""
        watched.decode(ToyPrompt())
        assert words in watched.health.problem
        assert watched.health.speculating


def test_a_target_alone_has_no_draft_to_complain_of() -> None:
    alone = reasoner(ToyTarget(), NoDrafter())
    for _ in range(WINDOW + 1):
        alone.decode(ToyPrompt())
    assert alone.health == SpeculationHealth()


def test_a_problem_handed_in_is_handed_on() -> None:
    words = "the target writes alone: no draft"
    alone = Reasoner(ToyTarget(), NoDrafter(), 8, Exactness(), words)
    assert alone.health == SpeculationHealth(problem=words)
    assert alone.decode(ToyPrompt()).token_ids == TEXT
    assert alone.health.problem == words


def test_a_new_drive_reaches_the_drafter() -> None:
    drafter = Wrong()
    reasoner(ToyTarget(), drafter).reset()
    assert drafter.drives == 2


@pytest.mark.parametrize(
    ("health", "level", "message"),
    [
        (SpeculationHealth(), Level.OK, "the target writes alone"),
        (SpeculationHealth("hybrid", speculating=True, audited=3), Level.OK, "hybrid drafts"),
        (SpeculationHealth("hybrid", speculating=True, problem="hardly ever right"), Level.WARN, "hardly ever right"),
        (SpeculationHealth(problem="no draft"), Level.WARN, "no draft"),
        # The worse of two is told.
        (SpeculationHealth("hybrid", broken_promise="texts differ", problem="x"), Level.ERROR, "texts differ"),
    ],
)
def test_health_becomes_a_report(health: SpeculationHealth, level: Level, message: str) -> None:
    report = speculation_report(health)
    assert (report.task, report.level, report.message) == ("draft", level, message)
    assert report.values == {
        "drafter": health.drafter or "none",
        "exactness": "canonical",
        "speculation_active": "true" if health.speculating else "false",
        "audited": str(health.audited),
        "divergences": "0",
    }


def test_a_clock_set_back_resets_the_core_before_the_next_plan_and_health_is_shown() -> None:
    inputs, core = PlannerInputs(SPEC.cameras), StraightCore()
    feed(inputs, 0.0, 3.0)
    with working(inputs, lambda: core) as (worker, delivered):
        polled_until(worker, lambda: len(delivered) == 1)
        assert core.resets == 0
        inputs.clear()
        worker.reset()
        core.health = SpeculationHealth(problem="no draft")
        feed(inputs, 1.0, 3.0)
        polled_until(worker, lambda: len(delivered) == 2)
        assert core.resets == 1
        assert (worker.reports()[2].task, worker.reports()[2].level) == ("draft", Level.WARN)
        feed(inputs, 3.05, 4.0)
        polled_until(worker, lambda: len(delivered) == 3)
    assert core.resets == 1
