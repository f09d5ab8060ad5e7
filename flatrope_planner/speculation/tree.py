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
    costs = {ROOT: 0.0}
    following: dict[int, Sequence[Guess]] = {}
    # (-log probability, parent, rank among its children): a child waits when its likelier sibling is in the tree.
    waiting: list[tuple[float, int, int]] = []

    def expect(parent: int, rank: int) -> None:
        guesses = following[parent]
        if rank < min(len(guesses), MAX_CHILDREN) and guesses[rank].probability > 0.0:
            heapq.heappush(waiting, (costs[parent] - math.log(guesses[rank].probability), parent, rank))

    def open_up(node: int) -> None:
        if len(paths[node]) < depth:
            following[node] = continuations(paths[node])
            expect(node, 0)

    open_up(ROOT)
    while waiting and len(tokens) < nodes:
        cost, parent, rank = heapq.heappop(waiting)
        guess, index = following[parent][rank], len(tokens)
        tokens.append(guess.token)
        parents.append(parent)
        sources.append(guess.source)
        paths[index], costs[index] = (*paths[parent], guess.token), cost
        expect(parent, rank + 1)
        open_up(index)
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
