"""Every way to write side by side on a text model: plain greedy, `generate`, its prompt lookup, every drafter."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from flatrope_planner.errors import InputError, SetupError, reason
from flatrope_planner.evaluation.decode_contestants import CHAIN_WIDTH, TREE_WIDTH, refuse_taken_names
from flatrope_planner.evaluation.decode_scores import (
    ALONE,
    GENERATE,
    GENERATE_LOOKUP,
    Line,
    Lines,
    headline,
    line_of,
    line_of_generate,
    summaries,
)
from flatrope_planner.evaluation.generate_reference import GenerateReference, WritingRules
from flatrope_planner.progress import with_progress
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.checkpoints.model_folder import check_model_folder
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.draft_checkpoint import TargetSizes, load_draft
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.huggingface import CausalLMTarget, ModelPrompt
from flatrope_planner.speculation.network_drafter import network_drafter
from flatrope_planner.speculation.prompt_lookup import PromptLookupDrafter
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.retrieval_drafter import RetrievalDrafter

ORACLE = "oracle"
# Weights that are missing are named one by one, as long as they do not fill the memory.
MOST_MADE_UP, SMALL = 2, 1_000_000
# How many tokens transformers' own prompt lookup proposes.
_LOOKUPS = {GENERATE: None, GENERATE_LOOKUP: CHAIN_WIDTH - 1}


@dataclass(frozen=True)
class TextDecodeOptions:
    """What to measure."""

    # Folder of a causal language model with its tokenizer; nothing is fetched from anywhere.
    target: Path
    # One prompt a line.
    prompts: Path
    tokens: int = 64
    # Trained drafts by name.
    drafts: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class _Contestant:
    drafter: Drafter
    width: int
    target: CausalLMTarget


def run_text_decode_benchmark(options: TextDecodeOptions) -> dict[str, Any]:
    """Let all write behind every prompt.

    Raises:
        InputError: when there are no prompts, or one is empty.
        SetupError: when the model, its tokenizer or a draft cannot be used.
    """
    model, tokenizer = _load(options.target)
    prompts = _prompts(options.prompts, tokenizer, model.config.get_text_config().vocab_size)
    stop = tokenizer.eos_token_id
    if stop is None:
        msg = f"{options.target}: the tokenizer has no end token, expected one"
        raise SetupError(msg)
    plain_target = CausalLMTarget(model, (stop,), options.tokens)
    contestants = _contestants(model, plain_target, options)
    rules = WritingRules(stop, options.tokens)
    references = {name: GenerateReference(model, rules, count) for name, count in _LOOKUPS.items()}
    lines: Lines = {}
    for prompt in with_progress(prompts, len(prompts), "prompts"):
        for name, line in _write(plain_target, contestants, references, prompt):
            lines.setdefault(name, []).append(line)
    precision = str(model.dtype).removeprefix("torch.")
    exact = lines if precision == "float32" else {}
    figures = headline(summaries([lines]), lines, exact)
    return {**figures, "target": str(options.target), "precision": precision, "prompts": len(prompts)}


def _write(
    target: CausalLMTarget,
    contestants: Mapping[str, _Contestant],
    references: Mapping[str, GenerateReference],
    prompt: ModelPrompt,
) -> Iterator[tuple[str, Line]]:
    plain = Decoder(target, None, CHAIN_WIDTH).decode(prompt)
    written = {name: reference.write(prompt.token_ids, {}) for name, reference in references.items()}
    judge = written[GENERATE]
    for name, text in written.items():
        yield name, line_of_generate(text, judge, plain, reach=1 if name == GENERATE else CHAIN_WIDTH)
    alone = {CHAIN_WIDTH: plain, TREE_WIDTH: Decoder(target, None, TREE_WIDTH).decode(prompt)}
    oracle = RehearsedDrafter(plain.token_ids, len(target.forbidden), Rehearsal(1.0, anticipates=False))
    for name, each in {**contestants, ORACLE: _Contestant(oracle, CHAIN_WIDTH, target)}.items():
        decoded = Decoder(each.target, each.drafter, each.width).decode(prompt)
        yield name, line_of(decoded, alone[each.width], judge, 1 if name == ALONE else each.width)


def _contestants(model: PreTrainedModel, target: CausalLMTarget, options: TextDecodeOptions) -> dict[str, _Contestant]:
    known = {
        ALONE: _Contestant(NoDrafter(), CHAIN_WIDTH, target),
        "prompt-lookup": _Contestant(PromptLookupDrafter(), CHAIN_WIDTH, target),
        "retrieval": _Contestant(RetrievalDrafter(RationaleCorpus().context_counts(), Shape.TREE), TREE_WIDTH, target),
    }
    if not options.drafts:
        return known
    refuse_taken_names(options.drafts, (*known, ORACLE))
    trunk = model.get_decoder()
    parts = BorrowedParts(model.get_input_embeddings(), trunk.norm, model.get_output_embeddings())
    config = trunk.config
    sizes = TargetSizes(config.hidden_size, config.vocab_size, config.num_hidden_layers)
    for name, folder in options.drafts.items():
        draft = load_draft(folder, fingerprint(model), sizes).draft
        tapping = CausalLMTarget(model, target.ending, options.tokens, tapped_layers=draft.config.tapped_layers)
        known[name] = _Contestant(network_drafter(draft, parts, Shape.CHAIN), CHAIN_WIDTH, tapping)
    return known


def _load(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if not (folder / "config.json").exists():
        msg = f"{folder}: no config.json, expected the folder of a causal language model of transformers"
        raise SetupError(msg)
    _check_sizes(folder)
    try:
        # Nothing is fetched, nothing in the folder is run, no pickle is read.
        model, found = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as err:
        msg = f"{folder}: no causal language model that transformers can load ({reason(err)})"
        raise SetupError(msg) from err
    # transformers makes up at random what is not there.
    missing = sorted(found["missing_keys"])
    if missing:
        msg = f"{folder}: no weight {missing[0]!r} ({len(missing)} such), expected all of a causal language model"
        raise SetupError(msg)
    return model, tokenizer


def _check_sizes(folder: Path) -> None:
    """Refuse a configuration that asks for more than the weights hold, before memory is taken for it.

    Raises:
        SetupError: when it does, or is none.
    """
    holds = check_model_folder(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        asks = sum(weight.numel() for weight in model.parameters())
    except Exception as err:  # a wrong value shows anywhere in transformers, as any error
        msg = f"{folder}: no causal language model that transformers can load ({reason(err)})"
        raise SetupError(msg) from err
    if asks > MOST_MADE_UP * holds + SMALL:
        msg = f"{folder / 'config.json'}: asks for {asks} weights, but the files beside it hold {holds}"
        raise SetupError(msg)


def _prompts(file: Path, tokenizer: PreTrainedTokenizerBase, vocab_size: int) -> list[ModelPrompt]:
    try:
        texts = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as err:
        msg = f"{file}: no prompts ({reason(err)}); expected text, one prompt a line"
        raise InputError(msg) from err
    if not texts:
        msg = f"{file}: no prompts, expected one a line"
        raise InputError(msg)
    prompts = [ModelPrompt(tuple(tokenizer(text).input_ids)) for text in texts]
    for text, prompt in zip(texts, prompts, strict=True):
        if not prompt.token_ids:
            msg = f"{file}: the tokenizer makes no tokens of {text[:40]!r}, expected a prompt"
            raise InputError(msg)
        highest = max(prompt.token_ids)
        if highest >= vocab_size:
            msg = f"{file}: {text[:40]!r} has token {highest}, expected the model's, 0 to {vocab_size - 1}"
            raise InputError(msg)
    return prompts
