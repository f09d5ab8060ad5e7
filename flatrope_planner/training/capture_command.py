"""`flatrope capture`: traces of a target while it drives scenes of the training split, drive by drive."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flatrope_planner.arguments import COUNT, JOBS, add_device_argument, add_target_argument, output_folder
from flatrope_planner.dimensions import SIMULATED_CAMERAS
from flatrope_planner.domain import Observation, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.folder_lock import locked
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Family, Split
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.training.capture import own_tokens, trace_of
from flatrope_planner.training.collection import collect
from flatrope_planner.training.traces import Trace, TraceHeader, write_drive, write_header
from flatrope_planner.vla.target import Running, VlaTarget
from flatrope_planner.vla.targets import NANO, find_target, load_target
from flatrope_planner.workers import run_in_workers

# Seeds that nano was neither shown nor has practised on.
FIRST_SEED = 10_000
JOBS_ON_CPU = 2


@dataclass(frozen=True)
class CaptureOptions:
    """Options of `flatrope capture`."""

    out: Path
    # As in `vla.targets.find_target`.
    target: str = NANO
    # Drives of each trained family.
    episodes: int = 40
    # Processes, each with a target of its own; None: two, or one on a GPU.
    jobs: int | None = None
    # As PyTorch calls it, or "auto".
    device: str = "auto"


@dataclass(frozen=True)
class _Drive:
    family: Family
    seed: int
    options: CaptureOptions

    @property
    def path(self) -> Path:
        return self.options.out / f"{self.family.value}-{self.seed:08d}.safetensors"


def add_capture_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flatrope capture`."""
    plain = CaptureOptions(Path("out/traces/nano"))
    parser.add_argument(
        "--out", type=output_folder, default=plain.out, help="folder of the traces (default: %(default)s)"
    )
    add_target_argument(parser)
    parser.add_argument(
        "--episodes", type=COUNT, default=plain.episodes, help="drives of each family (default: %(default)s)"
    )
    parser.add_argument(
        "--jobs", type=JOBS, help=f"processes, each with a target of its own (default: {JOBS_ON_CPU}, or 1 on a GPU)"
    )
    add_device_argument(parser)


def capture(options: CaptureOptions) -> Mapping[str, object]:
    """Drive what is not there yet; an interrupted run goes on where it stopped.

    Raises:
        InputError: when the folder holds traces of another target, another capture writes into it, or the target looks
            at what the simulator does not show.
        SetupError: when the weights are missing or do not fit.
    """
    jobs = options.jobs or (JOBS_ON_CPU if Running(device=options.device).place().type == "cpu" else 1)
    seeds = range(FIRST_SEED, FIRST_SEED + options.episodes)
    drives = [_Drive(family, seed, options) for seed in seeds for family in TRAINED_FAMILIES]
    with locked(options.out):
        missing = [drive for drive in drives if not drive.path.exists()]
        # The target is looked at there even if nothing is missing: here it would take memory beside those that drive.
        work = run_in_workers(_capture, missing, jobs) if missing else run_in_workers(_check, [options], 1)
        for _ in with_progress(work, len(missing), "drives"):
            pass
    print(f"{options.out}: {len(drives)} drives, {len(missing)} of them new; `flatrope train draft` learns from them")
    return {"drives": len(drives), "captured": len(missing), "out": str(options.out)}


def header_of(target: VlaTarget) -> TraceHeader:
    """Whose traces they are."""
    return TraceHeader(
        target.fingerprint,
        target.sizes.hidden,
        target.sizes.vocab_size,
        target.draft_layers,
        target.mrope_section,
        target.rope_theta,
    )


def _check(options: CaptureOptions) -> None:
    _target(options)


def _capture(drive: _Drive) -> None:
    target = _target(drive.options)
    decoder = Decoder(target)
    traces: list[Trace] = []

    def plan(observation: Observation) -> Trajectory:
        prompt = target.prepare(observation)
        decoded = decoder.decode(prompt)
        traces.append(trace_of(target, prompt, own_tokens(decoded, target.token_budget)))
        (trajectory,) = target.act(decoded.state, None, 1)
        return trajectory

    for _ in collect(drive.family, drive.seed, target.observation_spec, Split.TRAIN, plan):
        pass
    if traces:
        write_drive(drive.path, traces)


@cache
def _target(options: CaptureOptions) -> VlaTarget:
    """The target, loaded once in each process; it sees those of the simulator's cameras that it knows.

    Raises:
        InputError: when the folder holds traces of another one.
    """
    import torch

    torch.set_num_threads(1)
    running = Running(SIMULATED_CAMERAS, device=options.device, refuses_unknown=False)
    target = load_target(find_target(options.target), running=running)
    cameras = target.observation_spec.cameras
    if not set(cameras) <= set(SIMULATED_CAMERAS):
        shown = ", ".join(SIMULATED_CAMERAS)
        msg = f"{options.target}: looks at {', '.join(cameras)}; the simulator shows {shown} and no others"
        raise InputError(msg)
    write_header(options.out, header_of(target))
    return target.tapping(target.draft_layers)
