"""`python -m flatrope_planner.doctor.model_probe TARGET`: device, drafts, a plan; what it saw as lines of JSON.

Runs in a process of its own: PyTorch may be absent, too large for the memory, or built for another processor.
"""

import json
import sys
import time
from functools import cache, partial
from typing import Any

from flatrope_planner.errors import FlatropeError, reason


def main() -> None:
    """Try everything, from what needs least to what needs most; each line is printed before the next is tried."""
    (target,) = sys.argv[1:]
    _tell("device", _device)
    _tell("drafts", partial(_drafts, target))
    _tell("plan", partial(_plan, target))


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


@cache
def _loaded(name: str) -> Any:
    """The target, its folder, and how long it took to load (s); once, as there may be no room for two."""
    from flatrope_planner.vla.targets import find_target, load_target

    started_s = time.monotonic()
    folder = find_target(name)
    return load_target(folder), folder, time.monotonic() - started_s


def _drafts(name: str) -> dict[str, Any]:
    from flatrope_planner.vla.drafting import draft_of, drafts_beside

    target, folder, _ = _loaded(name)
    problems = {}
    for draft, place in drafts_beside(folder).items():
        try:
            draft_of(place, target)
        except FlatropeError as err:
            problems[draft] = str(err)
    return {"fingerprint": target.fingerprint, "names": list(drafts_beside(folder)), "problems": problems}


def _plan(name: str) -> dict[str, Any]:
    from flatrope_planner.planning.core import warm_up
    from flatrope_planner.vla.arithmetic import slow_arithmetic
    from flatrope_planner.vla.loading import planner_with

    target, folder, load_s = _loaded(name)
    planner = planner_with(target, folder)
    plan_s = warm_up(planner)
    slow = slow_arithmetic(target.device, target.precision)
    return {"load_s": load_s, "plan_s": plan_s, "health": planner.health.problem, "slow": slow}


if __name__ == "__main__":
    main()
