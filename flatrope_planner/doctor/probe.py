"""Processes that try something out and print what they saw as lines of JSON; a crash there is a finding, not an end."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from flatrope_planner.errors import SetupError, reason


class Probe:
    """One such process, started at once; also a context that leaves nothing running."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Run the module with this very Python."""
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def facts(self, timeout_s: float) -> dict[str, Any]:
        """All that the process has said, once it has ended; later lines add to earlier ones.

        What kept it from saying all stands under "trouble".

        Args:
            timeout_s: since its start; then it is ended, and what it has said so far counts.

        Raises:
            SetupError: with its last words, when it has said nothing.
        """
        late = False
        try:
            said, complaints = self._process.communicate(timeout=self._left_s(timeout_s))
        except subprocess.TimeoutExpired:
            late = True
            self._process.kill()
            said, complaints = self._process.communicate()
        facts = {name: value for line in _lines_of_json(said) for name, value in line.items()}
        trouble = f"no answer within {timeout_s:.0f} s" if late else self._last_words(complaints)
        if not facts:
            raise SetupError(trouble)
        return {**facts, "trouble": trouble} if late or self._process.returncode else facts

    def _left_s(self, timeout_s: float) -> float:
        return max(0.0, self._started_s + timeout_s - time.monotonic())

    def _last_words(self, complaints: str) -> str:
        lines = [line for line in complaints.splitlines() if line.strip()]
        return reason(RuntimeError(lines[-1] if lines else f"exit code {self._process.returncode}"))


def _lines_of_json(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            # Libraries print, too.
            continue
        if isinstance(content, dict):
            found.append(content)
    return found
