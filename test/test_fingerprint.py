"""Whose weights they are: every weight counts, however large, and the places that are looked at are exact."""

import hashlib

import torch
from torch import nn

from flatrope_planner.speculation.fingerprint import SAMPLED, fingerprint

# Single precision has no numbers between this and the next but one.
BEYOND_SINGLE_PRECISION = 2**24 + 3


def one_weight(values: torch.Tensor) -> nn.Module:
    model = nn.Module()
    model.weight = nn.Parameter(values, requires_grad=False)
    return model


def test_places_are_spread_evenly_from_the_first_to_the_last_value() -> None:
    values = torch.arange(1000, dtype=torch.bfloat16)
    places = [place * 999 // (SAMPLED - 1) for place in range(SAMPLED)]
    digest = hashlib.sha256(b"weight (1000,)" + values[places].view(torch.int16).numpy().tobytes())
    assert fingerprint(one_weight(values)) == digest.hexdigest()[:16]


def test_the_last_value_of_a_weight_of_real_size_counts() -> None:
    values = torch.zeros(BEYOND_SINGLE_PRECISION, dtype=torch.bfloat16)
    empty = fingerprint(one_weight(values))
    values[-1] = 1.0
    assert fingerprint(one_weight(values)) != empty


def test_precisions_share_a_name() -> None:
    values = torch.tensor([0.5, -3.0]).to(torch.bfloat16)
    assert fingerprint(one_weight(values)) == fingerprint(one_weight(values.float()))
