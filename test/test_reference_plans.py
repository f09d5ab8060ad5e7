"""Plans that are known to be good, those of the reference driver: hardly one may be refused or called inconsistent."""

import pytest

from flatrope_planner.domain import Rationale
from flatrope_planner.evaluation.closed_loop import STEPS_PER_PLAN, ReferencePilot
from flatrope_planner.planning.consistency import Consistency, compare
from flatrope_planner.planning.driven_arc import DrivenArc
from flatrope_planner.planning.plan_validator import refusal
from flatrope_planner.simulation.driver import ReferenceDriver
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Family, World


@pytest.mark.parametrize("family", TRAINED_FAMILIES)
def test_good_plans_pass_and_do_what_they_say(family: Family) -> None:
    world = World(family, seed=7)
    pilot, driver = ReferencePilot(world), ReferenceDriver(world)
    refused, broken, plans = [], 0, 0
    while not world.outcome.done:
        if world.steps % (4 * STEPS_PER_PLAN) == 0:
            plan, ego = driver.plan(), DrivenArc(world.ego.speed_mps, world.ego.curvature)
            refused.append(refusal(plan.trajectory, ego))
            finding = compare(Rationale(plan.rationale), plan.trajectory, ego)
            broken += finding.consistency is Consistency.INCONSISTENT
            plans += 1
        world.step(pilot.command())
    assert refused == [""] * plans
    # On a bend a shift may be taken for its opposite.
    assert plans > 3
    assert broken <= 1
