"""Texts drawn by chance: against transformers' own `generate`, and whatever is proposed."""

import pytest
import torch
from test_nano import GRID, pictures_of, pixel_values
from tiny_nano import noise_observation, tiny_model, tiny_target, tiny_tokenizer

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.sampling import Sampling

WAYS = [Sampling(3), Sampling(4, temperature=1.3, top_p=1.0), Sampling(5, top_p=0.7), Sampling(6, 2.0, 0.9, top_k=5)]


@pytest.mark.parametrize("sampling", WAYS, ids=str)
def test_a_drawn_text_equals_generate_with_the_same_seed(sampling: Sampling) -> None:
    model, target, observation = tiny_model(1), tiny_target(1), noise_observation(1)
    prompt = target.prepare(observation)
    drawn = Decoder(target, sampling=sampling).decode(prompt).token_ids
    ids = torch.tensor([list(prompt.token_ids)])
    torch.manual_seed(sampling.seed)
    generated = model.vlm.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == model.image_pad).int(),
        pixel_values=pixel_values(pictures_of(observation)),
        image_grid_thw=GRID,
        max_new_tokens=target.token_budget,
        do_sample=True,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k or 0,
        suppress_tokens=list(tiny_tokenizer().history_ids),
        eos_token_id=target.stop_token,
        pad_token_id=0,
    )[0, ids.shape[1] :].tolist()
    assert len(set(generated)) > 5
    assert list(drawn[: len(generated)]) == generated


@pytest.mark.parametrize(("right", "branches"), [(1.0, 1), (0.0, 1), (0.7, 1), (0.6, 3)])
def test_what_is_proposed_changes_no_drawn_text(right: float, branches: int) -> None:
    target, sampling = tiny_target(), Sampling(7, temperature=1.5)
    prompt = target.prepare(noise_observation(2))
    plain = Decoder(target, None, 16, sampling=sampling).decode(prompt)
    guesser = RehearsedDrafter(plain.token_ids, len(target.forbidden), Rehearsal(right, branches, 3))
    guessed = Decoder(target, guesser, 16, sampling=sampling).decode(prompt)
    assert guessed.token_ids == plain.token_ids
    if right == 1.0:
        assert guessed.speculation.rounds <= len(plain.token_ids) // 16 + 1
    other = Decoder(target, None, 16, sampling=Sampling(8, temperature=1.5)).decode(prompt)
    assert other.token_ids != plain.token_ids


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"top_p": 1.5}, {"top_k": 0}])
def test_what_cannot_be_drawn_from_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected more than 0"):
        Sampling(0, **wrong)  # type: ignore[arg-type]
