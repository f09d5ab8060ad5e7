"""The tiny nano on disk, and what lies beside its weights: drafts, a corpus, traces."""

from pathlib import Path

import torch
from test_block_draft import new_draft
from tiny_nano import noise_observation, tiny_model, tiny_tokenizer

from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.training.capture import capture
from flatrope_planner.training.export import export
from flatrope_planner.training.traces import Trace, TraceHeader, write_drive, write_header
from flatrope_planner.vla.drafting import CORPUS_FILE, DRAFTS_FOLDER, FLATROPE
from flatrope_planner.vla.nano import NanoTarget

TAPS = (0, 2)


def write_weights(folder: Path) -> NanoTarget:
    """The target as it comes back from disk, tapped."""
    model = tiny_model()
    parts = {name: value.detach() for name, value in model.named_parameters()}
    export(folder, parts, model.config, tiny_tokenizer(), {})
    return NanoTarget.load(folder, TAPS)


def write_companions(folder: Path, target: NanoTarget, observations: int = 1) -> list[Trace]:
    """A draft that has learnt nothing, and the texts of the first observations; returns their traces."""
    save_draft(folder / DRAFTS_FOLDER / FLATROPE, new_draft(), target.fingerprint)
    with torch.no_grad():
        traces = list(capture(target, (target.prepare(noise_observation(seed)) for seed in range(observations))))
    RationaleCorpus.of([trace.tokens[trace.prompt :].tolist() for trace in traces]).save(folder / CORPUS_FILE)
    return traces


def write_traces(folder: Path, target: NanoTarget, drives: int = 3) -> tuple[TraceHeader, list[list[Trace]]]:
    """Two texts a drive, some of them alike."""
    config = target.config
    header = TraceHeader(
        target.fingerprint, config.text_hidden, config.vocab_size, TAPS, config.mrope_section, config.rope_theta
    )
    write_header(folder, header)
    with torch.no_grad():
        prompts = (target.prepare(noise_observation(seed)) for seed in range(drives))
        traces = list(capture(target, prompts))
    written = [[traces[i], traces[(i + 1) % drives]] for i in range(drives)]
    for number, drive in enumerate(written):
        write_drive(folder / f"{number:03d}.safetensors", drive)
    return header, written
