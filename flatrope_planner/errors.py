"""Errors a user can meet. Each message names the thing and what was expected of it."""

import sys
import traceback

# PyTorch lists every weight that does not fit.
MOST_CHARACTERS = 240


class FlatropeError(Exception):
    """Base of every error this package raises on purpose; the command line prints it as one line."""


class InputError(FlatropeError):
    """Raised when data from outside (image, pose, file, parameter) breaks its contract."""


class SetupError(FlatropeError):
    """Raised when something the command needs (ROS 2, weights, a library) is missing or does not fit."""


class NotReadyError(FlatropeError):
    """Raised when the inputs do not yet make up an observation; the message says what is missing."""


def reason(err: BaseException) -> str:
    """What a library complains about, on one line that is no book; the name of the error where it says nothing."""
    words = " ".join(str(err).split()) or type(err).__name__
    return words if len(words) <= MOST_CHARACTERS else f"{words[:MOST_CHARACTERS]} ..."


def on_one_line(words: str) -> str:
    """The words, where a name in them has line breaks, or bytes that are no letters, with these spelt out."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def described(err: BaseException) -> str:
    """The error in words; with its name and where it came from, unless it was raised on purpose."""
    if isinstance(err, FlatropeError):
        return str(err)
    place = traceback.extract_tb(err.__traceback__)[-1]
    return f"{type(err).__name__}: {reason(err)} ({place.name}, line {place.lineno})"


def import_complaint(err: ImportError) -> str:
    """What is missing, for which Python, and what to do, on one line."""
    remedy = 'source ROS 2, and build with the Python that has what is missing (README, "In a ROS 2 workspace")'
    return f"{sys.executable}: {reason(err)}: {remedy}"
