"""The decoding loop, on a toy target whose text is known beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.target import Prefill, Prompt, StepResult

STOP, COT_END, FORBIDDEN = 30, 29, 31
PROMPT = (1, 2, 3)
TEXT = (10, 11, 12, 13, 14, COT_END, STOP)


@dataclass(frozen=True)
class ToyPrompt:
    token_ids: Sequence[int] = PROMPT
    pinned: Sequence[int] = ()
    rope_delta: int = 0

    def rotary_positions(self) -> torch.Tensor:
        return torch.arange(len(self.token_ids)).expand(3, -1)


@dataclass
class ToyState:
    read: list[int] = field(default_factory=list)
    block: Block | None = None
    unread: int = 0

    @property
    def length(self) -> int:
        return len(self.read)


class ToyTarget:
    """Writes a fixed text, whatever is proposed; answers by the path that a row's mask shows, as a real one would."""

    stop_token = STOP
    eos_tokens = frozenset[int]()
    ending: tuple[int, ...] = (COT_END, STOP)
    token_budget = 12

    def __init__(self, text: Sequence[int] = TEXT) -> None:
        self.forbidden = torch.zeros(32, dtype=torch.bool)
        self.forbidden[FORBIDDEN] = True
        self.widths: set[int] = set()
        self._text = text

    def prefill(self, prompt: ToyPrompt, block: Block) -> tuple[ToyState, Prefill]:
        state = ToyState(list(prompt.token_ids[:-1]))
        read = self.step(state, block)
        self.commit(state, [0])
        return state, Prefill(torch.zeros(1, len(prompt.token_ids) - 1, 2), read)

    def step(self, state: ToyState, block: Block) -> StepResult:
        self.widths.add(len(block.tokens))
        state.block = block
        logits = torch.zeros(len(block.tokens), 32)
        for row, path in enumerate(block.paths()):
            seen = state.read + [block.tokens[place] for place in path]
            written = seen[len(PROMPT) :]
            assert len(seen) == state.length + block.offsets[row] + 1
            right = tuple(written) == tuple(self._text[: len(written)]) and len(written) < len(self._text)
            logits[row, self._text[len(written)] if right else 20] = 2.5
            logits[row, FORBIDDEN] = 9.0
        return StepResult(logits, torch.zeros(1, len(block.tokens), 2))

    def commit(self, state: ToyState, kept: Sequence[int]) -> None:
        assert state.block is not None
        state.read += [state.block.tokens[row] for row in kept]

    def text(self, tokens: Sequence[int]) -> str:
        return " ".join(str(t) for t in tokens if t not in self.ending)

    def token_text(self, token: int) -> str:
        return str(token)


class Scripted:
    """Proposes what it is told to, pass by pass, and notes what it is shown."""

    name = "scripted"

    def __init__(self, *proposals: Candidates) -> None:
        self._proposals = list(proposals)
        self.seen: list[tuple[list[int], int]] = []
        self.asked: list[tuple[int, int]] = []

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        return self.propose(nodes, depth)

    def begin(self, prompt: Prompt, tapped: torch.Tensor) -> None:
        self.seen.clear()
        assert tuple(prompt.token_ids) == PROMPT
        assert tapped.shape == (1, 2, 2)

    def propose(self, nodes: int, depth: int) -> Candidates:
        self.asked.append((nodes, depth))
        return self._proposals.pop(0) if self._proposals else Candidates()

    def observe(self, tokens: Sequence[int], tapped: torch.Tensor) -> None:
        assert len(tokens) == tapped.shape[1] > 0
        self.seen.append((list(tokens), tapped.shape[1]))

    def reset(self) -> None:
        pass


def chain(*tokens: int) -> Candidates:
    return Candidates.chain(tokens, "scripted")


def test_plain_greedy_writes_the_text_and_reads_up_to_the_stop_token() -> None:
    target = ToyTarget()
    decoded = Decoder(target).decode(ToyPrompt())
    assert decoded.token_ids == TEXT
    assert decoded.rationale.text == "10 11 12 13 14"
    assert decoded.rationale.complete
    assert decoded.state.read == [*PROMPT, *TEXT]
    stats = decoded.speculation
    assert (stats.rounds, stats.proposed, stats.accepted, stats.committed) == (6, 0, 0, 6)
    assert stats.mean_acceptance_length == 1.0
    assert [token.round for token in decoded.rationale.tokens] == list(range(7))
    assert {(token.source, token.margin) for token in decoded.rationale.tokens} == {("target", 2.5)}
    assert set(decoded.stage_ms) == {"prefill", "reasoning", "draft", "verify", "handover"}


@pytest.mark.parametrize(
    # What the prefill has foreseen, its bonus included, is verified in the first round.
    ("proposals", "rounds", "in_prefill", "in_rounds", "drafted"),
    [
        # All right, in the prefill and after; stop token as a bonus, then as a candidate.
        ((chain(10, 11, 12), chain(14, COT_END)), 1, 3, 5, 5),
        ((chain(10, 11), chain(13, 14, COT_END, STOP, 7, 7)), 1, 2, 6, 6),
        # Everything at once.
        ((chain(*TEXT),), 1, 7, 6, 7),
        # Wrong from the first, in the middle, forbidden.
        ((chain(7), chain(7), chain(7)), 6, 0, 0, 0),
        ((chain(10, 7, 12), Candidates(), chain(13, 7)), 4, 1, 2, 2),
        ((chain(FORBIDDEN, 11),), 6, 0, 0, 0),
        # A tree whose second branch is right.
        ((Candidates((7, 10, 8, 11), (-1, -1, 0, 1), ("a", "b", "a", "b")),), 4, 2, 2, 2),
    ],
)
@pytest.mark.parametrize("width", [8, 13])
def test_proposals_never_change_the_text_nor_the_shape_of_a_pass(
    proposals: tuple[Candidates, ...], rounds: int, in_prefill: int, in_rounds: int, drafted: int, width: int
) -> None:
    target = ToyTarget()
    decoded = Decoder(target, Scripted(*proposals), width).decode(ToyPrompt())
    assert decoded.token_ids == TEXT
    assert decoded.state.read == [*PROMPT, *TEXT]
    stats = decoded.speculation
    assert (stats.rounds, stats.prefill_accepted, stats.accepted) == (rounds, in_prefill, in_rounds)
    assert sum(token.source != "target" for token in decoded.rationale.tokens) == drafted
    assert target.widths == {8 if width == 8 else 16}


def test_statistics_follow_the_definitions() -> None:
    # Prefill: 10, and 11 foreseen. Rounds: 11 12 13 and 14 as a bonus; nothing accepted; the stop token.
    drafter = Scripted(chain(10), chain(12, 13, 7), chain(7), chain(STOP))
    stats = Decoder(ToyTarget(), drafter, 4).decode(ToyPrompt()).speculation
    assert (stats.prefill_proposed, stats.prefill_accepted) == (1, 1)
    assert (stats.rounds, stats.proposed, stats.accepted, stats.committed) == (3, 5, 4, 6)
    assert stats.mean_acceptance_length == 2.0
    assert stats.acceptance_rate == 0.8
    assert stats.acceptance_histogram == (1, 1, 0, 1)
    assert stats.accepted_at == (2, 1, 1)
    assert stats.drafter == "scripted"


def test_no_more_is_asked_for_than_fits_into_block_and_budget() -> None:
    drafter = Scripted()
    Decoder(ToyTarget(), drafter, 8).decode(ToyPrompt())
    # The budget is 12, and of each pass one token is the target's own.
    assert drafter.asked == [(7, depth) for depth in range(11, 4, -1)][: len(drafter.asked)]
    greedy = Scripted(chain(*TEXT, *TEXT))
    assert Decoder(ToyTarget(), greedy, 4).decode(ToyPrompt()).speculation.prefill_proposed == 3


def test_a_decoder_needs_room_for_the_anchor() -> None:
    with pytest.raises(InputError, match="width 0"):
        Decoder(ToyTarget(), None, 0)


def test_pruning_keeps_a_tree_whole() -> None:
    tree = Candidates((1, 2, 3, 4, 5, 6), (-1, 0, -1, 2, 1, 3), ("x",) * 6)
    forbidden = torch.zeros(10, dtype=torch.bool)
    assert tree.pruned(6, 9, forbidden) == tree
    assert tree.pruned(3, 9, forbidden).tokens == (1, 2, 3)
    assert tree.pruned(6, 2, forbidden) == Candidates((1, 2, 3, 4), (-1, 0, -1, 2), ("x",) * 4)
    forbidden[1] = True
    assert tree.pruned(6, 9, forbidden) == Candidates((3, 4, 6), (-1, 0, 1), ("x",) * 3)


def test_the_drafter_sees_each_token_once_with_its_tapped_states() -> None:
    drafter = Scripted(chain(10, 7), chain(12))
    Decoder(ToyTarget(), drafter, 4).decode(ToyPrompt())
    # Each pass reads the anchor and what is accepted behind it.
    assert drafter.seen[:3] == [([10, 11], 2), ([12, 13], 2), ([14], 1)]
    assert [token for tokens, _ in drafter.seen for token in tokens] == list(TEXT)


class Hasty(ToyTarget):
    """Takes 12 for 21 in the pass over the prompt, as rounding may."""

    def prefill(self, prompt: ToyPrompt, block: Block) -> tuple[ToyState, Prefill]:
        state, read = super().prefill(prompt, block)
        read.block.logits[read.block.logits[:, 12] > 0.0, 21] = 3.0
        return state, read


def test_what_was_foreseen_wrongly_is_neither_written_nor_left_in_the_drafter() -> None:
    drafter = Scripted(chain(10, 11), chain(12, 13), chain(13, 14))
    decoded = Decoder(Hasty(), drafter, 8).decode(ToyPrompt())
    assert decoded.token_ids == TEXT
    assert decoded.state.read == [*PROMPT, *TEXT]
    assert (decoded.speculation.prefill_accepted, decoded.speculation.accepted) == (2, 3)
    # `begin` has wiped what was shown too early.
    assert drafter.seen[:3] == [([10], 1), ([11, 12], 2), ([13, 14, COT_END], 3)]


@pytest.mark.parametrize("budget", [1, 2, 3, 7])
def test_foresight_stays_within_the_budget(budget: int) -> None:
    target = ToyTarget()
    target.token_budget = budget
    plain = Decoder(target, None, 8).decode(ToyPrompt())
    decoded = Decoder(target, Scripted(chain(*TEXT), chain(*TEXT)), 8).decode(ToyPrompt())
    assert decoded.token_ids == plain.token_ids
    assert decoded.state.read == plain.state.read
    assert decoded.rationale.complete == plain.rationale.complete


@pytest.mark.parametrize("last", [20, COT_END])
def test_budget_appends_the_missing_end_marks(last: int) -> None:
    text = (*[10, 11] * 5, 12, last, 13, 14)
    decoded = Decoder(ToyTarget(text)).decode(ToyPrompt())
    ending = (STOP,) if last == COT_END else (COT_END, STOP)
    assert decoded.token_ids == (*text[:12], *ending)
    assert decoded.state.read == [*PROMPT, *decoded.token_ids]
    assert not decoded.rationale.complete


@pytest.mark.parametrize(("tokens", "parents"), [((1, 2), (-1,)), ((1, 2), (1, -1)), ((1,), (0,)), ((1,), (-2,))])
def test_what_is_no_tree_is_refused(tokens: tuple[int, ...], parents: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="do not make a tree"):
        Candidates(tokens, parents, ("x",) * len(tokens))


def test_paths_show_ancestors_only_and_padding_sees_itself() -> None:
    block = Block.of(5, Candidates((1, 2, 3, 4), (-1, 0, 0, -1), ("x",) * 4)).padded(6)
    assert block.offsets.tolist() == [0, 1, 2, 2, 1, 0]
    assert block.paths() == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 4], [5]]
    with pytest.raises(InputError, match="6 tokens do not fit into 5 rows"):
        block.padded(5)
