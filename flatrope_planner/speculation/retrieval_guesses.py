"""What earlier texts say about the next token: contexts of all kinds, from a corpus and from this drive, mixed.

Each context that is known votes with what has followed it. How much a vote counts is learnt (a log-linear mixture of
experts, after Jelinek and Mercer 1980), by the context's kind: those often seen, with few different followers, count
more. What corpus and drive say each on its own then counts once more, as a factor: a token that only one of them knows
is less likely than their mixture says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flatrope_planner.speculation.context_counts import ContextCounts, Followers
from flatrope_planner.speculation.contexts import LONGEST_CONTEXT, Text
from flatrope_planner.speculation.retrieval_trust import AGREEMENT, Trust
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess

# Votes below this share of all are not worth looking at their tokens.
LEAST_SHARE = 1e-3
# Guesses below this chance are not made.
LEAST_CHANCE = 1e-3
# Tokens that are weighed up before the likeliest are taken.
MOST_TOKENS = 24


@dataclass(frozen=True)
class Evidence:
    """What stands behind the guesses at a place."""

    # Tokens of the longest run of latest tokens that is known, the beginning of the text counted as one.
    context_tokens: int
    # How often that context was followed: in the corpus, and in this drive, where older texts count less.
    corpus_count: float
    drive_count: float


@dataclass(frozen=True)
class Source:
    """Texts that vote."""

    counts: ContextCounts
    # By the kind of the context.
    trust: Sequence[Trust]
    # What a text added last weighs in these counts.
    unit: float = 1.0

    def runs(self, text: Text) -> dict[int, float]:
        """How often each run of latest tokens was followed, by its length."""
        known = ((key[0], followers) for key, followers in self.counts.behind(text))
        return {kind: followers.total / self.unit for kind, followers in known if kind <= LONGEST_CONTEXT}

    def votes(self, text: Text) -> list[tuple[float, Followers]]:
        """Each context that is known, with its share among all (not yet divided by their sum)."""
        return [
            (self.trust[key[0]].of(followers.total / self.unit, len(followers.weights)), followers)
            for key, followers in self.counts.behind(text)
        ]


class RetrievalGuesses:
    """Probabilities along the paths of one text, each looked up once."""

    def __init__(self, corpus: Source, drive: Source, name: str) -> None:
        """Start a text; `name` is the guesses' source."""
        self._corpus, self._drive, self._name = corpus, drive, name
        self._written: Text = ()
        self._known: dict[Text, list[Guess]] = {}

    def start_over(self) -> None:
        """Nothing of the text is written; what has been looked up still holds."""
        self._written = ()

    def write(self, tokens: Text) -> None:
        """The text goes on with these."""
        self._written += tokens

    @property
    def written(self) -> Text:
        """The text so far."""
        return self._written

    def __call__(self, path: Text) -> list[Guess]:
        """The likeliest tokens behind the text so far and a path."""
        text = self._written + path
        if text not in self._known:
            self._known[text] = self._guess(text)
        return self._known[text]

    def evidence(self, path: Text) -> Evidence:
        """What stands behind the guesses at a path."""
        text = self._written + path
        corpus, drive = self._corpus.runs(text), self._drive.runs(text)
        longest = max(corpus.keys() | drive.keys(), default=0)
        return Evidence(longest, corpus.get(longest, 0.0), drive.get(longest, 0.0))

    def _guess(self, text: Text) -> list[Guess]:
        if self._has_ended(text):
            return []
        chances = _mixed(self._corpus.votes(text), self._drive.votes(text))
        likeliest = sorted(chances.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHILDREN]
        return [Guess(token, chance, self._name) for token, chance in likeliest]

    def _has_ended(self, text: Text) -> bool:
        """Whether the last token is one that closes texts and that nothing has ever followed."""
        counts = self._corpus.counts, self._drive.counts
        return any(each.closes(text) for each in counts) and not any(each.goes_on_behind(text) for each in counts)


@dataclass
class _Ballot:
    """The votes of one source."""

    votes: list[tuple[float, Followers]]
    chances: dict[int, float] = field(default_factory=dict)
    # Part of all shares that this source's votes have.
    share: float = 0.0

    def count(self, share: float, followers: Followers, tokens: Iterable[int]) -> None:
        """Count a vote for these of its tokens."""
        self.share += share
        unit, weights, chances = share / followers.total, followers.weights, self.chances
        for token in tokens:
            chances[token] = chances.get(token, 0.0) + unit * weights[token]

    def alone(self, token: int) -> float:
        """What this source says of a token."""
        return self.chances.get(token, 0.0) / self.share if self.share else 0.0


def _mixed(*sources: list[tuple[float, Followers]]) -> dict[int, float]:
    """Chances of the tokens that the contexts of sources vote for."""
    ballots = [_Ballot(votes) for votes in sources]
    votes = [(share, followers, ballot) for ballot in ballots for share, followers in ballot.votes]
    total = sum(share for share, _, _ in votes)
    tokens: set[int] = set()
    # Contexts with few followers name the candidates; of the thousands that follow a short one, these alone matter.
    for share, followers, ballot in sorted(votes, key=lambda vote: len(vote[1].weights)):
        if share < LEAST_SHARE * total:
            continue
        few = len(tokens) < MOST_TOKENS
        if few:
            tokens |= followers.weights.keys()
        ballot.count(share / total, followers, followers.weights if few else tokens & followers.weights.keys())
    return _agreed(tokens, ballots)


def _agreed(tokens: Iterable[int], ballots: Sequence[_Ballot]) -> dict[int, float]:
    """The sources' common chances, raised or lowered by what each says alone; their sum stays."""
    summed = ((token, sum([ballot.chances.get(token, 0.0) for ballot in ballots])) for token in tokens)
    mixed = {token: chance for token, chance in summed if chance >= LEAST_CHANCE}
    weighed = {
        token: AGREEMENT.of(chance, [ballot.alone(token) for ballot in ballots]) for token, chance in mixed.items()
    }
    scale = sum(mixed.values()) / (sum(weighed.values()) or 1.0)
    return {token: weight * scale for token, weight in weighed.items()}
