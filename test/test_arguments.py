"""Types of arguments: what fits comes back as it is, what does not is told in words."""

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from flatrope_planner.arguments import JOBS, SEED, output_folder, real_number, user_path, whole_number


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5", "nan", ""])
def test_a_count_is_a_whole_number_from_one(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^'{text}' is no whole number of at least 1$"):
        whole_number(1)(text)
    assert whole_number(1)("1") == 1


def test_whole_numbers_have_an_end_where_they_need_one() -> None:
    assert JOBS("1024") == 1024
    assert SEED("4294967295") == 4294967295
    with pytest.raises(ArgumentTypeError, match="from 0 to 4294967295"):
        SEED("4294967296")
    with pytest.raises(ArgumentTypeError, match="from 1 to 1024"):
        JOBS("1000000")


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "1e400", "600.1", "soon"])
def test_a_real_number_lies_within_its_limits(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"is no number from 0\.1 to 600$"):
        real_number(0.1, 600.0)(text)
    assert real_number(0.1, 600.0)("0.1") == 0.1


def test_a_folder_to_write_into_need_not_exist_yet(tmp_path: Path) -> None:
    assert output_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert output_folder("never/made") == Path("never/made")
    assert not Path("never").exists()


def test_a_tilde_is_the_home_folder_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("~/bags/drive") == tmp_path / "bags" / "drive"
    assert output_folder("~/out") == tmp_path / "out"
    assert user_path("~no_such_user/drive") == Path("~no_such_user/drive")
    assert user_path("a~/~b") == Path("a~/~b")


def test_a_file_is_no_folder_and_has_none_below_it(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    for path in (file, file / "below", file / "far" / "below"):
        with pytest.raises(ArgumentTypeError, match=r"notes\.txt is a file, expected a folder"):
            output_folder(str(path))
    assert file.read_text() == "mine"
