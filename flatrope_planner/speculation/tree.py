"""A tree of the likeliest continuations, grown best first (after DDTree, arXiv:2604.12989)."""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flatrope_planner.speculation.candidates import ROOT, Candidates

# Children of a node that are considered at all.
MAX_CHILDREN = 16


@dataclass(frozen=True)
class Guess:
    """A token that may follow a path."""

    token: int
    probability: float
    source: str


# What may follow a path of tokens behind the last committed one, the likeliest first.
Continuations = Callable[[tuple[int, ...]], Sequence[Guess]]


def grow_tree(continuations: Continuations, nodes: int, depth: int) -> Candidates:
    """The `nodes` likeliest paths, at most `depth` long: a path is as likely as the product of its steps."""
    tokens, parents, sources = list[int](), list[int](), list[str]()
    paths: dict[int, tuple[int, ...]] = {ROOT: ()}
    # (-log probability, order of arrival, parent, guess)
    waiting: list[tuple[float, int, int, Guess]] = []
    arrivals = 0

    def expect(parent: int, cost: float) -> None:
        nonlocal arrivals
        if len(paths[parent]) >= depth:
            return
        for guess in continuations(paths[parent])[:MAX_CHILDREN]:
            if guess.probability > 0.0:
                heapq.heappush(waiting, (cost - math.log(guess.probability), arrivals, parent, guess))
                arrivals += 1

    expect(ROOT, 0.0)
    while waiting and len(tokens) < nodes:
        cost, _, parent, guess = heapq.heappop(waiting)
        index = len(tokens)
        tokens.append(guess.token)
        parents.append(parent)
        sources.append(guess.source)
        paths[index] = (*paths[parent], guess.token)
        expect(index, cost)
    return Candidates(tuple(tokens), tuple(parents), tuple(sources))


def grow_chain(continuations: Continuations, depth: int) -> Candidates:
    """The path of the likeliest next tokens."""
    path: tuple[int, ...] = ()
    sources = list[str]()
    while len(path) < depth:
        following = continuations(path)
        if not following:
            break
        path = (*path, following[0].token)
        sources.append(following[0].source)
    return Candidates(path, tuple(range(-1, len(path) - 1)), tuple(sources))
