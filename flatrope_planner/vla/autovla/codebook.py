"""AutoVLA's codebook: each action token stands for half a second of motion, as the outline of a car that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from flatrope_planner.domain import Floats
from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.speculation.checkpoints.header import StoredTensor, read_header

CODEBOOK_FILE = "codebook.safetensors"
# The one tensor in it, by the name of the published codebook's kind of road user.
TENSOR = "veh"
# Corners of an outline: front left, front right, back right, back left.
CORNERS = 4
FRONT_LEFT, BACK_LEFT = 0, 3
# No driving model has more.
MOST_ACTIONS = 65_536

STEP_PERIOD_S = 0.5


@dataclass(frozen=True)
class Codebook:
    """What each action does."""

    # float32 (actions, 4, 2), m: the outline at the end of an action, in the frame of the ego at its beginning.
    outline_m: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.outline_m)

    def roll_out(self, actions: Sequence[int]) -> Floats:
        """float64 (actions, 3): x, y (m) and heading (rad) in the ego frame after each action.

        In single precision and in PyTorch's steps, so that it rounds as AutoVLA's own code does.
        """
        poses = np.zeros((len(actions), 3))
        position, heading = torch.zeros(1, 2), torch.zeros(1)
        for place, action in enumerate(actions):
            cos, sin = heading.cos(), heading.sin()
            turn = torch.stack([cos, sin, -sin, cos], dim=-1).view(1, 2, 2)
            outline = torch.bmm(torch.from_numpy(self.outline_m[action])[None], turn) + position[:, None]
            position = outline.mean(dim=1)
            along = outline[:, FRONT_LEFT] - outline[:, BACK_LEFT]
            heading = torch.arctan2(along[:, 1], along[:, 0])
            poses[place] = *position[0].tolist(), heading.item()
        return poses

    @classmethod
    def load(cls, checkpoint: Path) -> "Codebook":
        """Read `codebook.safetensors`.

        Raises:
            SetupError: when it is missing, damaged or no codebook.
        """
        path = file_in(checkpoint, CODEBOOK_FILE)
        if not path.exists():
            msg = (
                f"{path}: missing; expected the codebook of AutoVLA's actions, "
                "which `flatrope checkpoint codebook` makes of the published agent_vocab.pkl"
            )
            raise SetupError(msg)
        held = read_header(path, "a codebook")
        check_shape(path, held.get(TENSOR))
        try:
            outlines = load_file(path)[TENSOR]
        except (OSError, SafetensorError) as err:
            msg = f"{path}: damaged ({reason(err)}); expected a codebook"
            raise SetupError(msg) from err
        return codebook_of(path, outlines)


def check_shape(path: Path, stored: StoredTensor | None) -> None:
    """Refuse what cannot be a codebook, before it is read.

    Raises:
        SetupError: naming the file.
    """
    shape = () if stored is None else stored.shape
    fits = len(shape) == 4 and shape[2:] == (CORNERS, 2) and shape[1] and 0 < shape[0] <= MOST_ACTIONS
    if stored is None or not fits or stored.kind != "F32":
        found = "nothing" if stored is None else f"{stored.kind} {list(shape)}"
        msg = f"{path}: {TENSOR} is {found}, expected F32 [actions, steps, 4, 2], the outlines of a codebook"
        raise SetupError(msg)


def codebook_of(path: Path, outlines: NDArray[np.float32]) -> Codebook:
    """The codebook of outlines (actions, steps, 4, 2), of which only those at the end of each action are needed.

    Raises:
        SetupError: when they are not finite.
    """
    last = np.ascontiguousarray(outlines[:, -1])
    if not np.isfinite(last).all():
        msg = f"{path}: {TENSOR} holds a number that is not finite, expected outlines in metres"
        raise SetupError(msg)
    return Codebook(last)
