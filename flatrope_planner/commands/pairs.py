"""Arguments of the form name=value."""

from collections.abc import Sequence
from pathlib import Path

from flatrope_planner.errors import InputError


def pairs(texts: Sequence[str], sign: str, form: str) -> dict[str, str]:
    """Names and values with a sign between them.

    Raises:
        InputError: for a text that is not of this form.
    """
    pairs = [text.partition(sign) for text in texts]
    for (name, found, _), text in zip(pairs, texts, strict=True):
        if not name or not found:
            msg = f"{text!r} is no argument of the form {form}"
            raise InputError(msg)
    return {name: value for name, _, value in pairs}


def drafts_named(texts: Sequence[str]) -> dict[str, Path]:
    """Folders of drafts by name.

    Raises:
        InputError: for a text of another form, and a name that stands there twice.
    """
    drafts = {name: Path(folder) for name, folder in pairs(texts, "=", "NAME=FOLDER").items()}
    if len(drafts) < len(texts):
        msg = f"--draft {' '.join(texts)}: a name stands there twice, expected one name for each draft"
        raise InputError(msg)
    return drafts
