"""Where the simulation waits for commands. Knows no ROS."""

from threading import Condition

from flatrope_planner.domain import DriveCommand


class CommandMailbox:
    """Holds the newest command; `close` ends all waiting."""

    def __init__(self) -> None:
        """Begin without a command."""
        self._news = Condition()
        self._command: DriveCommand | None = None
        self._fresh = self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no command will come any more."""
        return self._closed

    def put(self, command: DriveCommand) -> None:
        """Replace the command."""
        with self._news:
            self._command, self._fresh = command, True
            self._news.notify_all()

    def clear(self) -> None:
        """Forget the command: a new episode begins."""
        with self._news:
            self._command, self._fresh = None, False

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def take(self, wait_s: float) -> tuple[DriveCommand | None, bool]:
        """The newest command, and whether it came since the last call; waits for such a one up to `wait_s`."""
        with self._news:
            self._news.wait_for(lambda: self._fresh or self._closed, wait_s)
            fresh, self._fresh = self._fresh, False
            return self._command, fresh

    def sleep(self, duration_s: float) -> None:
        """Wait for a while, or until closed."""
        with self._news:
            self._news.wait_for(lambda: self._closed, duration_s)
