"""A network and retrieval in one tree: how their words are mixed, who is asked when, and that no text changes."""

from collections.abc import Sequence

import pytest
import torch
from test_block_draft import PARTS, TARGET, new_draft
from tiny_nano import noise_observation

from flatrope_planner.speculation.block_drafter import BlockDrafter, Shape
from flatrope_planner.speculation.candidates import ROOT, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.hybrid import HybridDrafter, MergedGuesses
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.speculation.retrieval_drafter import RetrievalDrafter
from flatrope_planner.speculation.target import Prompt
from flatrope_planner.speculation.tree import MAX_CHILDREN, Continuations, Guess


def says(source: str, **by_path: dict[int, float]) -> Continuations:
    """Guesses by path: `_` for the root, `_5_6` behind 5 and 6; silence elsewhere."""

    def guesses(path: tuple[int, ...]) -> list[Guess]:
        known = by_path.get("_" + "_".join(str(token) for token in path), {})
        return [Guess(token, probability, source) for token, probability in known.items()]

    return guesses


def shown(guesses: Sequence[Guess]) -> list[tuple[int, object, str]]:
    return [(guess.token, pytest.approx(guess.probability), guess.source) for guess in guesses]


class Witness:
    """Says what it is told to and notes what reaches it."""

    def __init__(self, name: str, guesses: Continuations) -> None:
        self.name, self._guesses = name, guesses
        self.calls: list[tuple[object, ...]] = []

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        del prompt
        self.calls.append(("anticipate", nodes, depth))
        return Candidates.chain((8, 9), self.name)

    def begin(self, prompt: Prompt, tapped: torch.Tensor) -> None:
        self.calls.append(("begin", prompt, tapped.shape))

    def propose(self, nodes: int, depth: int) -> Candidates:
        raise NotImplementedError

    def guesses(self) -> Continuations:
        return self._guesses

    def observe(self, tokens: Sequence[int], tapped: torch.Tensor) -> None:
        self.calls.append(("observe", tuple(tokens), tapped.shape))

    def reset(self) -> None:
        self.calls.append(("reset",))


def test_both_words_are_mixed_seven_to_three() -> None:
    merged = MergedGuesses(says("n", _={5: 0.6, 6: 0.3, 8: 0.1}), says("r", _={6: 0.9, 7: 0.08, 8: 0.02}))
    # 6: 0.21 of the network and 0.27 of retrieval; 5: 0.42; 8: 0.07 and 0.006; 7: 0.024.
    wanted = [(6, 0.48, "r"), (5, 0.42, "n"), (8, 0.076, "n"), (7, 0.024, "r")]
    assert shown(merged(())) == wanted


def test_where_one_is_silent_the_other_is_heard_as_it_is() -> None:
    merged = MergedGuesses(says("n", _={5: 0.6}), says("r", _5={7: 0.9}))
    assert shown(merged(())) == [(5, 0.6, "n")]
    assert shown(merged((5,))) == [(7, 0.9, "r")]
    assert shown(merged((5, 7))) == []


def test_only_the_likeliest_are_kept_and_they_come_first() -> None:
    seen = {token: 0.04 - 0.001 * token for token in range(MAX_CHILDREN)}
    remembered = {100 + token: 0.0503 + 0.001 * token for token in range(MAX_CHILDREN)}
    found = MergedGuesses(says("n", _=seen), says("r", _=remembered))(())
    # The network's fall from 0.0280 by 0.0007 each, the others rise from 0.0151 to 0.0196 by 0.0003: 12 is at 0.0196,
    # 13 at 0.0189.
    assert [guess.token for guess in found] == [*range(13), 115, 114, 113]


def test_a_tree_of_both() -> None:
    network, retrieval = says("n", _={5: 0.5, 6: 0.5}, _5={7: 0.2}), says("r", _={6: 1.0}, _6={4: 0.9}, _6_4={3: 0.9})
    drafter = HybridDrafter(Witness("n", network), Witness("r", retrieval))
    assert drafter.name == "hybrid-n"
    # 6: 0.35 + 0.3 = 0.65 (n); 6 4: 0.585; 6 4 3: 0.5265; 5: 0.35; 5 7: 0.07.
    wanted = Candidates((6, 4, 3, 5, 7), (ROOT, 0, 1, ROOT, 3), ("n", "r", "r", "n", "n"))
    assert drafter.propose(9, 9) == wanted
    assert drafter.propose(4, 9).tokens == (6, 4, 3, 5)
    assert drafter.propose(9, 2).tokens == (6, 4, 5, 7)


def test_retrieval_alone_anticipates_and_both_take_part_in_the_rest() -> None:
    network, retrieval = Witness("n", says("n")), Witness("r", says("r"))
    drafter, prompt = HybridDrafter(network, retrieval), TARGET.prepare(noise_observation(0))
    assert drafter.anticipate(prompt, 3, 4) == Candidates.chain((8, 9), "r")
    assert (network.calls, retrieval.calls) == ([], [("anticipate", 3, 4)])
    drafter.begin(prompt, torch.zeros(2, 6, 3))
    drafter.observe([4, 5], torch.zeros(2, 2, 3))
    drafter.reset()
    wanted = [("begin", prompt, (2, 6, 3)), ("observe", (4, 5), (2, 2, 3)), ("reset",)]
    assert network.calls == retrieval.calls[1:] == wanted


def test_no_text_changes_and_the_drive_is_remembered() -> None:
    network, retrieval = BlockDrafter(new_draft(), PARTS), RetrievalDrafter(RationaleCorpus().context_counts())
    drafter = HybridDrafter(network, retrieval)
    alone = BlockDrafter(new_draft(), PARTS, Shape.TREE)
    for seed in (0, 1):
        prompt = TARGET.prepare(noise_observation(seed))
        plain = Decoder(TARGET, None, 16).decode(prompt)
        first, again = (Decoder(TARGET, drafter, 16).decode(prompt) for _ in range(2))
        assert first.token_ids == again.token_ids == plain.token_ids
        # What was written a moment ago is known; a network that has learnt nothing stays in its way at times.
        assert again.speculation.rounds < first.speculation.rounds
        Decoder(TARGET, alone, 16).decode(prompt)
        # The network has seen all of this text, in whatever pieces, as it sees it when it is alone.
        for mine, theirs in zip(network._context, alone._context, strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
        own = plain.token_ids[: TARGET.token_budget]
        assert tuple(retrieval.guesses().written) == own
