"""What a replay cannot do without, and what keeps a recording from having it, in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from rclpy.node import Node

from flatrope_planner.nodes.recording_tally import ODOMETRY_TYPE, PICTURE_TYPES, RecordingTally, TopicTally

# A topic that is silent for longer has stopped (s).
SILENT_S = 5.0
# Of other topics that may be meant, so many are named.
MOST_NAMED = 6


@dataclass(frozen=True)
class Need:
    """Messages of one kind on the topics where they are expected."""

    word: str
    types: tuple[str, ...]
    topics: tuple[str, ...]

    def complaints(self, node: Node, tally: RecordingTally, now_s: float) -> Iterator[str]:
        """What is amiss, a phrase each; it stays the same for as long as the same is amiss."""
        unpublished = [topic for topic in self.topics if not node.count_publishers(topic)]
        if unpublished:
            yield f"nobody publishes {', '.join(unpublished)}{self._elsewhere(node)}"
        types = dict(node.get_topic_names_and_types())
        # What there is to say of several topics -> the topics.
        silent: dict[str, list[str]] = {}
        for topic in self.topics:
            heard = tally.topics.get(topic)
            strange = [each for each in types.get(topic, []) if each not in self.types]
            if topic in unpublished:
                continue
            if strange:
                yield f"{topic} has no {self.word} but {', '.join(strange)}"
            elif heard is not None and heard.rejection and not heard.messages:
                yield f"nothing on {topic} can be used: {heard.rejection}"
            elif heard is None or not heard.messages:
                silent.setdefault(f", though somebody publishes there{_likely_cause(heard, tally, now_s)}", []).append(
                    topic
                )
            elif now_s - heard.last_s > SILENT_S:
                silent.setdefault(f" any more{_likely_cause(heard, tally, now_s)}", []).append(topic)
        for words, names in silent.items():
            yield f"nothing comes on {', '.join(names)}{words}"

    def is_met(self, tally: RecordingTally) -> bool:
        """Whether anything of the kind was recorded, on whatever topic of these."""
        return tally.count(self.types, self.topics) > 0

    def unheard(self, tally: RecordingTally) -> list[str]:
        """The topics of which nothing was recorded."""
        return [topic for topic in self.topics if not tally.count(self.types, [topic])]

    def _elsewhere(self, node: Node) -> str:
        """Where messages of the kind come that are not recorded."""
        found = [
            topic
            for topic, types in node.get_topic_names_and_types()
            if set(types) & set(self.types) and topic not in self.topics and node.count_publishers(topic)
        ]
        more = " ..." if len(found) > MOST_NAMED else ""
        return f" ({self.word}: {', '.join(sorted(found)[:MOST_NAMED])}{more})" if found else ""


def _likely_cause(heard: TopicTally | None, tally: RecordingTally, now_s: float) -> str:
    """What may keep the pictures of a camera from coming, in words behind a comma; "" for nothing.

    While odometry that somebody publishes does not come either, or has only just begun to, nothing need be kept.
    """
    small = [each for each in tally.topics.values() if each.message_type == ODOMETRY_TYPE]
    if small and not any(each.comes_steadily(now_s, SILENT_S) for each in small):
        return ""
    cause = heard.pictures.newest.silence() if heard is not None and heard.pictures is not None else ""
    return cause and f", {cause}"


def needs_of(cameras: str, odometry: str) -> tuple[Need, ...]:
    """The needs of a recording with these topics, separated by spaces; none where none are named."""
    needs = (
        Need("pictures", PICTURE_TYPES, tuple(cameras.split())),
        Need("odometry", (ODOMETRY_TYPE,), tuple(odometry.split())),
    )
    return tuple(need for need in needs if need.topics)
