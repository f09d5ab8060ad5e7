"""`python -m flatrope_planner.doctor.model_probe`: device, weights, drafts, a plan; what it saw as lines of JSON.

Runs in a process of its own: PyTorch may be absent, too large for the memory, or built for another processor.
"""

import json
import time
from typing import Any

from flatrope_planner.errors import FlatropeError, reason


def main() -> None:
    """Try everything, from what needs least to what needs most; each line is printed before the next is tried."""
    _tell("device", _device)
    _tell("drafts", _drafts)
    _tell("plan", _plan)


def _tell(name: str, look: Any) -> None:
    try:
        answer = look()
    except (FlatropeError, ImportError, OSError, RuntimeError, MemoryError, ValueError) as err:
        answer = {"problem": reason(err)}
    print(json.dumps({name: answer}), flush=True)


def _device() -> dict[str, Any]:
    import torch

    cuda = torch.cuda.is_available()
    facts: dict[str, Any] = {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cuda": cuda,
        "cuda_built": torch.version.cuda,
    }
    if cuda:
        free, total = torch.cuda.mem_get_info()
        facts |= {
            "gpu": torch.cuda.get_device_name(),
            "gpu_free_bytes": free,
            "gpu_total_bytes": total,
            "bfloat16": torch.cuda.is_bf16_supported(),
        }
    return facts


def _drafts() -> dict[str, Any]:
    from flatrope_planner.vla.drafting import draft_of, drafts_beside
    from flatrope_planner.vla.nano import NanoTarget

    target = NanoTarget.load()
    problems = {}
    for name, folder in drafts_beside(None).items():
        try:
            draft_of(folder, target)
        except FlatropeError as err:
            problems[name] = str(err)
    return {"fingerprint": target.fingerprint, "names": list(drafts_beside(None)), "problems": problems}


def _plan() -> dict[str, Any]:
    from flatrope_planner.planning.core import warm_up
    from flatrope_planner.vla.loading import NANO, load_planner

    started_s = time.monotonic()
    planner = load_planner(NANO)
    loaded_s = time.monotonic()
    warm_up(planner)
    done_s = time.monotonic()
    return {"load_s": loaded_s - started_s, "plan_s": done_s - loaded_s, "health": planner.health.problem}


if __name__ == "__main__":
    main()
