"""What a terminal and a log file show of long work."""

from io import StringIO

from flatrope_planner.evaluation.live_line import LiveLine
from flatrope_planner.progress import progress_line, with_progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_the_live_line_is_overwritten_and_others_stay_above() -> None:
    terminal = Terminal()
    live = LiveLine("[recorder] ", terminal)
    for line in ("[recorder] one", "[planner] ready", "[recorder] two"):
        live.write(line)
    live.close()
    # What remains of each row once everything up to the last return has been overwritten.
    rows = [row.split("\r\x1b[K")[-1] for row in terminal.getvalue().split("\n")]
    assert rows == ["[planner] ready", "two", ""]


def test_in_a_log_the_live_line_comes_now_and_then() -> None:
    log = StringIO()
    live = LiveLine("[recorder] ", log)
    for line in ("[recorder] one", "[recorder] two", "[planner] ready"):
        live.write(line)
    live.close()
    assert log.getvalue() == "one\n[planner] ready\n"


def test_progress_says_what_is_left() -> None:
    assert progress_line("episodes", 12, 40, 66.0) == "episodes 12/40 (30 %), 1:06 passed, 2:34 left"


def test_progress_hands_everything_on() -> None:
    log = StringIO()
    assert list(with_progress("abc", 3, "letters", log)) == ["a", "b", "c"]
    assert log.getvalue().startswith("letters 3/3 (100 %)")
