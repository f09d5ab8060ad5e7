"""Processes that try something out and print what they saw as lines of JSON; a crash there is a finding, not an end."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any

from flatrope_planner.errors import SetupError, reason


class Probe:
    """One such process, started at once; also a context that leaves nothing running."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Run the module with this very Python."""
        # Files, not pipes: nobody need read while the process writes.
        self._files = ExitStack()
        self._output = self._files.enter_context(TemporaryFile())
        self._complaints = self._files.enter_context(TemporaryFile())
        self._started_s = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._complaints,
        )

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._files.close()

    def facts(self, timeout_s: float) -> dict[str, Any]:
        """All that the process has said, once it has ended; later lines add to earlier ones.

        Args:
            timeout_s: since its start; then it is ended, and what it has said so far counts.

        Raises:
            SetupError: with its last words, when it has said nothing.
        """
        late = False
        try:
            self._process.wait(max(0.0, self._started_s + timeout_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            late = True
            self._process.kill()
            self._process.wait()
        said = _lines_of_json(self._read(self._output))
        facts: dict[str, Any] = {name: value for line in said for name, value in line.items()}
        if not facts or late or self._process.returncode:
            facts["trouble"] = f"no answer within {timeout_s:.0f} s" if late else self._last_words()
        if set(facts) == {"trouble"}:
            raise SetupError(facts["trouble"])
        return facts

    def _last_words(self) -> str:
        lines = [line for line in self._read(self._complaints).splitlines() if line.strip()]
        return reason(RuntimeError(lines[-1] if lines else f"exit code {self._process.returncode}"))

    @staticmethod
    def _read(file: Any) -> str:
        file.seek(0)
        return str(file.read().decode(errors="replace"))


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
