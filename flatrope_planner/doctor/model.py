"""The device, the weights that ship with the package, their drafts, and a plan on a dark picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.probe import Probe
from flatrope_planner.errors import SetupError

MODULE = "flatrope_planner.doctor.model_probe"
TIMEOUT_S = 120.0
# PyTorch and transformers with nano loaded; the planner, the demo's simulator and its recorder.
NEEDED_BYTES, COMFORTABLE_BYTES = 1_000_000_000, 3_000_000_000
PACKAGES = "see the line on packages above"
MEMORY_FILE = Path("/proc/meminfo")


def start_model() -> Probe:
    """A process that loads the model and plans."""
    return Probe(MODULE)


def check_memory(file: Path = MEMORY_FILE) -> Iterator[Finding]:
    """Whether the model and what runs beside it fit into main memory."""
    figures = dict(line.split(":") for line in file.read_text().splitlines() if ":" in line)
    free = int(figures["MemAvailable"].split()[0]) * 1024
    found, facts = f"{free / 1e9:.1f} GB of main memory free", {"free_bytes": free, "needed_bytes": NEEDED_BYTES}
    if free < NEEDED_BYTES:
        yield Finding("memory", Mark.FAIL, found, f"end other programs: nano needs {NEEDED_BYTES / 1e9:.0f} GB", facts)
    elif free < COMFORTABLE_BYTES:
        remedy = f"end other programs before a demo, which takes {COMFORTABLE_BYTES / 1e9:.0f} GB"
        yield Finding("memory", Mark.WARN, found, remedy, facts)
    else:
        yield Finding("memory", Mark.OK, found, facts=facts)


def check_model(probe: Probe) -> Iterator[Finding]:
    """What the process saw."""
    try:
        facts = probe.facts(TIMEOUT_S)
    except SetupError as err:
        yield Finding("model", Mark.FAIL, f"could not be tried: {err}", PACKAGES)
        return
    yield from findings(facts)


def findings(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings that the probe's facts make."""
    for name, judge in (("device", _device), ("drafts", _drafts), ("plan", _plan)):
        answer = facts.get(name)
        if answer is None:
            yield Finding(name, Mark.FAIL, f"not tried: {facts.get('trouble', 'the process ended')}", PACKAGES)
        elif "problem" in answer:
            remedy = PACKAGES if name == "device" else "`git checkout flatrope_planner/weights`, or install again"
            yield Finding(name, Mark.FAIL, str(answer["problem"]), remedy, answer)
        else:
            yield judge(answer)


def _device(facts: Mapping[str, Any]) -> Finding:
    torch = f"PyTorch {facts['torch']}, {facts['threads']} threads"
    if facts["cuda"]:
        precision = "bfloat16" if facts["bfloat16"] else "no bfloat16"
        free_gb, total_gb = facts["gpu_free_bytes"] / 1e9, facts["gpu_total_bytes"] / 1e9
        gpu = f"{facts['gpu']} with {free_gb:.0f} of {total_gb:.0f} GB free, {precision}"
        return Finding("device", Mark.OK, f"{torch}; {gpu}", facts=facts)
    if facts["cuda_built"]:
        words = f"{torch}; built for CUDA {facts['cuda_built']}, but it finds no GPU"
        return Finding("device", Mark.OK, words, "where there is one: check its driver with nvidia-smi", facts)
    return Finding("device", Mark.OK, f"{torch}; no GPU, and built without CUDA: nano needs none", facts=facts)


def _drafts(facts: Mapping[str, Any]) -> Finding:
    problems: Mapping[str, str] = facts["problems"]
    if problems:
        words = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        remedy = "train it for this target (`flatrope train draft`), or take the one that ships with the weights"
        return Finding("drafts", Mark.WARN, words, remedy, facts)
    words = f"{', '.join(facts['names']) or 'none'}: all for the target {facts['fingerprint']}"
    return Finding("drafts", Mark.OK, words, facts=facts)


def _plan(facts: Mapping[str, Any]) -> Finding:
    words = (
        f"nano loads in {facts['load_s']:.1f} s and plans on a dark picture, the first time in {facts['plan_s']:.1f} s"
    )
    if facts["health"]:
        return Finding("plan", Mark.WARN, f"{words}; {facts['health']}", "see the line on drafts above", facts)
    return Finding("plan", Mark.OK, words, facts=facts)
