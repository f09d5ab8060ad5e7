"""`flatrope train draft`: from traces of a target to a draft that can ship."""

import argparse
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from flatrope_planner.arguments import (
    COUNT,
    JOBS,
    SEED,
    add_device_argument,
    add_target_argument,
    output_folder,
    real_number,
    whole_number,
)
from flatrope_planner.errors import InputError
from flatrope_planner.folder_lock import locked
from flatrope_planner.speculation.checkpoints.block import BLOCKS, LAYERS
from flatrope_planner.speculation.checkpoints.medusa import HEADS
from flatrope_planner.speculation.checkpoints.stored import read_stored
from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.crew import own_gpu
from flatrope_planner.training.draft import DraftTrainer, DraftTrainingOptions
from flatrope_planner.training.draft_kinds import SIZES_OF_KIND, Basis, DraftKind, DraftSizes, new_learner
from flatrope_planner.training.draft_scoring import DraftLoss
from flatrope_planner.training.replacing import check_replaceable
from flatrope_planner.training.target import StopRequest
from flatrope_planner.training.traces import TraceHeader, read_header
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import find_target, load_target


@dataclass(frozen=True)
class DraftCommand:
    """What the command line asks for."""

    training: DraftTrainingOptions
    out: Path
    weights: Path | None
    sizes: DraftSizes
    jobs: int
    # As PyTorch calls it, or "auto".
    device: str


def add_draft_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flatrope train draft`."""
    plain, sizes = DraftTrainingOptions(Path("out/traces/nano"), Path("out/train/draft")), DraftSizes()
    kinds = [kind.value for kind in DraftKind]
    parser.add_argument("--kind", choices=kinds, default=sizes.kind.value, help="default: %(default)s")
    parser.add_argument(
        "--traces", type=Path, default=plain.traces, help="of `flatrope capture` (default: %(default)s)"
    )
    parser.add_argument("--work", type=output_folder, default=plain.work, help="checkpoint (default: %(default)s)")
    parser.add_argument("--out", type=output_folder, default=Path("out/train/flatrope"), help="default: %(default)s")
    add_target_argument(parser)
    schemes = [scheme.value for scheme in RotaryScheme]
    parser.add_argument(
        "--scheme", choices=schemes, help=f"positions of block and eagle3 (default: {sizes.scheme.value})"
    )
    parser.add_argument(
        "--block-size", type=_range_of(BLOCKS), help=f"tokens of block and medusa (default: {sizes.block_size})"
    )
    parser.add_argument("--layers", type=_range_of(LAYERS), help=f"of a block draft (default: {sizes.layers})")
    parser.add_argument("--loss", choices=[loss.value for loss in DraftLoss], default=plain.loss.value)
    parser.add_argument("--steps", type=COUNT, default=plain.steps, help="default: %(default)s")
    parser.add_argument("--batch", type=COUNT, default=plain.batch, help="texts of a step (default: %(default)s)")
    parser.add_argument(
        "--rate",
        type=real_number(1e-6, 1.0),
        default=plain.peak_rate,
        help="of learning, at most (default: %(default)s)",
    )
    parser.add_argument("--seed", type=SEED, default=plain.seed, help="default: %(default)s")
    parser.add_argument(
        "--context-tokens",
        type=COUNT,
        metavar="N",
        help="a block draft sees the last N tokens and the ego history; default: all",
    )
    parser.add_argument(
        "--portable",
        action="store_true",
        default=None,
        help="a block draft that `checkpoint convert` can write in the layouts of z-lab and speculators",
    )
    parser.add_argument("--jobs", type=JOBS, default=2, help="processor cores to use (default: %(default)s)")
    add_device_argument(parser)


def _range_of(allowed: range) -> Callable[[str], int]:
    """A type for what can be read again when the draft is stored."""
    return whole_number(allowed.start, allowed.stop - 1)


def command_of(arguments: argparse.Namespace) -> DraftCommand:
    """The parsed command line."""
    training = DraftTrainingOptions(
        traces=arguments.traces,
        work=arguments.work,
        steps=arguments.steps,
        batch=arguments.batch,
        peak_rate=arguments.rate,
        loss=DraftLoss(arguments.loss),
        seed=arguments.seed,
    )
    return DraftCommand(
        training,
        arguments.out,
        find_target(arguments.target),
        _sizes_of(arguments),
        arguments.jobs,
        arguments.device,
    )


def _sizes_of(arguments: argparse.Namespace) -> DraftSizes:
    """The sizes asked for.

    Raises:
        InputError: naming one that a draft of this kind does not have.
    """
    kind = DraftKind(arguments.kind)
    asked = {name: getattr(arguments, name) for name in SIZES_OF_KIND[DraftKind.BLOCK]}
    given = {name: value for name, value in asked.items() if value is not None}
    for name in given:
        if name not in SIZES_OF_KIND[kind]:
            msg = f"--{name.replace('_', '-')} does not apply to --kind {kind.value}"
            raise InputError(msg)
    foreign = [name for name in ("context_tokens", "scheme") if given.get(name) not in (None, RotaryScheme.FLAT.value)]
    if given.get("portable") and foreign:
        msg = (
            f"--{foreign[0].replace('_', '-')} does not go with --portable: the layouts of others have no place for it"
        )
        raise InputError(msg)
    if "scheme" in given:
        given["scheme"] = RotaryScheme(given["scheme"])
    return DraftSizes(kind, **given)


def train_draft(command: DraftCommand) -> Mapping[str, object]:
    """Train, and write the draft when all steps are done.

    Raises:
        InputError: when there are no traces, they are another target's, the draft could not be read again, something
            else is where it is to be written, or another training is or was at work in the folder.
    """
    if command.sizes.kind is DraftKind.MEDUSA and command.sizes.block_size - 1 not in HEADS:
        msg = (
            f"--block-size is {command.sizes.block_size}, expected 2 to {HEADS.stop} for Medusa, a head for each place"
        )
        raise InputError(msg)
    check_replaceable(command.out, read_stored, "a draft")
    torch.set_num_threads(command.jobs)
    header = read_header(command.training.traces)
    device = own_gpu(Running(device=command.device).place())
    basis = _basis(command, header, device)
    torch.manual_seed(command.training.seed)
    learner = new_learner(command.sizes, header, basis)
    trainer = DraftTrainer(command.training, learner, header.fingerprint)
    with StopRequest() as wants_stop, locked(command.training.work) if trainer.crew.leads else nullcontext():
        trainer.run(wants_stop)
    result = {"steps": trainer.optimiser.step_count, "finished": trainer.finished, "expected_length": trainer.score()}
    if not trainer.crew.leads:
        return result
    if not trainer.finished:
        print(f"stopped at step {trainer.optimiser.step_count}; run the same command again to go on")
        return result
    trainer.draft.load_state_dict(trainer.optimiser.average, strict=False)
    save_draft(command.out, trainer.draft, header.fingerprint)
    print(f"{command.out}: a draft that is expected to write {result['expected_length']:.2f} tokens a pass")
    return {**result, "out": str(command.out)}


def _basis(command: DraftCommand, header: TraceHeader, device: torch.device) -> Basis:
    """What a draft takes from its target, on its device; the rest of a large one would fill a GPU for nothing.

    Raises:
        InputError: when the traces are another target's.
    """
    target = load_target(command.weights, running=Running(device="cpu"))
    if target.fingerprint != header.fingerprint:
        msg = (
            f"{command.training.traces}: traces of target {header.fingerprint}, but the target is {target.fingerprint}"
        )
        raise InputError(msg)
    # What a draft borrows does not learn.
    target.vlm.requires_grad_(requires_grad=False)
    return Basis.of(target, device)
