"""Drafting from earlier texts: what is guessed, learnt, forgotten; the toy target's text is never altered."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from test_decoder import TEXT, ToyPrompt, ToyState, ToyTarget

from flatrope_planner.speculation import retrieval_drafter
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.context_counts import ContextCounts
from flatrope_planner.speculation.contexts import KINDS
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.speculation.retrieval_drafter import DriveMemory, RetrievalDrafter
from flatrope_planner.speculation.retrieval_trust import CORPUS_TRUST, DRIVE_TRUST

END = 9
CORPUS = ((1, 2, 3, END), (1, 2, 3, END), (1, 2, 4, END), (5, 2, 6, END))
NOTHING = torch.zeros(0, 0, 0)


def counts_of(*texts: Sequence[int]) -> ContextCounts:
    return RationaleCorpus.of(texts).context_counts()


def write(drafter: RetrievalDrafter, *texts: Sequence[int]) -> None:
    for text in texts:
        drafter.anticipate(ToyPrompt(), 0, 0)
        drafter.begin(ToyPrompt(), NOTHING)
        drafter.observe(text, NOTHING)
    drafter.anticipate(ToyPrompt(), 0, 0)


def best(drafter: RetrievalDrafter, *path: int) -> int:
    return drafter.guesses()(path)[0].token


def test_guesses_follow_the_corpus_from_the_start_of_a_text_on() -> None:
    drafter = RetrievalDrafter(counts_of(*CORPUS))
    assert [guess.token for guess in drafter.guesses()(())][:2] == [1, 5]
    assert (best(drafter, 1, 2), best(drafter, 5, 2)) == (3, 6)
    # The end token has never been followed by anything.
    assert drafter.guesses()((1, 2, 3, END)) == []
    # An unknown token tells nothing: what is frequent is guessed.
    assert best(drafter, 77) == 2


def test_chances_are_sorted_and_sum_to_one_at_most() -> None:
    guesses = RetrievalDrafter(counts_of(*CORPUS)).guesses()
    for path in ((), (1,), (1, 2), (5, 2), (77,)):
        chances = [guess.probability for guess in guesses(path)]
        assert all(one >= other for one, other in pairwise(chances))
        assert 0.99 < sum(chances) < 1.0 + 1e-9
        assert {guess.source for guess in guesses(path)} == {"retrieval"}


def test_evidence_is_the_longest_context_and_its_counts() -> None:
    drafter = RetrievalDrafter(counts_of(*CORPUS))
    write(drafter, (1, 2, 8, END))
    evidence = drafter.guesses().evidence((1, 2))
    assert (evidence.context_tokens, evidence.corpus_count, evidence.drive_count) == (3, 3.0, 1.0)
    start = drafter.guesses().evidence(())
    assert (start.context_tokens, start.corpus_count, start.drive_count) == (1, 4.0, 1.0)
    unknown = drafter.guesses().evidence((77,))
    assert (unknown.context_tokens, unknown.corpus_count) == (0, 16.0)
    assert RetrievalDrafter(counts_of()).guesses().evidence(()).corpus_count == 0.0


def test_the_drive_weighs_more_than_the_corpus_and_late_more_than_early() -> None:
    drafter = RetrievalDrafter(counts_of(*CORPUS))
    assert best(drafter, 1, 2) == 3
    write(drafter, *[(1, 2, 7, END)] * 4)
    assert best(drafter, 1, 2) == 7
    write(drafter, *[(1, 2, 8, END)] * 4)
    assert best(drafter, 1, 2) == 8


def test_reset_forgets_the_drive_and_keeps_the_corpus() -> None:
    drafter, fresh = RetrievalDrafter(counts_of(*CORPUS)), RetrievalDrafter(counts_of(*CORPUS))
    write(drafter, *[(5, 6, 7, END)] * 3)
    drafter.observe((5, 6), NOTHING)
    assert drafter.propose(8, 4) != fresh.propose(8, 4)
    drafter.reset()
    assert drafter.propose(8, 4) == fresh.propose(8, 4)
    # Nor is the text that was under way learnt afterwards.
    drafter.begin(ToyPrompt(), NOTHING)
    assert drafter.propose(8, 4) == fresh.propose(8, 4)


def test_a_text_is_learnt_once_when_the_next_is_anticipated() -> None:
    drafter = RetrievalDrafter(counts_of())
    drafter.anticipate(ToyPrompt(), 0, 0)
    # Begun twice: what was observed first does not count.
    for text in ((7, 8), (1, 2, END)):
        drafter.begin(ToyPrompt(), NOTHING)
        drafter.observe(text, NOTHING)
    assert drafter.anticipate(ToyPrompt(), 8, 4).tokens[:2] == (1, 2)
    drafter.begin(ToyPrompt(), NOTHING)
    assert drafter.guesses().evidence(()).drive_count == 1.0
    assert 7 not in drafter.propose(8, 4).tokens


def test_memory_of_the_drive_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval_drafter, "MOST_RATIONALES", 6)
    monkeypatch.setattr(retrieval_drafter, "MOST_TOKENS", 6)
    memory, sizes = DriveMemory(), list[tuple[int, int]]()
    for number in range(60):
        memory.learn(tuple(100 * number + place for place in range(40)))
        sizes.append((len(memory), len(memory.counts)))
    # Six are kept, then the latest three and a new one; each text of new tokens has contexts of its own.
    assert [count for count, _ in sizes[:12]] == [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6]
    assert {size for count, size in sizes if count == 6} == {sizes[5][1]}
    assert max(size for _, size in sizes) == sizes[5][1]
    assert memory.weight < retrieval_drafter.RECENCY**7


def test_every_kind_of_context_is_trusted_as_it_was_fitted() -> None:
    assert (len(CORPUS_TRUST), len(DRIVE_TRUST)) == (KINDS, KINDS)


def test_what_is_kept_weighs_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval_drafter, "MOST_RATIONALES", 4)
    cut, fresh = RetrievalDrafter(counts_of(*CORPUS)), RetrievalDrafter(counts_of(*CORPUS))
    texts = [(1, 2, 10 + number % 4, END) for number in range(5)]
    write(cut, *texts)
    # The fifth came when four were there: the first two were forgotten.
    write(fresh, *texts[2:])
    assert cut.guesses()((1, 2)) == fresh.guesses()((1, 2))


@pytest.mark.parametrize("shape", Shape)
def test_proposals_keep_to_nodes_and_depth(shape: Shape) -> None:
    drafter = RetrievalDrafter(counts_of(*CORPUS), shape)
    assert drafter.propose(3, 16) == Candidates.chain((1, 2, 3), "retrieval")
    assert drafter.propose(2, 16) == Candidates.chain((1, 2), "retrieval")
    shallow = drafter.propose(16, 2)
    assert max(shallow.depths()) == 2
    assert RetrievalDrafter(counts_of(), shape).propose(8, 8).tokens == ()


def decode(drafter: RetrievalDrafter, text: Sequence[int]) -> DecodedRationale[ToyState]:
    return Decoder(ToyTarget(text), drafter, 8).decode(ToyPrompt())


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("corpus", [(), (TEXT,), (TEXT[::-1],), ((*TEXT[:3], 7, 7), (7,))])
def test_the_text_is_never_altered_and_a_drive_is_learnt(shape: Shape, corpus: tuple[tuple[int, ...], ...]) -> None:
    drafter = RetrievalDrafter(counts_of(*corpus), shape)
    rounds = []
    for _ in range(4):
        decoded = decode(drafter, TEXT)
        assert decoded.token_ids == TEXT
        rounds.append(decoded.speculation.rounds)
    # What was foreseen with the prompt is verified once more.
    assert rounds[-1] == 1
    assert rounds[0] >= rounds[-1]
    other = (13, 12, 11, *TEXT[-2:])
    assert decode(drafter, other).token_ids == other


def test_driving_raises_acceptance() -> None:
    drafter = RetrievalDrafter(counts_of((1, *TEXT[1:])), Shape.CHAIN)
    accepted = [decode(drafter, TEXT).speculation.prefill_accepted for _ in range(2)]
    assert accepted == [0, len(TEXT)]
