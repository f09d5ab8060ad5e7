"""One source's samples: late ones, strays, restarts, and any rate within bounded memory."""

from dataclasses import dataclass

import numpy as np
import pytest

from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.planning.stream import Stream


@dataclass(frozen=True)
class Sample:
    stamp_ns: int


def at(time_s: float) -> Sample:
    return Sample(seconds_to_ns(time_s))


def stream(*times_s: float) -> Stream[Sample]:
    made: Stream[Sample] = Stream(span_s=5.0, capacity=100)
    for time_s in times_s:
        assert not made.take(at(time_s))
    return made


def times(of: Stream[Sample]) -> list[float]:
    assert [sample.stamp_ns for sample in of.samples] == of.stamps_ns
    return [stamp_ns * 1e-9 for stamp_ns in of.stamps_ns]


def test_late_samples_find_their_place() -> None:
    assert times(stream(1.0, 1.2, 1.1, 0.9, 1.3)) == pytest.approx([0.9, 1.0, 1.1, 1.2, 1.3])


def test_a_stamp_that_came_before_is_refused_and_the_first_sample_stays() -> None:
    of = stream(1.0, 1.1)
    for again_s in (1.0, 1.1):
        with pytest.raises(InputError, match=rf"stamp {again_s:.3f} s has come before"):
            of.take(at(again_s))
    assert len(of.samples) == 2


@pytest.mark.parametrize("back_s", [1.0, 100.0])
def test_strays_from_long_before_are_refused_and_change_nothing(back_s: float) -> None:
    of, good_s = stream(), 200.0 + 0.1 * np.arange(20)
    of.take(at(good_s[0]))
    for time_s in good_s[1:]:
        # Two before each good one, as a second publisher with a time of its own sends them.
        for early_s in (0.0, 0.01):
            with pytest.raises(InputError, match=r"behind the newest one"):
                of.take(at(time_s - back_s + early_s))
        assert not of.take(at(time_s))
    assert times(of) == pytest.approx(good_s)


@pytest.mark.parametrize("back_s", [1.0, 3.0, 100.0])
def test_three_in_a_row_from_before_are_a_restart_and_all_of_them_stay(back_s: float) -> None:
    of = stream(*np.arange(100.0, 104.0, 0.1))
    restarts = []
    for step in range(5):
        try:
            restarts.append(of.take(at(103.9 - back_s + 0.1 * step)))
        except InputError:
            restarts.append(False)
    assert restarts == [False, False, True, False, False]
    assert times(of) == pytest.approx([103.9 - back_s + 0.1 * step for step in range(5)])


def test_stamps_that_do_not_rise_are_no_restart() -> None:
    of = stream(100.0)
    for time_s in (3.0, 3.0, 2.0, 2.5, 2.5, 1.0):
        with pytest.raises(InputError):
            of.take(at(time_s))
    assert times(of) == [100.0]


def test_one_stamp_from_far_ahead_blocks_its_source_for_three_samples_at_most() -> None:
    of = stream(1.0, 1.1, 1e6)
    for time_s in (1.2, 1.3):
        with pytest.raises(InputError):
            of.take(at(time_s))
    assert of.take(at(1.4))
    assert times(of) == pytest.approx([1.2, 1.3, 1.4])


@pytest.mark.parametrize("rate_hz", [10.0, 100.0, 1000.0])
def test_a_source_of_any_rate_fills_the_span_within_the_capacity(rate_hz: float) -> None:
    of = stream(*np.arange(1.0, 21.0, 1.0 / rate_hz))
    kept = np.array(times(of))
    assert len(kept) <= 100
    assert kept[-1] == pytest.approx(21.0 - 1.0 / rate_hz)
    # Nothing within the last five seconds is further than the spacing from a sample that was kept.
    assert kept[-1] - kept[0] >= 5.0 - 0.11
    assert np.diff(kept).max() <= 0.1 + 1e-9


def test_the_nearest_sample() -> None:
    of = stream(1.0, 1.4, 2.0)
    wanted = {0.0: 1.0, 1.19: 1.0, 1.2: 1.0, 1.21: 1.4, 1.9: 2.0, 9.0: 2.0}
    for time_s, nearest_s in wanted.items():
        assert of.nearest(seconds_to_ns(time_s)) == at(nearest_s)
    assert stream().nearest(0) is None
