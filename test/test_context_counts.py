"""Contexts and counts of what follows them, against counting by hand."""

import random
from collections import Counter

import pytest

from flatrope_planner.speculation.context_counts import ContextCounts
from flatrope_planner.speculation.contexts import (
    BEGINNING,
    LONGEST_CONTEXT,
    OPENING,
    PATTERNS,
    PLACED,
    Text,
    contexts,
)


def texts_at_random(seed: int, count: int = 12) -> list[Text]:
    rng = random.Random(seed)
    return [tuple(rng.randrange(4) for _ in range(rng.randrange(1, 15))) for _ in range(count)]


def found(counts: ContextCounts, text: Text) -> dict[int, dict[int, float]]:
    """What followed each known context of a text, by its kind."""
    return {key[0]: followers.weights for key, followers in counts.behind(text)}


def runs_by_brute_force(texts: list[Text]) -> dict[Text, Counter[int]]:
    """By run of latest tokens, what follows it how often: every run looked for at every place of every text."""
    counts: dict[Text, Counter[int]] = {}
    for text in texts:
        padded = (BEGINNING, *text)
        for place in range(1, len(padded)):
            for length in range(min(LONGEST_CONTEXT, place) + 1):
                counts.setdefault(padded[place - length : place], Counter())[padded[place]] += 1
    return counts


@pytest.mark.parametrize("seed", range(4))
def test_runs_are_counted_as_by_hand(seed: int) -> None:
    texts, counts = texts_at_random(seed), ContextCounts()
    for text in texts:
        counts.add(text)
    expected = runs_by_brute_force(texts)
    for text in texts + texts_at_random(seed + 100):
        for place in range(len(text) + 1):
            padded = (BEGINNING, *text[:place])
            got = found(counts, text[:place])
            for length in range(min(LONGEST_CONTEXT, len(padded)) + 1):
                assert got.get(length, {}) == expected.get(padded[len(padded) - length :], Counter())


def test_the_contexts_of_a_text() -> None:
    got = {key[0]: key[1:] for key in contexts((10, 11, 12, 13, 14, 15, 16))}
    assert set(got) == set(range(LONGEST_CONTEXT + 1 - 2)) | set(range(LONGEST_CONTEXT + 1, OPENING))
    assert got[0] == ()
    assert got[3] == (14, 15, 16)
    assert got[8] == (BEGINNING, 10, 11, 12, 13, 14, 15, 16)
    patterns = dict(zip(PATTERNS, range(LONGEST_CONTEXT + 1, OPENING), strict=False))
    assert got[patterns[0, 1, -1]] == (10, 11, 16)
    assert got[patterns[-4, -3, -1]] == (13, 14, 16)
    assert [got[kind] for kind in range(OPENING - len(PLACED), OPENING)] == [(7, 16), (7, 15, 16)]


def test_patterns_leave_at_least_one_token_out() -> None:
    # Shorter texts have no such context: a run of latest tokens already says all of it.
    pattern = LONGEST_CONTEXT + 1 + PATTERNS.index((0, 1, -1))
    assert pattern not in {key[0] for key in contexts((1, 2, 3))}
    assert (pattern, 1, 2, 4) in set(contexts((1, 2, 3, 4)))
    assert [key[0] for key in contexts(())] == [0, 1, OPENING]


def test_an_unusual_word_is_read_over() -> None:
    counts = ContextCounts()
    counts.add((1, 2, 3, 4, 5, 6))
    kinds = {key[0] for key, followers in counts.behind((1, 2, 3, 4, 99)) if followers.weights == {6: 1.0}}
    assert LONGEST_CONTEXT + 1 + PATTERNS.index((-4, -3, -2)) in kinds


def test_weights_count() -> None:
    counts = ContextCounts()
    counts.add((1, 2), 3.0)
    counts.add((1, 5), 0.5)
    assert {key: followers.total for key, followers in counts.behind((1,))} == {
        (0,): 7.0,
        (1, 1): 3.5,
        (2, BEGINNING, 1): 3.5,
        (OPENING - 2, 1, 1): 3.5,
    }
    assert found(counts, (1,))[1] == {2: 3.0, 5: 0.5}


def test_texts_end_with_what_nothing_follows() -> None:
    counts = ContextCounts()
    counts.add((1, 2, 9))
    counts.add((1, 2))
    closing = [(counts.closes(text), counts.goes_on_behind(text)) for text in ((), (1,), (1, 2), (9,), (7,))]
    assert closing == [(False, False), (False, True), (True, True), (True, False), (False, False)]
