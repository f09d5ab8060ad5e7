"""The device, a target, its drafts, and a plan on a dark picture."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.probe import Probe
from flatrope_planner.doctor.target_weights import folder_of, size_bytes
from flatrope_planner.errors import SetupError

MODULE = "flatrope_planner.doctor.model_probe"
NANO = "nano"
TIMEOUT_S = 120.0
# No disk worth a large target reads more slowly.
SLOWEST_BYTES_PER_S = 50e6
# PyTorch and transformers with nano loaded; the planner, the demo's simulator and its recorder.
NEEDED_BYTES, COMFORTABLE_BYTES = 1_000_000_000, 3_000_000_000
PACKAGES = "see the line on packages above"
MEMORY_FILE = Path("/proc/meminfo")
OF_NANO = "`git checkout flatrope_planner/weights`, or install again"
OF_ANOTHER = "mend what is named, or fetch the checkpoint again; nano plans without it"


def start_model(target: str = NANO) -> Probe:
    """A process that loads the target and plans."""
    return Probe(MODULE, target)


def check_memory(file: Path = MEMORY_FILE) -> Iterator[Finding]:
    """Whether the model and what runs beside it fit into main memory."""
    free = _free_bytes(file)
    found, facts = f"{free / 1e9:.1f} GB of main memory free", {"free_bytes": free, "needed_bytes": NEEDED_BYTES}
    if free < NEEDED_BYTES:
        yield Finding("memory", Mark.FAIL, found, f"end other programs: nano needs {NEEDED_BYTES / 1e9:.0f} GB", facts)
    elif free < COMFORTABLE_BYTES:
        remedy = f"end other programs before a demo, which takes {COMFORTABLE_BYTES / 1e9:.0f} GB"
        yield Finding("memory", Mark.WARN, found, remedy, facts)
    else:
        yield Finding("memory", Mark.OK, found, facts=facts)


def _free_bytes(file: Path) -> int:
    figures = dict(line.split(":") for line in file.read_text().splitlines() if ":" in line)
    return int(figures["MemAvailable"].split()[0]) * 1024


def check_model(probe: Probe, target: str = NANO) -> Iterator[Finding]:
    """What the process saw."""
    folder = None if target == NANO else folder_of(target)
    size = size_bytes(folder) if folder is not None else 0
    try:
        facts = probe.facts(TIMEOUT_S + size / SLOWEST_BYTES_PER_S)
    except SetupError as err:
        yield Finding("model", Mark.FAIL, f"could not be tried: {err}", PACKAGES)
        return
    if size and "problem" not in facts.get("device", {"problem": ""}):
        yield memory_for(size, facts["device"])
    yield from findings(facts, target)


def memory_for(size: int, device: Mapping[str, Any], file: Path = MEMORY_FILE) -> Finding:
    """Whether weights of so many bytes fit where they are to be, if they are computed with as they are stored."""
    place, free = (device["gpu"], device["gpu_free_bytes"]) if device["cuda"] else ("main memory", _free_bytes(file))
    found = f"{free / 1e9:.1f} GB free in {place}, weights of {size / 1e9:.3g} GB"
    facts = {"free_bytes": free, "needed_bytes": size}
    if free >= size:
        return Finding("memory", Mark.OK, found, facts=facts)
    remedy = "end other programs, take a machine with more, or a smaller precision (parameter precision)"
    return Finding("memory", Mark.WARN, found, remedy, facts)


def findings(facts: Mapping[str, Any], target: str = NANO) -> Iterator[Finding]:
    """The findings that the probe's facts make."""
    told = ""
    for name, judge in (("device", _device), ("drafts", _drafts), ("plan", _plan)):
        answer = facts.get(name)
        if answer is None:
            yield Finding(name, Mark.FAIL, f"not tried: {facts.get('trouble', 'the process ended')}", PACKAGES)
        elif "problem" in answer:
            remedy = PACKAGES if name == "device" else OF_NANO if target == NANO else OF_ANOTHER
            found = str(answer["problem"])
            # Who cannot be loaded cannot plan either.
            yield Finding(name, Mark.FAIL, "not tried: see above" if found == told else found, remedy, answer)
            told = found
        else:
            yield judge(answer, target)


def _device(facts: Mapping[str, Any], target: str) -> Finding:
    torch = f"PyTorch {facts['torch']}, {facts['threads']} threads"
    if facts["cuda"]:
        precision = "bfloat16" if facts["bfloat16"] else "no bfloat16"
        free_gb, total_gb = facts["gpu_free_bytes"] / 1e9, facts["gpu_total_bytes"] / 1e9
        gpu = f"{facts['gpu']} with {free_gb:.0f} of {total_gb:.0f} GB free, {precision}"
        return Finding("device", Mark.OK, f"{torch}; {gpu}", facts=facts)
    if facts["cuda_built"]:
        words = f"{torch}; built for CUDA {facts['cuda_built']}, but it finds no GPU"
        return Finding("device", Mark.OK, words, "where there is one: check its driver with nvidia-smi", facts)
    needed = ": nano needs none" if target == NANO else ""
    return Finding("device", Mark.OK, f"{torch}; no GPU, and built without CUDA{needed}", facts=facts)


def _drafts(facts: Mapping[str, Any], _target: str) -> Finding:
    problems: Mapping[str, str] = facts["problems"]
    if problems:
        words = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        remedy = "train it for this target (`flatrope train draft`), or take the one that ships with the weights"
        return Finding("drafts", Mark.WARN, words, remedy, facts)
    names = ", ".join(facts["names"])
    whose = f"the target {facts['fingerprint']}"
    words = f"{names}: all for {whose}" if names else f"none beside the weights of {whose}"
    return Finding("drafts", Mark.OK, words, facts=facts)


def _plan(facts: Mapping[str, Any], target: str) -> Finding:
    loads, plans = f"loads in {facts['load_s']:.1f} s", f"the first time in {facts['plan_s']:.1f} s"
    words = f"{target} {loads} and plans on a dark picture, {plans}"
    if facts["health"]:
        drafts = "see the line on drafts above"
        remedy = (
            drafts if target == NANO else f"{drafts}; `flatrope train draft` makes one, drafter: retrieval needs none"
        )
        return Finding("plan", Mark.WARN, f"{words}; {facts['health']}", remedy, facts)
    if facts["slow"]:
        return Finding("plan", Mark.WARN, f"{words}; {facts['slow']}", "precision: float32, or a GPU", facts)
    return Finding("plan", Mark.OK, words, facts=facts)
