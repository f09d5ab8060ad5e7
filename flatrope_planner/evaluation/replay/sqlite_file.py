"""Reads a .db3 file, also one that was never completed, or is damaged: each of its rows that can be read."""

import sqlite3
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, Qos
from rosbags.rosbag2.metadata import parse_qos

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.definitions import FORMATS, NO_DEFINITION

# Behind a row that cannot be read, twice as many are passed over each time, until rows follow: 2**40 and more do not.
MOST_LEAPS = 40


def log_of(file: Path) -> Path:
    """Where SQLite logs what is to come into the file (its write-ahead log)."""
    return file.with_name(f"{file.name}-wal")


def has_log(file: Path) -> bool:
    """Whether whoever wrote the file was killed before what it had logged came into it."""
    log = log_of(file)
    return log.exists() and log.stat().st_size > 0


class SqliteFile:
    """Its topics, and its messages in the order of time; of each row some bytes are in memory, however large it is."""

    def __init__(self, path: Path, called: Path) -> None:
        """Look through the file; in complaints it is called differently where it was unpacked.

        Raises:
            InputError: if nothing in it can be read.
            sqlite3.Error: if it cannot be read at all.
        """
        self.path, self._called = path, called
        # Why some rows cannot be found; how many have no time; and how many no content, known once they were read.
        self._damage = "it was never completed" if has_log(path) else ""
        self._without_time = self._without_content = 0
        self._row, self._time_ns, self._topic = array("q"), array("q"), array("q")
        with closing(_opened(path)) as database:
            self._find_rows(database)
            topics, definitions = _topics(database), _definitions(database)
        if not self._row and (self._damage or not topics):
            raise InputError(self._damage or "it has no topics in it")
        counts = Counter(self._topic)
        self.message_count = len(self._row)
        self.start_time, self.end_time = (min(self._time_ns), max(self._time_ns) + 1) if self._row else (0, 0)
        self.connections = [
            Connection(number, name, kind, definitions.get(kind, NO_DEFINITION), "", counts[number], extra, self)
            for number, name, kind, extra in topics
        ]

    @property
    def complaints(self) -> list[str]:
        """What is missing of it, a line each; rows that were not asked for yet are not looked into."""
        lines = []
        if self._damage:
            lines.append(
                f"{self._called} is damaged or ends in the middle: {self.message_count} messages could be rescued"
            )
        useless = {"time": self._without_time, "content": self._without_content}
        lines += [f"{self._called}: {count} messages without a {name}" for name, count in useless.items() if count]
        return lines

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content."""
        wanted = {connection.id: connection for connection in connections}
        self._without_content = 0
        with closing(_opened(self.path)) as database:
            for index in np.argsort(np.array(self._time_ns), kind="stable").tolist():
                connection = wanted.get(self._topic[index])
                data = _content(database, self._row[index]) if connection else None
                if connection and data is None:
                    self._without_content += 1
                elif connection and data is not None:
                    yield connection, self._time_ns[index], data

    def _find_rows(self, database: sqlite3.Connection) -> None:
        """Note the rows of all messages, as they were written, and pass over those that cannot be read."""
        after, leaps = -(2**63), 0
        query = "SELECT id, topic_id, timestamp FROM messages WHERE id > ? ORDER BY id"
        while leaps < MOST_LEAPS:
            try:
                for row, topic, time_ns in database.execute(query, (after,)):
                    if row <= after:
                        msg = "its pages lead in a circle"
                        raise sqlite3.DatabaseError(msg)
                    after, leaps = row, 0
                    self._note_row(row, topic, time_ns)
            except sqlite3.Error as err:
                self._damage = self._damage or reason(err)
                after, leaps = max(after, 0) + 2**leaps, leaps + 1
            else:
                return

    def _note_row(self, row: int, topic: object, time_ns: object) -> None:
        if isinstance(topic, int) and isinstance(time_ns, int):
            self._row.append(row)
            self._topic.append(topic)
            self._time_ns.append(time_ns)
        else:
            self._without_time += 1


def _opened(path: Path) -> sqlite3.Connection:
    """The file for reading, whoever has locked it; with its log, which was never moved into it, where that is possible.

    Reading a log takes files beside it, which cannot be made everywhere.
    """
    uri = path.absolute().as_uri()
    if has_log(path):
        with suppress(sqlite3.Error):
            return _connected(f"{uri}?mode=ro")
    return _connected(f"{uri}?immutable=1")


def _connected(uri: str) -> sqlite3.Connection:
    database = sqlite3.connect(uri, uri=True, timeout=0.0)
    try:
        # Without this, SQLite does not touch a file that is shorter than it says it is.
        database.execute("PRAGMA writable_schema = ON")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    # A text that is none is no reason to read nothing.
    database.text_factory = lambda raw: raw.decode(errors="replace")
    return database


def _content(database: sqlite3.Connection, row: int) -> bytes | None:
    """The message in a row; None if it cannot be read, or is none."""
    try:
        found = database.execute("SELECT data FROM messages WHERE id = ?", (row,)).fetchone()
    except sqlite3.Error:
        return None
    return found[0] if found and isinstance(found[0], bytes) else None


def _topics(database: sqlite3.Connection) -> list[tuple[int, str, str, ConnectionExtRosbag2]]:
    """Number, name, type, and how it was sent."""
    found = []
    for row in _rows(database, "SELECT * FROM topics"):
        offered = _offered(row.get("offered_qos_profiles"))
        extra = ConnectionExtRosbag2(str(row.get("serialization_format") or ""), offered)
        if isinstance(row.get("id"), int):
            found.append((row["id"], str(row.get("name")), str(row.get("type")), extra))
    return found


def _definitions(database: sqlite3.Connection) -> dict[str, MessageDefinition]:
    """Type -> what the file says it is; bags before Iron say nothing."""
    return {
        str(row.get("topic_type")): MessageDefinition(form, str(row.get("encoded_message_definition")))
        for row in _rows(database, "SELECT * FROM message_definitions")
        if (form := FORMATS.get(str(row.get("encoding"))))
    }


def _rows(database: sqlite3.Connection, query: str) -> Iterator[dict[str, Any]]:
    """Rows by the names of their columns, up to the first that cannot be read."""
    try:
        cursor = database.execute(query)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))
    except sqlite3.Error:
        return


def _offered(text: object) -> list[Qos]:
    """How a topic was offered; nothing where that cannot be read."""
    try:
        return parse_qos(text) if isinstance(text, str) else []
    except Exception:  # texts that are no YAML, and YAML that is no quality of service
        return []
