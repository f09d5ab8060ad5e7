"""`flatrope train corpus`: the texts of traces, for retrieval to draft from."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from flatrope_planner.errors import InputError
from flatrope_planner.progress import with_progress
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.training.trace_store import TraceStore
from flatrope_planner.training.traces import list_drives


def add_corpus_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flatrope train corpus`."""
    parser.add_argument(
        "--traces", type=Path, default=Path("out/traces/nano"), help="of `flatrope capture` (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=Path("out/train/rationales.json"), help="default: %(default)s")


def write_corpus(traces: Path, out: Path) -> Mapping[str, object]:
    """Gather every text, end marks included, and how often it was written.

    Raises:
        InputError: when there are no traces, or nothing can be written there.
    """
    if out.is_dir():
        msg = f"{out} is a folder, expected a file to write into"
        raise InputError(msg)
    drives = list_drives(traces)
    if not drives:
        msg = f"{traces}: no traces; make some with `flatrope capture`"
        raise InputError(msg)
    shown = with_progress(drives, len(drives), "drives")
    out.parent.mkdir(parents=True, exist_ok=True)
    texts = [trace.tokens[trace.prompt :].tolist() for path in shown for trace in TraceStore([path], 0)]
    corpus = RationaleCorpus.of(texts)
    corpus.save(out)
    return {"texts": len(texts), "different": len(corpus.counts), "out": str(out)}
