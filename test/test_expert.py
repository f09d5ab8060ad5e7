"""The action expert and its flow."""

import torch
from tiny_nano import tiny_model

from flatrope_planner.vla.cache import KeyValues
from flatrope_planner.vla.expert import expert_mask, expert_positions
from flatrope_planner.vla.flow import draw_flow_batch, integrate

MODEL = tiny_model()


def memory(length: int, seed: int = 0) -> KeyValues:
    random = torch.Generator().manual_seed(seed)
    config = MODEL.config
    shape = (2, config.kv_heads, length, config.head_dim)
    draws = [torch.randn(shape, generator=random) for _ in range(2 * config.layers)]
    return KeyValues(draws[: config.layers], draws[config.layers :])


def velocity(stored: KeyValues, offset: list[int], delta: list[int]) -> torch.Tensor:
    random = torch.Generator().manual_seed(9)
    action = torch.randn(2, 64, 2, generator=random)
    with torch.inference_mode():
        result: torch.Tensor = MODEL.expert(
            action, torch.tensor([0.2, 0.7]), stored, torch.tensor(offset), torch.tensor(delta)
        )
    return result


def test_positions_follow_alpamayos_rule() -> None:
    positions = expert_positions(torch.tensor([400, 390]), torch.tensor([-224, -224]))
    assert positions.shape == (3, 2, 64)
    assert (positions == positions[:1]).all()
    assert positions[0, :, 0].tolist() == [176, 166]
    assert positions[0, 0, -1] == 176 + 63


def test_mask_hides_what_lies_between_offset_and_expert() -> None:
    mask = expert_mask(torch.tensor([3, 5]), 6)
    assert mask.shape == (2, 1, 64, 70)
    assert mask[0, 0, 17, :6].tolist() == [True, True, True, False, False, False]
    assert mask[1, 0, 0, :6].tolist() == [True] * 5 + [False]
    assert mask[:, :, :, 6:].all()


def test_slots_behind_the_offset_do_not_matter_and_those_before_do() -> None:
    stored, other = memory(20), memory(20)
    for layer in (*other.keys, *other.values):
        layer[:, :, 15:] = 7.0
    torch.testing.assert_close(velocity(other, [15, 15], [-3, -3]), velocity(stored, [15, 15], [-3, -3]))
    assert (velocity(other, [16, 16], [-3, -3]) - velocity(stored, [16, 16], [-3, -3])).abs().max() > 1e-4


def test_cutting_the_memory_equals_masking_it() -> None:
    stored = memory(20)
    cut = KeyValues([key[:, :, :15] for key in stored.keys], [value[:, :, :15] for value in stored.values])
    torch.testing.assert_close(velocity(cut, [15, 15], [0, 0]), velocity(stored, [15, 15], [0, 0]))


def test_the_memory_is_left_as_it_was() -> None:
    stored = memory(12)
    before = [key.clone() for key in stored.keys]
    velocity(stored, [12, 12], [0, 0])
    assert all(key.shape[2] == 12 and torch.equal(key, old) for key, old in zip(stored.keys, before, strict=True))


def test_euler_steps_on_a_field_with_a_known_solution() -> None:
    # dx/dt = -x + 2: n steps of Euler give 2 + (x0 - 2) (1 - 1/n)^n.
    noise = torch.tensor([[[1.0, -3.0]]]).double()
    got = integrate(lambda x, _: 2.0 - x, noise, 10)
    torch.testing.assert_close(got, 2.0 + (noise - 2.0) * 0.9**10)


def test_euler_times_begin_at_zero_and_never_reach_one() -> None:
    times: list[float] = []

    def field(x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        times.append(float(time[0]))
        return torch.zeros_like(x)

    integrate(field, torch.zeros(1, 64, 2), 4)
    assert times == [0.0, 0.25, 0.5, 0.75]


def test_training_points_lie_on_the_straight_path() -> None:
    action = torch.randn(4000, 64, 2, generator=torch.Generator().manual_seed(1))
    flow = draw_flow_batch(action, torch.Generator().manual_seed(2))
    end = flow.noisy + (1.0 - flow.time)[:, None, None] * flow.velocity
    torch.testing.assert_close(end, action, atol=1e-5, rtol=0.0)
    # 0.999 (1 - Beta(1.5, 1)) has mean 0.4 * 0.999.
    assert abs(float(flow.time.mean()) - 0.3996) < 0.015
    assert 0.0 <= float(flow.time.min()) <= float(flow.time.max()) < 1.0
