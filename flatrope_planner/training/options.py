"""What a user may choose about training the target."""

from dataclasses import dataclass
from pathlib import Path

from flatrope_planner.training.stream import PRACTISED, SHOWN


@dataclass(frozen=True)
class TargetTrainingOptions:
    """Options of `flatrope train target`."""

    # Where samples, tokenizer and checkpoints are kept between runs.
    work: Path
    # Where the finished weights go.
    out: Path
    steps: int = 3600
    # The first of these, in which only the vision tower learns.
    seeing_steps: int = 800
    # Samples are taken as clips of up to four consecutive moments.
    clips_per_batch: int = 8
    # Draws of noise and flow time for each sample; they share the target's pass.
    flow_draws: int = 3
    peak_rate: float = 2e-3
    seed: int = 0
    # Episodes of each trained family.
    episodes: int = 300
    held_out_episodes: int = 3
    # Episodes of each trained family that nano drives itself when it has trained for `practice_step` steps.
    practice_episodes: int = 30
    practice_step: int = 2000
    # Step after which to stop for now.
    stop_at: int | None = None
    # Processes that make samples, threads that train.
    jobs: int = 2
    checkpoint_every_s: float = 240.0
    score_every: int = 250

    @property
    def samples(self) -> Path:
        """Folder of training shards."""
        return self.work / SHOWN

    @property
    def practice(self) -> Path:
        """Folder of shards in which nano drove."""
        return self.work / PRACTISED

    @property
    def held_out(self) -> Path:
        """Folder of shards for scoring."""
        return self.work / "held_out"
