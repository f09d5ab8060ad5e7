"""Which arithmetic a device is slow at."""

import torch

# What PyTorch calls x86 processors without AVX-512: there it has no kernels for products of large bfloat16 matrices.
WITHOUT_BFLOAT16 = {"NO AVX", "AVX2"}


def slow_arithmetic(device: torch.device, precision: torch.dtype) -> str:
    """What is to be said of a precision that a device has no instructions for; "" where it has."""
    if device.type != "cpu" or precision is not torch.bfloat16:
        return ""
    if torch.backends.cpu.get_cpu_capability() not in WITHOUT_BFLOAT16:
        return ""
    return (
        "bfloat16 on a CPU without AVX-512 reads pictures and prompt several times more slowly than float32 does; "
        "where twice the memory is there: precision: float32"
    )
