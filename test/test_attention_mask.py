"""What a token must not see does not reach it, whichever attention implementation is at work."""

import pytest
import torch
from tiny_nano import tiny_model

from flatrope_planner.vla.attention_mask import additive
from flatrope_planner.vla.cache import KeyValues, RecordingCache

IMPLEMENTATIONS = ("eager", "sdpa")


def test_additive_masks_add_nothing_where_attended() -> None:
    bias = additive(torch.tensor([[True, False]]))
    assert bias[0, 0] == 0.0
    assert torch.softmax(torch.zeros(2) + bias[0], 0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_reading_is_causal(implementation: str) -> None:
    model = tiny_model()
    model.vlm.model.language_model.set_attn_implementation(implementation)
    ids = torch.arange(12)[None]
    other = ids.clone()
    other[0, 8:] = 3
    positions = torch.arange(12).expand(3, 1, 12)
    with torch.no_grad():
        one, two = (model.reader.read(tokens, positions, RecordingCache()).hidden for tokens in (ids, other))
    assert torch.equal(one[:, :8], two[:, :8])
    assert not torch.equal(one[:, 8:], two[:, 8:])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_expert_sees_nothing_behind_the_offset(implementation: str) -> None:
    model = tiny_model()
    model.expert.trunk.set_attn_implementation(implementation)
    config = model.config
    shape = (1, config.kv_heads, 10, config.head_dim)
    generator = torch.Generator().manual_seed(0)
    keys = [torch.randn(shape, generator=generator) for _ in range(config.layers)]
    values = [torch.randn(shape, generator=generator) for _ in range(config.layers)]
    noise = torch.randn(1, 64, 2, generator=generator)

    def velocity(changed_slot: int) -> torch.Tensor:
        memory = KeyValues([key.clone() for key in keys], [value.clone() for value in values])
        for value in memory.values:
            value[:, :, changed_slot] += 1.0
        with torch.no_grad():
            out: torch.Tensor = model.expert(noise, torch.tensor([0.5]), memory, torch.tensor([7]), torch.tensor([0]))
        return out

    assert torch.equal(velocity(8), velocity(9))
    assert not torch.equal(velocity(6), velocity(9))
