"""Several processes at one training, as `accelerate launch` and `torchrun` start them."""

import atexit
import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, distributed

T = TypeVar("T")


def own_gpu(device: torch.device) -> torch.device:
    """The device of this process: of several processes on a machine each takes a GPU of its own, as far as they go."""
    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


class Crew:
    """The processes of this training; one, unless the environment says otherwise."""

    def __init__(self) -> None:
        """Join the others, if there are any."""
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.size > 1 and not distributed.is_initialized():
            distributed.init_process_group("gloo")
            # Its threads must have ended when the interpreter does, or the process is aborted.
            atexit.register(distributed.destroy_process_group)

    @property
    def leads(self) -> bool:
        """Whether this process reports and writes."""
        return self.rank == 0

    def share(self, batch: Sequence[T]) -> list[T]:
        """This process's part of a batch."""
        return list(batch[self.rank :: self.size])

    def average(self, values: Iterable[Tensor]) -> None:
        """Replace values by their mean over all processes."""
        if self.size == 1:
            return
        for value in values:
            distributed.all_reduce(value)
            value.div_(self.size)

    def agree(self, *, wish: bool) -> bool:
        """Whether any process wishes so: all stop together or none does."""
        if self.size == 1:
            return wish
        votes = torch.tensor([int(wish)])
        distributed.all_reduce(votes, op=distributed.ReduceOp.MAX)
        return bool(votes.item())

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            distributed.barrier()
