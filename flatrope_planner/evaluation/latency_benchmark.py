"""How much faster reasoning gets, on a model where a pass costs what it costs on a real one.

The target is a Qwen3-VL of 0.6 billion random weights in bfloat16; the drafters know its texts and are right with a set
probability at each place. So the figures are about the engine: what a pass, a round and the work about them cost.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, Qwen3VLConfig, Qwen3VLForConditionalGeneration

from flatrope_planner.errors import InputError
from flatrope_planner.progress import with_progress
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.huggingface import CausalLMTarget, ModelPrompt, ModelState
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.target import StepResult

# As long as a rationale: the stop token of a prompt is chosen so that its text ends after 16 tokens or a few more.
LEAST_TOKENS, MOST_TOKENS = 16, 28
IMAGE_TOKEN, VISION_START, VISION_END, VIDEO_TOKEN = 151_655, 151_652, 151_653, 151_656
GRID = (1, 10, 28)
PICTURES = 2
# Chances that a drafter's token is right.
ACCEPTANCES = (0.0, 0.5, 0.78, 0.9)
WIDTH = 8


@dataclass(frozen=True)
class LatencyOptions:
    """What to measure."""

    prompts: int = 6
    layers: int = 24
    hidden: int = 1024
    seed: int = 0
    threads: int = 2


def run_latency_benchmark(options: LatencyOptions) -> dict[str, Any]:
    """Write every prompt's text with `generate`, with the engine alone, and with each drafter.

    Raises:
        InputError: if there is nothing to measure.
    """
    if options.prompts < 1:
        msg = f"prompts is {options.prompts}, expected at least 1"
        raise InputError(msg)
    torch.set_num_threads(options.threads)
    model = random_model(options)
    rows: dict[str, list[_Run]] = {}
    prompts = [prompt_of(model, options.seed + number) for number in range(options.prompts)]
    for number, prompt in enumerate(with_progress(prompts, len(prompts), "prompts")):
        for name, run in _measure(model, prompt, options.seed + number).items():
            rows.setdefault(name, []).append(run)
    baseline, plain = rows.pop("generate"), rows["none"]
    return {
        "drafters": {name: _summary(runs, plain, baseline) for name, runs in rows.items()},
        "generate": {"reasoning_ms": _mean([run.reasoning_s for run in baseline]) * 1e3},
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "precision": "bfloat16",
        "block_size": WIDTH,
        "prompt_tokens": len(prompts[0].token_ids),
        "text_tokens": _mean([len(run.tokens) for run in baseline]),
        "prompts": options.prompts,
        "threads": options.threads,
    }


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{'':<16}{'tau':>8}{'rounds':>8}{'a pass':>10}{'host':>8}{'reasoning':>12}{'speed':>8}{'identical':>11}"]
    lines.append(f"{'generate':<16}{'':>34}{result['generate']['reasoning_ms']:>9.0f} ms{1.0:>7.2f}x")
    for name, row in result["drafters"].items():
        lines.append(
            f"{name:<16}{row['tau']:>8.2f}{row['rounds']:>8.1f}{row['pass_ms']:>7.1f} ms{row['host_share']:>8.1%}"
            f"{row['reasoning_ms']:>9.0f} ms{row['speedup']:>7.2f}x{row['identical']:>11.0%}"
        )
    lines.append(f"\n{result['parameters']:,} parameters, {result['precision']}, blocks of {result['block_size']}")
    return "\n".join(lines)


def random_model(options: LatencyOptions) -> Qwen3VLForConditionalGeneration:
    """A Qwen3-VL of random weights, as large as the small ones that are in use."""
    text = {
        "hidden_size": options.hidden,
        "intermediate_size": 3 * options.hidden,
        "num_hidden_layers": options.layers,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151_936,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5e6,
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
        },
    }
    vision = {
        "depth": 4,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_heads": 4,
        "out_hidden_size": options.hidden,
        "deepstack_visual_indexes": [0, 1],
    }
    ids = {"image_token_id": IMAGE_TOKEN, "video_token_id": VIDEO_TOKEN}
    ids |= {"vision_start_token_id": VISION_START, "vision_end_token_id": VISION_END}
    config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    torch.manual_seed(options.seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        model = Qwen3VLForConditionalGeneration(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval()


def prompt_of(model: Qwen3VLForConditionalGeneration, seed: int) -> ModelPrompt:
    """Two pictures and some words, all at random."""
    random = torch.Generator().manual_seed(seed)
    grid = torch.tensor([GRID] * PICTURES)
    patches = int(grid.prod(1).sum())
    width = 3 * 2 * model.config.vision_config.patch_size**2
    pixels = torch.randn(patches, width, generator=random).to(model.dtype)
    picture = [VISION_START, *[IMAGE_TOKEN] * (patches // PICTURES // 4), VISION_END]
    words = torch.randint(0, 150_000, (60,), generator=random).tolist()
    ids = [*words[:20], *picture * PICTURES, *words[20:]]
    kinds = (torch.tensor([ids]) == IMAGE_TOKEN).int()
    positions, _ = model.model.get_rope_index(torch.tensor([ids]), mm_token_type_ids=kinds, image_grid_thw=grid)
    return ModelPrompt(tuple(ids), {"pixel_values": pixels, "image_grid_thw": grid}, positions[:, 0])


@dataclass(frozen=True)
class _Run:
    tokens: tuple[int, ...]
    # From the first token to the end; and what the model itself took of it, pass by pass.
    reasoning_s: float
    passes_s: tuple[float, ...] = ()
    rounds: int = 0
    accepted: int = 0
    proposed: int = 0
    # Tokens behind the first one that rounds have brought.
    committed: int = 0


class _MeteredTarget(CausalLMTarget):
    """Notes how long the model itself takes in each pass."""

    def __init__(self, model: PreTrainedModel, ending: Sequence[int], token_budget: int) -> None:
        super().__init__(model, ending, token_budget)
        self.passes_s: list[float] = []
        self._spent_s = self._began_s = 0.0
        self._handles = [
            handle
            for module in (model.get_decoder(), model.get_output_embeddings())
            for handle in (module.register_forward_pre_hook(self._begin), module.register_forward_hook(self._end))
        ]

    def step(self, state: ModelState, block: Block) -> StepResult:
        self._spent_s = 0.0
        result: StepResult = super().step(state, block)
        self.passes_s.append(self._spent_s)
        return result

    def close(self) -> None:
        """Leave the model as it was."""
        for handle in self._handles:
            handle.remove()

    def _begin(self, *_: object) -> None:
        self._began_s = time.perf_counter()

    def _end(self, *_: object) -> None:
        self._spent_s += time.perf_counter() - self._began_s


def _measure(model: Qwen3VLForConditionalGeneration, prompt: ModelPrompt, seed: int) -> dict[str, _Run]:
    stop = _stop_token(_generate(model, prompt, MOST_TOKENS, None))
    runs = {"generate": _timed_generate(model, prompt, stop)}
    target = _MeteredTarget(model, (stop,), MOST_TOKENS)
    plain = runs["none"] = _decode(target, None, prompt)
    for acceptance in ACCEPTANCES:
        # Like a network, it guesses nothing before the prompt is read.
        rehearsal = Rehearsal(acceptance, seed=seed, anticipates=False)
        drafter = RehearsedDrafter(plain.tokens, len(target.forbidden), rehearsal)
        runs[f"accepts-{round(100 * acceptance)}"] = _decode(target, drafter, prompt)
    target.close()
    return runs


def _decode(target: _MeteredTarget, drafter: RehearsedDrafter | None, prompt: ModelPrompt) -> _Run:
    target.passes_s.clear()
    decoded = Decoder(target, drafter, WIDTH).decode(prompt)
    stats = decoded.speculation
    return _Run(
        decoded.token_ids,
        decoded.stage_ms["reasoning"] * 1e-3,
        # The last pass may be the one that reads the end mark: it belongs to whoever goes on from there.
        tuple(target.passes_s[: stats.rounds]),
        stats.rounds,
        stats.accepted,
        stats.proposed,
        stats.committed,
    )


def _generate(model: Qwen3VLForConditionalGeneration, prompt: ModelPrompt, tokens: int, stop: int | None) -> list[int]:
    ids = torch.tensor([prompt.token_ids])
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == IMAGE_TOKEN).int(),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=stop,
        pad_token_id=0,
        **prompt.inputs,
    )
    written: list[int] = out[0, ids.shape[1] :].tolist()
    return written


def _timed_generate(model: Qwen3VLForConditionalGeneration, prompt: ModelPrompt, stop: int) -> _Run:
    """The time behind the first token: that of the whole text less that of one token."""
    began_s = time.perf_counter()
    _generate(model, prompt, 1, stop)
    first_s = time.perf_counter()
    tokens = _generate(model, prompt, MOST_TOKENS, stop)
    ended_s = time.perf_counter()
    return _Run(tuple(tokens), (ended_s - first_s) - (first_s - began_s))


def _stop_token(text: Sequence[int]) -> int:
    """A token that ends the text at a rationale's length: the first new one from there on, else one not written."""
    for place in range(LEAST_TOKENS - 1, len(text)):
        if text[place] not in text[:place]:
            return text[place]
    return max(text) + 1


def _summary(runs: Sequence[_Run], plain: Sequence[_Run], baseline: Sequence[_Run]) -> dict[str, Any]:
    reasoning_s = sum(run.reasoning_s for run in runs)
    passes_s = [pass_s for run in runs for pass_s in run.passes_s]
    proposed = sum(run.proposed for run in runs)
    return {
        "tau": round(sum(run.committed for run in runs) / sum(run.rounds for run in runs), 3),
        "rounds": _mean([run.rounds for run in runs]),
        "acceptance_rate": round(sum(run.accepted for run in runs) / proposed, 4) if proposed else 0.0,
        "pass_ms": round(float(np.median(passes_s)) * 1e3, 2),
        # Time that is not the model's, of all time behind the first token.
        "host_share": round(1.0 - sum(passes_s) / reasoning_s, 4),
        "reasoning_ms": round(reasoning_s / len(runs) * 1e3, 1),
        "speedup": round(sum(run.reasoning_s for run in baseline) / reasoning_s, 3),
        "identical": _mean([run.tokens == other.tokens for run, other in zip(runs, plain, strict=True)]),
        "identical_generate": _mean([run.tokens == other.tokens for run, other in zip(runs, baseline, strict=True)]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
