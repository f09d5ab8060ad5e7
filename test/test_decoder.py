"""The decoding loop, on a toy target whose text is known beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch

from flatrope_planner.domain import Observation, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.target import StepResult

STOP, COT_END, FORBIDDEN = 30, 29, 31
PROMPT = (1, 2, 3)
TEXT = (10, 11, 12, 13, 14, COT_END, STOP)


@dataclass(frozen=True)
class ToyPrompt:
    token_ids: Sequence[int] = PROMPT


@dataclass
class ToyState:
    read: list[int] = field(default_factory=list)
    block: Block | None = None

    @property
    def length(self) -> int:
        return len(self.read)


class ToyTarget:
    """Writes a fixed text, whatever is proposed; answers by the path that a row's mask shows, as a real one would."""

    stop_token = STOP
    ending: tuple[int, ...] = (COT_END, STOP)
    token_budget = 12

    def __init__(self, text: Sequence[int] = TEXT) -> None:
        self.forbidden = torch.zeros(32, dtype=torch.bool)
        self.forbidden[FORBIDDEN] = True
        self.passes = 0
        self._text = text

    def prepare(self, observation: Observation) -> ToyPrompt:
        raise NotImplementedError

    def prefill(self, prompt: ToyPrompt, candidates: Candidates) -> tuple[ToyState, StepResult]:
        state = ToyState(list(prompt.token_ids[:-1]))
        result = self.step(state, Block.of(prompt.token_ids[-1], candidates))
        rows = len(prompt.token_ids) - 1 + len(result.logits)
        return state, StepResult(result.logits, torch.zeros(1, rows, 2))

    def step(self, state: ToyState, block: Block) -> StepResult:
        self.passes += 1
        state.block = block
        logits = torch.zeros(len(block.tokens), 32)
        for row in range(len(block.tokens)):
            seen = state.read + [t for t, visible in zip(block.tokens, block.mask[row], strict=True) if visible]
            written = seen[len(PROMPT) :]
            assert len(seen) == state.length + block.offsets[row] + 1
            right = tuple(written) == tuple(self._text[: len(written)]) and len(written) < len(self._text)
            logits[row, self._text[len(written)] if right else 20] = 2.5
            logits[row, FORBIDDEN] = 9.0
        return StepResult(logits, torch.zeros(1, len(block.tokens), 2))

    def commit(self, state: ToyState, kept: Sequence[int]) -> None:
        assert state.block is not None
        state.read += [state.block.tokens[row] for row in kept]

    def act(self, state: ToyState, seed: int | None, samples: int) -> tuple[Trajectory, ...]:
        raise NotImplementedError

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

    def begin(self, prompt: Sequence[int]) -> None:
        assert tuple(prompt) == PROMPT

    def propose(self, budget: int) -> Candidates:
        del budget
        return self._proposals.pop(0) if self._proposals else Candidates()

    def observe(self, tokens: Sequence[int], tapped: torch.Tensor) -> None:
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
    assert set(decoded.stage_ms) == {"prefill", "reasoning"}


@pytest.mark.parametrize(
    ("proposals", "rounds", "accepted"),
    [
        # All right, in the prefill and after; stop token as a bonus, then as a candidate.
        ((chain(10, 11, 12), chain(14, COT_END)), 1, 5),
        ((chain(10, 11), chain(13, 14, COT_END, STOP, 7, 7)), 1, 6),
        # Everything at once: no round at all.
        ((chain(*TEXT),), 0, 7),
        # Wrong from the first, in the middle, forbidden.
        ((chain(7), chain(7), chain(7)), 6, 0),
        ((chain(10, 7, 12), Candidates(), chain(13, 7)), 4, 2),
        ((chain(FORBIDDEN, 11),), 6, 0),
        # A tree whose second branch is right.
        ((Candidates((7, 10, 8, 11), (-1, -1, 0, 1), ("a", "b", "a", "b")),), 4, 2),
    ],
)
def test_proposals_never_change_the_text(proposals: tuple[Candidates, ...], rounds: int, accepted: int) -> None:
    decoded = Decoder(ToyTarget(), Scripted(*proposals)).decode(ToyPrompt())
    assert decoded.token_ids == TEXT
    assert decoded.state.read == [*PROMPT, *TEXT]
    assert (decoded.speculation.rounds, decoded.speculation.accepted) == (rounds, accepted)
    assert sum(token.source != "target" for token in decoded.rationale.tokens) == accepted


def test_the_drafter_sees_each_token_once_with_its_tapped_states() -> None:
    drafter = Scripted(chain(10, 7), chain(12))
    Decoder(ToyTarget(), drafter).decode(ToyPrompt())
    # The prefill reads the prompt and one accepted token; later passes the anchor and what is accepted behind it.
    assert drafter.seen[:3] == [([10, 11], 4), ([12, 13], 2), ([14], 1)]
    assert [token for tokens, _ in drafter.seen for token in tokens] == list(TEXT)


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


def test_block_masks_show_ancestors_only() -> None:
    block = Block.of(5, Candidates((1, 2, 3, 4), (-1, 0, 0, -1), ("x",) * 4))
    assert block.offsets.tolist() == [0, 1, 2, 2, 1]
    assert block.mask.astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 0, 0, 0, 1],
    ]
