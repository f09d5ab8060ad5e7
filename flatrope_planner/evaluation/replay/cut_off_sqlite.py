"""Reads a .db3 file that was never completed: its rows in the order in which they were written, as far as they go."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat

NO_DEFINITION = MessageDefinition(MessageDefinitionFormat.NONE, "")


def has_log(file: Path) -> bool:
    """Whether whoever wrote the file was killed before what it had logged came into it (SQLite's write-ahead log)."""
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


class CutOffSqlite:
    """What of a reader of rosbags is needed; finds its topics by reading everything once."""

    complete = False

    def __init__(self, path: Path) -> None:
        """Look through the file; whatever is wrong with it ends it."""
        self.path = path
        counts: Counter[int] = Counter()
        times: list[int] = []
        for topic, log_ns, _ in self._messages():
            counts[topic] += 1
            times = [min([log_ns, *times]), max([log_ns, *times])]
        self.message_count = sum(counts.values())
        self.start_time, self.end_time = (times[0], times[1] + 1) if times else (0, 0)
        rows = self._rows("id, name, type, serialization_format", "topics")
        self.connections = [self._connection(row, counts) for row in rows if isinstance(row[0], int)]

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content."""
        wanted = {connection.id: connection for connection in connections}
        for topic, log_ns, data in self._messages():
            if topic in wanted:
                yield wanted[topic], log_ns, data

    def _connection(self, row: tuple[Any, ...], counts: Counter[int]) -> Connection:
        number, (name, kind, form) = row[0], map(str, row[1:])
        return Connection(number, name, kind, NO_DEFINITION, "", counts[number], ConnectionExtRosbag2(form, []), self)

    def _messages(self) -> Iterator[tuple[int, int, bytes]]:
        """Number of the topic, time and content of every message that is one."""
        for topic, log_ns, data in self._rows("topic_id, timestamp, data"):
            if isinstance(topic, int) and isinstance(log_ns, int) and isinstance(data, bytes):
                yield topic, log_ns, data

    def _rows(self, columns: str, table: str = "messages") -> Iterator[tuple[Any, ...]]:
        """The rows of a table up to the first that cannot be read."""
        # What is in the log was never moved into the file.
        how = "mode=ro" if has_log(self.path) else "immutable=1"
        uri = f"{self.path.absolute().as_uri()}?{how}"
        with closing(sqlite3.connect(uri, uri=True)) as database, suppress(sqlite3.Error):
            # Without this, SQLite does not touch a file that is shorter than it says it is.
            database.execute("PRAGMA writable_schema = ON")
            yield from database.execute(f"SELECT {columns} FROM {table} ORDER BY id")  # noqa: S608 - our own words
