"""`flatrope bench decode --target`: folders that hold no model, and prompts that are none, are one line."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from flatrope_planner.errors import FlatropeError
from flatrope_planner.evaluation.text_decode_benchmark import TextDecodeOptions, run_text_decode_benchmark

WORDS = 30
END = "<end>"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama that knows 31 tokens, and a tokenizer that knows one more."""
    folder = tmp_path_factory.mktemp("shelf") / "llama"
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    LlamaForCausalLM(LlamaConfig(vocab_size=WORDS + 1, eos_token_id=WORDS, **sizes)).save_pretrained(folder)
    known = {**{f"w{number}": number for number in range(WORDS)}, END: WORDS, "beyond": WORDS + 1}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    return folder


def complaint(folder: Path, prompts: str, drafts: dict[str, Path] | None = None) -> str:
    file = folder.parent / "prompts.txt"
    file.write_text(prompts)
    with pytest.raises(FlatropeError) as caught:
        run_text_decode_benchmark(TextDecodeOptions(folder, file, 4, drafts or {}))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_weights_that_are_not_there_are_not_made_up(shelf: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shelf, tmp_path / "llama"))
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "no weight 'lm_head.weight' (1 such)" in complaint(folder, "w1 w2")
    (folder / "model.safetensors").write_bytes(b"")
    assert "model.safetensors: no weights of a model" in complaint(folder, "w1 w2")


def test_a_prompt_of_tokens_that_the_model_has_not_is_refused(shelf: Path) -> None:
    assert "'beyond' has token 31, expected the model's, 0 to 30" in complaint(shelf, "w1 w2\nbeyond\n")


def test_a_draft_hides_nobody(shelf: Path) -> None:
    assert "--draft oracle=...: the name is taken" in complaint(shelf, "w1", {"oracle": shelf})
