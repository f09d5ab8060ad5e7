"""Weights in a file of `torch.save`, read without unpickling it: a ZIP archive of a pickle and plain numbers."""

import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from flatrope_planner.errors import InputError, SetupError, reason
from flatrope_planner.vla.checkpoint.inert_arrays import TensorEntry, tensor_of
from flatrope_planner.vla.checkpoint.inert_pickle import Call, Named, read_inert

# What describes the weights, optimisers included, of a model of a few billion has a hundredth of this.
MOST_PICKLE_BYTES = 256 * 2**20
PICKLE, STORAGES, BYTE_ORDER = "/data.pkl", "/data/", "/byteorder"
KINDS = {
    "FloatStorage": torch.float32,
    "BFloat16Storage": torch.bfloat16,
    "HalfStorage": torch.float16,
    "DoubleStorage": torch.float64,
}


class TorchArchive:
    """The tensors of a checkpoint of PyTorch Lightning, by name; each is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        """Open it and read what it holds.

        Raises:
            SetupError: when it is no such file, or damaged.
        """
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            self._root = self._find_root()
            described = self._read(self._root + PICKLE, MOST_PICKLE_BYTES)
            self.tensors = _state_dict(read_inert(described))
        except (OSError, zipfile.BadZipFile, InputError, ValueError) as err:
            msg = f"{path}: no checkpoint of PyTorch Lightning ({reason(err)}), expected a file of torch.save"
            raise SetupError(msg) from err

    def __enter__(self) -> "TorchArchive":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._zip.close()

    def load(self, name: str) -> Tensor:
        """One tensor, at the precision it is stored in.

        Raises:
            SetupError: when it is not whole.
        """
        entry = self.tensors[name]
        try:
            kind = KINDS[entry.storage_kind]
            content = self._read(f"{self._root}{STORAGES}{entry.storage}")
            values = torch.frombuffer(bytearray(content), dtype=kind)
            return values.as_strided(entry.shape, entry.stride, entry.offset).clone()
        except (OSError, KeyError, ValueError, RuntimeError, TypeError) as err:
            msg = f"{self._path}: {name} cannot be read ({reason(err)}), expected a whole tensor of {', '.join(KINDS)}"
            raise SetupError(msg) from err

    def _find_root(self) -> str:
        found = [name.removesuffix(PICKLE) for name in self._zip.namelist() if name.endswith(PICKLE)]
        if len(found) != 1:
            msg = f"{len(found)} files data.pkl in it"
            raise ValueError(msg)
        order = found[0] + BYTE_ORDER
        if order in self._zip.namelist() and self._read(order) != b"little":
            msg = "its bytes are in another order"
            raise ValueError(msg)
        return found[0]

    def _read(self, name: str, most_bytes: int | None = None) -> bytes:
        """Nothing is unpacked: PyTorch packs nothing."""
        entry = self._zip.getinfo(name)
        if entry.compress_type != zipfile.ZIP_STORED or (most_bytes is not None and entry.file_size > most_bytes):
            msg = f"{name} has {entry.file_size} bytes, or is compressed"
            raise ValueError(msg)
        return self._zip.read(entry)


def _state_dict(content: Any) -> dict[str, TensorEntry]:
    weights = content.get("state_dict") if isinstance(content, dict) else None
    if isinstance(weights, Call) and weights.function == Named("collections", "OrderedDict"):
        weights = weights.items
    if not isinstance(weights, dict):
        msg = "there is no state_dict in it"
        raise ValueError(msg)  # of the file, not of a caller
    found = {name: tensor_of(value) for name, value in weights.items() if isinstance(name, str)}
    return {name: entry for name, entry in found.items() if entry is not None}
