"""Trees of the likeliest paths, against enumeration."""

from itertools import product

import numpy as np
import pytest

from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.tree import Guess, grow_chain, grow_tree

# P(next | last token of the path), token 3 ends.
TABLE = {None: (0.5, 0.3, 0.15, 0.05), 0: (0.1, 0.6, 0.2, 0.1), 1: (0.7, 0.05, 0.2, 0.05), 2: (0.25, 0.3, 0.2, 0.25)}


def continuations(path: tuple[int, ...]) -> list[Guess]:
    if path and path[-1] == 3:
        return []
    row = TABLE[path[-1] if path else None]
    return [Guess(int(token), row[token], "table") for token in np.argsort(row)[::-1]]


def probability(path: tuple[int, ...]) -> float:
    result, last = 1.0, None
    for token in path:
        result *= 0.0 if last == 3 else TABLE[last][token]
        last = token
    return result


def paths_of(tree: Candidates) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens, tree.parents, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return paths


@pytest.mark.parametrize("nodes", [1, 5, 20])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_a_tree_holds_the_likeliest_paths_in_order(nodes: int, depth: int) -> None:
    every = [path for length in range(1, depth + 1) for path in product(range(4), repeat=length)]
    every = [path for path in every if probability(path) > 0.0]
    wanted = sorted((probability(path) for path in every), reverse=True)[:nodes]
    got = paths_of(grow_tree(continuations, nodes, depth))
    assert [probability(path) for path in got] == pytest.approx(wanted)
    assert len(set(got)) == len(got)


def test_a_chain_follows_the_likeliest_token() -> None:
    assert grow_chain(continuations, 4).tokens == (0, 1, 0, 1)
    assert grow_chain(continuations, 0) == Candidates()
    assert grow_chain(lambda path: continuations((*path, 3)), 4) == Candidates()
