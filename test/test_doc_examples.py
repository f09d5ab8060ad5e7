"""The examples of the documents do what they say, word for word."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_an_observation_is_planned_for_in_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / "targets.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "docs/targets.md", "exec"), names)  # noqa: S102 - an example of ours
    words = capsys.readouterr().out
    # It says something, drives on, and drafts.
    assert re.match(r"[A-Z][a-z ,]+\. \[[\d. -]+\] \d", words)
