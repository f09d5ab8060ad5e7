"""Counts of what follows what, against counting by hand."""

import random
from collections import Counter

import pytest

from flatrope_planner.speculation.suffix_counts import Context, SuffixCounts

LONGEST = 3
OPENING = -1
Text = tuple[int, ...]


def texts_at_random(seed: int, count: int = 12) -> list[Text]:
    rng = random.Random(seed)
    return [tuple(rng.randrange(4) for _ in range(rng.randrange(1, 9))) for _ in range(count)]


def brute_force(texts: list[Text]) -> dict[Text, Counter[int]]:
    """By context, what follows it how often: every context looked for at every place of every text."""
    counts: dict[Text, Counter[int]] = {}
    for text in texts:
        padded = (OPENING, *text)
        for place in range(1, len(padded)):
            for length in range(min(LONGEST, place) + 1):
                counts.setdefault(padded[place - length : place], Counter())[padded[place]] += 1
    return counts


def found(counts: SuffixCounts, before: Text) -> list[Context]:
    suffixes = counts.at_start()
    for token in before:
        suffixes = counts.behind(suffixes, token)
    return suffixes


def check_against_brute_force(counts: SuffixCounts, texts: list[Text], asked: list[Text]) -> None:
    expected = brute_force(texts)
    for text in asked:
        for length in range(len(text) + 1):
            padded = (OPENING, *text[:length])
            suffixes = found(counts, text[:length])
            for size in range(min(LONGEST, len(padded)) + 1):
                following = expected.get(padded[len(padded) - size :], Counter())
                context = suffixes[size] if size < len(suffixes) else Context()
                assert {token: node.weight for token, node in context.followers.items()} == following
                assert context.followed == following.total()


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_counting_by_hand(seed: int) -> None:
    texts = texts_at_random(seed)
    counts = SuffixCounts(LONGEST)
    for text in texts:
        counts.add(text)
    check_against_brute_force(counts, texts, texts + texts_at_random(seed + 100))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_removed_was_never_there(seed: int) -> None:
    kept, gone = texts_at_random(seed), texts_at_random(seed + 50)
    counts, without = SuffixCounts(LONGEST), SuffixCounts(LONGEST)
    for text in gone + kept:
        counts.add(text)
    for text in kept:
        without.add(text)
    assert len(counts) > len(without)
    for text in gone:
        counts.remove(text)
    assert len(counts) == len(without)
    check_against_brute_force(counts, kept, kept + gone)


def test_weights_count() -> None:
    counts = SuffixCounts(LONGEST)
    counts.add((1, 2), 3.0)
    counts.add((1, 5), 0.5)
    behind = found(counts, (1,))
    assert [context.followed for context in behind] == [7.0, 3.5, 3.5]
    assert behind[1].followers[2].weight == 3.0
