"""`flatrope bench decode` on the tiny nano: what it reports, that all write the same, and how lines are summed up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_nano import noise_observation
from tiny_weights import write_companions, write_weights

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.evaluation import decode_benchmark
from flatrope_planner.evaluation.decode_benchmark import DecodeOptions, run_decode_benchmark, table
from flatrope_planner.evaluation.decode_scores import Line, _summary
from flatrope_planner.evaluation.generate_reference import GenerateReference, Written, is_same, nano_inputs, nano_rules
from flatrope_planner.simulation.world import Family, Split
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.vla.nano import NanoTarget

BUDGET, MOMENTS = 12, 2
ALL = {
    *("generate", "generate-prompt-lookup", "none", "prompt-lookup", "retrieval-chain", "retrieval"),
    *("flatrope-8", "flatrope-8-tree", "hybrid", "oracle", "always-wrong", "random"),
}


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Short texts, one kind of scene, no further processes."""

    def here(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int) -> Iterator[tuple[Any, Any]]:
        assert jobs == 1
        return ((task, work(task)) for task in tasks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NanoTarget, "token_budget", BUDGET)
        patch.setattr(decode_benchmark, "SPLITS", {"val": (Split.VAL, (Family.CURVE,))})
        patch.setattr(decode_benchmark, "run_in_workers", here)
        yield


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf") / "nano"
    write_companions(folder, write_weights(folder))
    return folder


@pytest.fixture(scope="module")
def result(weights: Path) -> dict[str, Any]:
    options = DecodeOptions(("val",), ("float32", "bfloat16"), moments=MOMENTS, jobs=1, weights=weights)
    return run_decode_benchmark(options)


def test_everyone_takes_part_and_the_figures_stand_where_they_are_looked_for(result: dict[str, Any]) -> None:
    assert set(result["drafters"]) == set(result["tau_ceiling"]) == ALL
    for name, row in result["drafters"].items():
        assert {"tau", "rounds", "acceptance_rate", "identical", "identical_hf_fp32", "speedup"} <= set(row)
        assert row["tau_ceiling"] == result["tau_ceiling"][name]
        assert row["speedup"] > 0.0
        assert 0.0 <= row["acceptance_rate"] <= 1.0
    assert result["drafters"]["generate"]["speedup"] == 1.0
    assert result["drafters"]["none"]["speedup_plain"] == 1.0
    # Two precisions of one drive.
    assert result["rationales"] == 2 * MOMENTS
    assert set(result["splits"]["val"]) == {"float32", "bfloat16"}


def test_all_write_what_the_target_alone_and_generate_write(result: dict[str, Any]) -> None:
    for name, row in result["drafters"].items():
        assert (row["identical"], row["identical_hf_fp32"]) == (1.0, 1.0), name


def test_acceptance_is_what_each_contestant_can_reach(result: dict[str, Any]) -> None:
    rows = result["drafters"]
    # All texts are as long as the budget: 11 tokens behind the first one, one a round, or eight.
    assert (rows["none"]["tau"], rows["none"]["tau_ceiling"], rows["none"]["rounds"]) == (1.0, 1.0, 11.0)
    assert (rows["oracle"]["tau"], rows["oracle"]["rounds"], rows["oracle"]["acceptance_rate"]) == (5.5, 2.0, 1.0)
    assert (rows["always-wrong"]["tau"], rows["always-wrong"]["acceptance_rate"]) == (1.0, 0.0)
    assert 1.0 < rows["random"]["tau"] < 5.5
    assert rows["oracle"]["tau"] == rows["oracle"]["tau_ceiling"]
    for name, row in rows.items():
        assert 1.0 <= row["tau"] <= row["tau_ceiling"], name


def test_the_table_has_a_line_for_each(result: dict[str, Any]) -> None:
    lines = [line.split()[0] for line in table(result).splitlines() if line]
    assert all(lines.count(name) == 2 for name in ALL)


def test_what_cannot_be_measured_is_refused(weights: Path, tmp_path: Path) -> None:
    options = DecodeOptions(("val",), ("float32",), moments=0, jobs=1, weights=weights)
    with pytest.raises(InputError, match="1 episodes of 0 moments"):
        run_decode_benchmark(options)
    with pytest.raises(SetupError, match="flatrope train draft"):
        run_decode_benchmark(replace(options, moments=1, drafts={"mine": tmp_path / "none"}))


@pytest.mark.parametrize("name", ["none", "oracle", "flatrope-8", "hybrid", "generate"])
def test_a_further_draft_hides_no_other(weights: Path, name: str) -> None:
    options = DecodeOptions(("val",), ("float32",), jobs=1, weights=weights)
    with pytest.raises(InputError, match=f"--draft {name}=...: the name is taken"):
        run_decode_benchmark(replace(options, drafts={name: weights / "drafts" / "flatrope-8"}))


def test_the_judge_writes_what_the_engine_writes_and_leaves_nothing_behind(weights: Path) -> None:
    target = NanoTarget.load(weights)
    rules = nano_rules(target)
    plain, lookup = GenerateReference(target.vlm, rules), GenerateReference(target.vlm, rules, lookup_tokens=7)
    for seed in range(3):
        observation = noise_observation(seed)
        prompt = target.prepare(observation)
        own = Decoder(target, None, 8).decode(prompt).token_ids
        written = plain.write(prompt.token_ids, nano_inputs(target, observation, prompt))
        assert written.tokens == own[:BUDGET]
        assert written.passes == BUDGET - 1
        copied = lookup.write(prompt.token_ids, nano_inputs(target, observation, prompt))
        assert copied.tokens == written.tokens
        assert copied.passes <= written.passes
        assert Decoder(target, None, 8).decode(prompt).token_ids == own
    assert not target.vlm.model.language_model._forward_hooks


def test_forced_end_marks_are_no_difference_and_others_are() -> None:
    written = Written((5, 6, 7), 0.1, 2)
    assert is_same(written, (5, 6, 7, 29, 30))
    assert is_same(written, (5, 6, 7))
    assert not is_same(written, (5, 6))
    assert not is_same(written, (5, 7, 6, 29))


def test_a_summary_by_hand() -> None:
    first = Line(True, True, 14, 4, 20, 9, 2, 2, 0.04, 0.01)
    second = Line(True, False, 7, 3, 5, 6, 1, 1, 0.02, 0.0)
    lines, others = [first, second], [replace(first, reasoning_s=0.12), replace(second, reasoning_s=0.03)]
    slower = [replace(line, reasoning_s=0.06) for line in lines]
    assert _summary(lines, others, slower) == {
        # 21 tokens in 7 rounds, and in 3 at best.
        "tau": 3.0,
        "tau_ceiling": 7.0,
        "rounds": 3.5,
        # 15 of 25.
        "acceptance_rate": 0.6,
        "foreseen": 1.5,
        "identical": 1.0,
        "identical_generate": 0.5,
        "reasoning_ms": 30.0,
        "draft_ms": 5.0,
        # 0.15 s and 0.12 s over 0.06 s.
        "speedup": 2.5,
        "speedup_plain": 2.0,
    }
    idle = replace(first, rounds=0, proposed=0, accepted=0)
    assert (_summary([idle], others, slower)["tau"], _summary([idle], others, slower)["acceptance_rate"]) == (0.0, 0.0)
