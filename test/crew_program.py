"""One process of a training, alone or in a crew: `python crew_program.py TRACES WORK`. Run by test_crew.

Medusa heads draw nothing at random, and all texts are of one length, so that the mean of the processes' gradients is
the gradient of the whole batch.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from test_token_drafts import PARTS, medusa

from flatrope_planner.training.crew import Crew
from flatrope_planner.training.draft import DraftTrainer, DraftTrainingOptions
from flatrope_planner.training.medusa_learner import MedusaLearner

BATCH, STEPS = 4, 3


def train(traces: Path, work: Path) -> None:
    """Each process has a folder of its own, so that it shows who writes."""
    torch.set_num_threads(1)
    crew = Crew()
    for part in (PARTS.embeddings, PARTS.norm, PARTS.head):
        part.requires_grad_(requires_grad=False)
    options = DraftTrainingOptions(traces, work / str(crew.rank), steps=100, batch=BATCH, peak_rate=1e-2)
    trainer = DraftTrainer(options, MedusaLearner(medusa(), PARTS))
    # The last process alone wishes to stop, and all do.
    last = crew.rank == crew.size - 1
    trainer.run(lambda: last and trainer.optimiser.step_count >= STEPS)
    steps = torch.tensor(trainer.optimiser.step_count)
    save_file({**trainer.draft.state_dict(), "steps": steps}, work / f"{crew.rank}.safetensors")


if __name__ == "__main__":
    train(Path(sys.argv[1]), Path(sys.argv[2]))
