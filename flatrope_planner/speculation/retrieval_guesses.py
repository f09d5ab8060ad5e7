"""What earlier texts say about the next token: contexts of all lengths, from a corpus and from this drive, mixed.

Each context that ends the text so far votes with what has followed it. How much a vote counts is learnt (a log-linear
mixture of experts, after Jelinek and Mercer 1980): long contexts, often seen, with few different followers, count more.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flatrope_planner.speculation.suffix_counts import Context, SuffixCounts, Suffixes
from flatrope_planner.speculation.tree import MAX_CHILDREN, Guess

# Votes below this share of all are not worth looking at their tokens.
LEAST_SHARE = 1e-3
# Guesses below this chance are not made.
LEAST_CHANCE = 1e-3


@dataclass(frozen=True)
class Trust:
    """Logarithm of a context's share: linear in its length, in log count and log number of followers, and products."""

    bias: float
    length: float
    count: float
    count_length: float
    followers: float
    followers_length: float

    def of(self, length: int, count: float, followers: int) -> float:
        """For a context of so many tokens, followed so often by so many different tokens."""
        by_count = (self.count + self.count_length * length) * math.log(count)
        by_followers = (self.followers + self.followers_length * length) * math.log(followers)
        return self.bias + self.length * length + by_count + by_followers


# Fitted by maximum likelihood on half the clips of real rationales, each read with all other clips as its corpus.
CORPUS_TRUST = Trust(-0.0655, -0.0751, -0.2478, 0.2117, 0.3211, -0.2469)
DRIVE_TRUST = Trust(0.0655, 0.0226, 0.3142, 0.3732, -0.7266, -0.2051)


@dataclass(frozen=True)
class Evidence:
    """What stands behind the guesses at a place."""

    # Tokens of the longest context that is known and was followed, the beginning of the text counted as one.
    context_tokens: int
    # How often that context was followed: in the corpus, and in this drive, where older texts count less.
    corpus_count: float
    drive_count: float


@dataclass(frozen=True)
class Source:
    """Texts that vote."""

    counts: SuffixCounts
    trust: Trust
    # What a text added last weighs in these counts.
    unit: float = 1.0

    def followed(self, suffixes: Suffixes, length: int) -> float:
        """How often the context of this length was followed."""
        return suffixes[length].followed / self.unit if length < len(suffixes) else 0.0

    def votes(self, suffixes: Suffixes) -> Iterator[tuple[float, Context]]:
        """Each context that was followed, with the logarithm of its share."""
        for length, context in enumerate(suffixes):
            if not context.followers:
                return
            yield self.trust.of(length, context.followed / self.unit, len(context.followers)), context


class RetrievalGuesses:
    """Probabilities along the paths of one text, each looked up once."""

    def __init__(self, corpus: Source, drive: Source, name: str) -> None:
        """Start a text; `name` is the guesses' source."""
        self._corpus, self._drive, self._name = corpus, drive, name
        self._written: tuple[int, ...] = ()
        start = corpus.counts.at_start(), drive.counts.at_start()
        self._suffixes: dict[tuple[int, ...], tuple[Suffixes, Suffixes]] = {(): start}
        self._known: dict[tuple[int, ...], list[Guess]] = {}

    def write(self, tokens: tuple[int, ...]) -> None:
        """The text goes on with these."""
        self._written += tokens
        self._follow(self._written)

    @property
    def written(self) -> tuple[int, ...]:
        """The text so far."""
        return self._written

    def __call__(self, path: tuple[int, ...]) -> list[Guess]:
        """The likeliest tokens behind the text so far and a path."""
        text = self._written + path
        if text not in self._known:
            self._known[text] = self._guess(*self._follow(text))
        return self._known[text]

    def evidence(self, path: tuple[int, ...]) -> Evidence:
        """What stands behind the guesses at a path."""
        in_corpus, in_drive = self._follow(self._written + path)
        for length in range(max(len(in_corpus), len(in_drive)) - 1, -1, -1):
            corpus, drive = self._corpus.followed(in_corpus, length), self._drive.followed(in_drive, length)
            if corpus or drive:
                return Evidence(length, corpus, drive)
        return Evidence(0, 0.0, 0.0)

    def _follow(self, text: tuple[int, ...]) -> tuple[Suffixes, Suffixes]:
        if text not in self._suffixes:
            corpus, drive = self._follow(text[:-1])
            behind = self._corpus.counts.behind(corpus, text[-1]), self._drive.counts.behind(drive, text[-1])
            self._suffixes[text] = behind
        return self._suffixes[text]

    def _guess(self, in_corpus: Suffixes, in_drive: Suffixes) -> list[Guess]:
        if _has_ended(in_corpus, in_drive):
            return []
        votes = [*self._corpus.votes(in_corpus), *self._drive.votes(in_drive)]
        chances = _mixed(votes)
        likeliest = sorted(chances.items(), key=lambda item: (-item[1], item[0]))[:MAX_CHILDREN]
        return [Guess(token, chance, self._name) for token, chance in likeliest if chance >= LEAST_CHANCE]


def _mixed(votes: Sequence[tuple[float, Context]]) -> dict[int, float]:
    """Chances of the tokens that contexts vote for."""
    most = max((trust for trust, _ in votes), default=0.0)
    shares = [(math.exp(trust - most), context) for trust, context in votes]
    total = sum(share for share, _ in shares)
    chances: dict[int, float] = {}
    # Contexts with few followers name the candidates; of the thousands that follow a short one, these alone matter.
    for share, context in sorted(shares, key=lambda vote: len(vote[1].followers)):
        if share < LEAST_SHARE * total:
            continue
        unit, followers = share / (total * context.followed), context.followers
        tokens = followers if len(chances) < MAX_CHILDREN else chances.keys() & followers.keys()
        for token in tokens:
            chances[token] = chances.get(token, 0.0) + unit * followers[token].weight
    return chances


def _has_ended(in_corpus: Suffixes, in_drive: Suffixes) -> bool:
    """Whether the last token is one that nothing has ever followed."""
    last = [suffixes[1] for suffixes in (in_corpus, in_drive) if len(suffixes) > 1]
    return any(context.places for context in last) and not any(context.followers for context in last)
