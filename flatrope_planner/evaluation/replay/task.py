"""One bag as a piece of work: what is to be done, who does it, and how its result is known again later."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flatrope_planner._version import __version__
from flatrope_planner.arguments import user_path
from flatrope_planner.evaluation.replay.bag_metadata import METADATA
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.settings import PlannerSettings
from flatrope_planner.evaluation.replay.sqlite_file import has_log, log_of
from flatrope_planner.evaluation.replay.storage_files import files_of
from flatrope_planner.planning.chance import Chance

# Raised when files of a result change their meaning.
SCHEMA_VERSION = 3


@dataclass(frozen=True)
class Lineup:
    """Who plans."""

    settings: PlannerSettings
    # Trajectories drawn besides the plan.
    samples: int = 0
    # Whether everything is planned a second time without speculation.
    compare: bool = False


@dataclass(frozen=True)
class ReplayTask:
    """A bag, how to replay it, and where its result goes."""

    bag: Path
    # Names it in the summary; unique in a replay.
    name: str
    folder: Path
    lineup: Lineup
    options: ReplayOptions

    @property
    def files(self) -> list[Path]:
        """The files that the bag is made of, and logs of SQLite that were not moved into them."""
        try:
            files = files_of(self.bag)
        except OSError:
            # A folder that nobody may look into.
            return [self.bag]
        metadata = self.bag / METADATA
        files += [metadata] if metadata.exists() else []
        return files + [log_of(file) for file in files if has_log(file)]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(path.stat().st_size for path in self.files if path.exists())

    @property
    def fingerprint(self) -> str:
        """Two tasks of the same fingerprint have the same result."""
        settings = self.lineup.settings
        models = [user_path(name) for name in (settings.target, settings.draft) if name]
        contents = [path for folder in models for path in sorted(folder.rglob("*")) if path.is_file()]
        facts = [SCHEMA_VERSION, __version__, self.lineup, self.options]
        files = [[path.name, *_state(path)] for path in (*self.files, *contents) if path.exists()]
        return hashlib.blake2b(json.dumps([repr(facts), files]).encode(), digest_size=16).hexdigest()


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


@cache
def contestants_of(lineup: Lineup) -> Contestants:
    """The planners, loaded once in each process and warmed up as the planner node does it.

    Raises:
        SetupError: when weights are missing or do not fit.
    """
    import torch

    from flatrope_planner.planning.core import warm_up
    from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
    from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
    from flatrope_planner.vla.loading import VlaPlanner, load_planner, load_planner_and_twin
    from flatrope_planner.vla.target import INT8, PRECISIONS, Running

    # With one thread each, results do not depend on how many processes share the machine.
    torch.set_num_threads(1)
    settings = lineup.settings
    draft = user_path(settings.draft) if settings.draft else None
    exactness = Exactness(ExactnessMode(settings.exactness), settings.audit_every)
    speculation = SpeculationOptions(DrafterKind(settings.drafter), draft, settings.draft_nodes, exactness)
    precision, quantised = PRECISIONS.get(settings.precision), settings.precision == INT8
    running = Running(settings.cameras, precision, settings.device, settings.guidance, quantised)
    plain: VlaPlanner | None = None
    if lineup.compare:
        planner, plain = load_planner_and_twin(settings.target, speculation, running)
    else:
        planner = load_planner(settings.target, speculation, running)
    chance = Chance(settings.draw_seed, settings.temperature, settings.top_p, settings.trajectory_samples)
    for contestant in filter(None, (planner, plain)):
        contestant.chance = chance
        warm_up(contestant)
    return Contestants(planner, lineup.samples, plain)
