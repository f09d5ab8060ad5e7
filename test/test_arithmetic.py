"""Precisions that a device is slow at are told of, no others."""

import pytest
import torch

from flatrope_planner.vla.arithmetic import slow_arithmetic

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("capability", "device", "precision", "slow"),
    [
        ("AVX2", CPU, torch.bfloat16, True),
        ("NO AVX", CPU, torch.bfloat16, True),
        ("AVX512", CPU, torch.bfloat16, False),
        # An ARM processor.
        ("SVE256", CPU, torch.bfloat16, False),
        ("AVX2", CPU, torch.float32, False),
        ("AVX2", GPU, torch.bfloat16, False),
    ],
)
def test_only_bfloat16_on_a_cpu_without_it_is_slow(
    monkeypatch: pytest.MonkeyPatch, capability: str, device: torch.device, precision: torch.dtype, slow: bool
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert ("precision: float32" in slow_arithmetic(device, precision)) is slow
