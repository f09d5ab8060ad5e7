"""Models of transformers as targets: their own `generate` is the judge."""

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.huggingface import CausalLMTarget, ModelPrompt
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter

VOCABULARY, BUDGET, IMAGE = 97, 20, 90
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
}
ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1], "mrope_interleaved": True}


def llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**SIZES))


def qwen3() -> PreTrainedModel:
    return Qwen3ForCausalLM(Qwen3Config(**SIZES))


def qwen3_vl() -> PreTrainedModel:
    vision = {
        "depth": 2,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_heads": 2,
        "patch_size": 4,
        "spatial_merge_size": 2,
        "out_hidden_size": 32,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0],
    }
    text = {**SIZES, "rope_parameters": ROPE}
    ids = {"image_token_id": IMAGE, "video_token_id": 91, "vision_start_token_id": 92, "vision_end_token_id": 93}
    return Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config=text, vision_config=vision, **ids))


def sharpened(model: PreTrainedModel) -> PreTrainedModel:
    """Weights large enough for logits to differ clearly."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim >= 2:
                weight.mul_(6.0)
    return model.eval()


def generated(model: PreTrainedModel, prompt: ModelPrompt, stop: int) -> list[int]:
    ids = torch.tensor([prompt.token_ids])
    extra = dict(prompt.inputs)
    if extra:
        extra["mm_token_type_ids"] = (ids == IMAGE).int()
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=BUDGET,
        do_sample=False,
        eos_token_id=stop,
        pad_token_id=0,
        suppress_tokens=[5, 6],
        **extra,
    )
    tokens: list[int] = out[0, ids.shape[1] :].tolist()
    return tokens


def with_pictures(model: PreTrainedModel, seed: int) -> ModelPrompt:
    grid = torch.tensor([[1, 4, 6], [1, 4, 4]])
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randn(int(grid.prod(1).sum()), 3 * 2 * 4 * 4, generator=generator)
    ids = [7, 92, *[IMAGE] * 6, 93, 11, 92, *[IMAGE] * 4, 93, 12 + seed, 13]
    types = (torch.tensor([ids]) == IMAGE).int()
    positions, _ = model.model.get_rope_index(torch.tensor([ids]), mm_token_type_ids=types, image_grid_thw=grid)
    return ModelPrompt(tuple(ids), {"pixel_values": pixels, "image_grid_thw": grid}, positions[:, 0])


@pytest.mark.parametrize("make", [llama, qwen3, qwen3_vl])
@pytest.mark.parametrize("width", [1, 8])
def test_the_text_is_that_of_generate(make: object, width: int) -> None:
    torch.manual_seed(3)
    model = sharpened(make())  # type: ignore[operator]
    seen: set[int] = set()
    for seed in range(4):
        vl = make is qwen3_vl
        prompt = with_pictures(model, seed) if vl else ModelPrompt(tuple(range(20 + seed, 31 + 3 * seed)))
        want = generated(model, prompt, stop=2)
        seen.update(want)
        target = CausalLMTarget(model, (2,), BUDGET, forbidden=(5, 6), tapped_layers=(0, 2))
        plain = Decoder(target, None, width).decode(prompt)
        spoken = Decoder(target, RehearsedDrafter(want, VOCABULARY, Rehearsal(0.8, seed=seed)), width).decode(prompt)
        assert list(plain.token_ids)[: len(want)] == want
        assert spoken.token_ids == plain.token_ids
        if width > 1 and len(want) > 3:
            assert spoken.speculation.rounds < plain.speculation.rounds
    assert len(seen) > 6


def test_tapped_states_are_those_of_one_pass_over_everything() -> None:
    torch.manual_seed(0)
    model = sharpened(qwen3())
    target = CausalLMTarget(model, (2,), BUDGET, tapped_layers=(1,))
    prompt = ModelPrompt((3, 4, 8, 9, 10))
    state, read = target.prefill(prompt, Block.of(10, Candidates.chain((7, 9), "")))
    assert read.tapped.shape == (1, 4, 32)
    with torch.inference_mode():
        # The list of hidden states begins with the embeddings.
        whole = model(torch.tensor([[3, 4, 8, 9, 10, 7, 9]]), output_hidden_states=True).hidden_states[2]
    torch.testing.assert_close(read.tapped[0], whole[0, :4], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(read.block.tapped[0], whole[0, 4:], atol=1e-5, rtol=1e-4)
    result = target.step(state, Block.of(7, Candidates()))
    torch.testing.assert_close(result.tapped[0, 0], whole[0, 5], atol=1e-5, rtol=1e-4)


def test_what_cannot_be_verified_is_refused() -> None:
    sliding = Qwen3Config(**SIZES, use_sliding_window=True, sliding_window=8, max_window_layers=1)
    with pytest.raises(SetupError, match="sliding_attention"):
        CausalLMTarget(Qwen3ForCausalLM(sliding), (2,), BUDGET)
    mistral = MistralConfig(**SIZES, sliding_window=8)
    with pytest.raises(SetupError, match="sliding_window is 8"):
        CausalLMTarget(MistralForCausalLM(mistral), (2,), BUDGET)
    with pytest.raises(SetupError, match="GPT2Config has no num_key_value_heads"):
        CausalLMTarget(GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2)), (2,), BUDGET)
    target = CausalLMTarget(qwen3(), (2,), BUDGET)
    with pytest.raises(InputError, match="no tokens"):
        target.prefill(ModelPrompt(()), Block.of(0, Candidates()))


def test_a_prompt_of_one_token_is_a_prompt() -> None:
    torch.manual_seed(1)
    model = sharpened(llama())
    want = generated(model, ModelPrompt((9,)), stop=2)
    target = CausalLMTarget(model, (2,), BUDGET, forbidden=(5, 6))
    assert list(Decoder(target, None, 8).decode(ModelPrompt((9,))).token_ids)[: len(want)] == want
