"""What a target wrote and what went on in it while it wrote: the material that drafts learn from.

A folder of traces holds `traces.json` and one safetensors file for each drive. Nothing in it can run.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from flatrope_planner.errors import InputError, reason
from flatrope_planner.speculation.checkpoints.files import read_json
from flatrope_planner.speculation.checkpoints.weights import write_tensors

HEADER_FILE = "traces.json"
FORMAT = "flatrope-traces-1"


@dataclass(frozen=True)
class TraceHeader:
    """Whose traces they are."""

    # See `speculation.fingerprint`.
    fingerprint: str
    hidden: int
    vocab_size: int
    tapped_layers: tuple[int, ...]
    # Rotary pairs of time, height and width in the target, None where it counts in a line.
    mrope_section: tuple[int, ...] | None
    rope_theta: float


@dataclass(frozen=True)
class Trace:
    """One text."""

    # int32 (L,): the prompt, the text, its end marks.
    tokens: Tensor
    # Tokens of the prompt.
    prompt: int
    # int32 (3, L): rotary positions in the target.
    positions: Tensor
    # bfloat16 (taps, L - 1, hidden): of all tokens but the last, which the target need not read.
    tapped: Tensor
    # int32: indices of the ego history.
    pinned: Tensor
    # int32 and float32 (L - prompt, k): the target's likeliest tokens at each place of the text, and their log
    # probabilities.
    likeliest: Tensor
    log_probability: Tensor

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))


FIELDS = tuple(field.name for field in fields(Trace))


def write_header(directory: Path, header: TraceHeader) -> None:
    """Begin a folder of traces.

    Raises:
        InputError: when it holds another target's traces.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / HEADER_FILE
    if path.exists():
        if read_header(directory) != header:
            msg = f"{path}: traces of another target, or of other layers; use an empty folder"
            raise InputError(msg)
        return
    # Several processes may begin at once; none shall read what another has half written.
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps({"format": FORMAT, **asdict(header)}, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def read_header(directory: Path) -> TraceHeader:
    """Whose traces a folder holds.

    Raises:
        InputError: when it holds none.
    """
    path = directory / HEADER_FILE
    try:
        content: dict[str, Any] = read_json(path)
        if content.pop("format") != FORMAT:
            raise KeyError(FORMAT)
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
        return _checked(TraceHeader(**fields))
    except (AttributeError, OSError, ValueError, KeyError, TypeError) as err:
        msg = f"{path}: no traces ({reason(err)}); make some with `flatrope capture`"
        raise InputError(msg) from err


def _checked(header: TraceHeader) -> TraceHeader:
    """The header, if its values are of their types.

    Raises:
        ValueError: naming the one that is not.
    """
    fits = {
        "fingerprint": isinstance(header.fingerprint, str),
        "hidden": _are_whole((header.hidden,)),
        "vocab_size": _are_whole((header.vocab_size,)),
        "tapped_layers": _are_whole(header.tapped_layers, least=0),
        "mrope_section": header.mrope_section is None or _are_whole(header.mrope_section),
        "rope_theta": type(header.rope_theta) in (int, float) and header.rope_theta >= 1.0,
    }
    wrong = [name for name, is_right in fits.items() if not is_right]
    if wrong:
        msg = f"{wrong[0]} is {str(getattr(header, wrong[0]))[:40]!r}"
        raise ValueError(msg)
    return header


def _are_whole(values: object, least: int = 1) -> bool:
    return isinstance(values, tuple) and bool(values) and all(type(value) is int and value >= least for value in values)


def list_drives(directory: Path) -> list[Path]:
    """All complete files of traces, in a fixed order."""
    return sorted(path for path in directory.glob("*.safetensors") if not path.name.startswith("."))


def write_drive(path: Path, traces: Sequence[Trace]) -> None:
    """Write the traces of one drive, whole or not at all.

    Raises:
        SetupError: when they cannot be written.
    """
    arrays: dict[str, Tensor] = {}
    for number, trace in enumerate(traces):
        arrays |= {
            f"{number}.tokens": trace.tokens.to(torch.int32),
            f"{number}.prompt": torch.tensor([trace.prompt], dtype=torch.int32),
            f"{number}.positions": trace.positions.to(torch.int32).contiguous(),
            f"{number}.tapped": trace.tapped.to(torch.bfloat16).contiguous(),
            f"{number}.pinned": trace.pinned.to(torch.int32),
            f"{number}.likeliest": trace.likeliest.to(torch.int32).contiguous(),
            f"{number}.log_probability": trace.log_probability.to(torch.float32).contiguous(),
        }
    partial = path.with_name(f".{path.name}")
    write_tensors(partial, arrays)
    partial.replace(path)


def read_drive(path: Path) -> list[Trace]:
    """All traces of one drive.

    Raises:
        InputError: when the file holds something else.
    """
    return [read_trace(path, number) for number in range(count_traces(path))]


def count_traces(path: Path) -> int:
    """How many texts a drive has, by the file's header alone.

    Raises:
        InputError: when the file holds something else.
    """
    return len(text_lengths(path))


def text_lengths(path: Path) -> list[int]:
    """Tokens of each text of a drive, end marks included, by the file's header alone.

    Raises:
        InputError: when the file holds something else.
    """
    with _reading(path) as file:
        count = sum(name.endswith(".tokens") for name in file.keys())  # noqa: SIM118 - it is no mapping
        if not count:
            msg = "no trace in it"
            raise ValueError(msg)
        shapes = (file.get_slice(f"{number}.likeliest").get_shape() for number in range(count))
        # What else is amiss is said of a text when it is read.
        return [next(iter(shape), 0) for shape in shapes]


def read_trace(path: Path, number: int) -> Trace:
    """One trace of a drive; nothing else of the file is read.

    Raises:
        InputError: when the file holds something else.
    """
    with _reading(path) as file:
        # Copied: what is read lies in the file otherwise, for as long as it is needed.
        return _trace({f"{number}.{field}": file.get_tensor(f"{number}.{field}").clone() for field in FIELDS}, number)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """An open file of traces; whatever is wrong with it is said of it by name."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError, KeyError, RuntimeError, ValueError) as err:
        msg = f"{path}: not a file of traces ({reason(err)})"
        raise InputError(msg) from err


def _trace(arrays: Mapping[str, Tensor], number: int) -> Trace:
    """One text of a file.

    Raises:
        ValueError: naming an array that does not fit the others.
    """
    trace = Trace(
        tokens=arrays[f"{number}.tokens"],
        prompt=int(arrays[f"{number}.prompt"]),
        positions=arrays[f"{number}.positions"],
        tapped=arrays[f"{number}.tapped"],
        pinned=arrays[f"{number}.pinned"],
        likeliest=arrays[f"{number}.likeliest"],
        log_probability=arrays[f"{number}.log_probability"],
    )
    length, text = trace.tokens.numel(), trace.tokens.numel() - trace.prompt
    fits = {
        "tokens": trace.tokens.ndim == 1,
        "prompt": 0 < trace.prompt < length,
        "positions": trace.positions.shape == (3, length),
        "tapped": trace.tapped.ndim == len(("taps", "tokens", "hidden")) and trace.tapped.shape[1] == length - 1,
        "pinned": trace.pinned.ndim == 1 and bool(((trace.pinned >= 0) & (trace.pinned < length)).all()),
        "likeliest": trace.likeliest.ndim == len(("tokens", "k")) and len(trace.likeliest) == text,
        "log_probability": trace.log_probability.shape == trace.likeliest.shape,
    }
    wrong = [name for name, is_right in fits.items() if not is_right]
    if wrong:
        msg = f"{number}.{wrong[0]} does not fit a text of {length} tokens behind a prompt of {trace.prompt}"
        raise ValueError(msg)
    return trace
