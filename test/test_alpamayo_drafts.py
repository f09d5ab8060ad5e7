"""From drives of an Alpamayo to a draft beside its checkpoint, with the same commands as for nano."""

from pathlib import Path

import pytest
from draft_journey import check_draft_of_own_drives
from tiny_alpamayo import CASES, observation, write_checkpoint


def test_from_drives_to_a_draft_that_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = write_checkpoint(tmp_path / "alpamayo")
    check_draft_of_own_drives(checkpoint, tmp_path, observation(CASES["standing"]), monkeypatch)
