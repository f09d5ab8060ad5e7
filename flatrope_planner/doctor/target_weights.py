"""The folder of a target that does not ship with the package: whether it is whole. Reads headers, needs no PyTorch."""

from collections.abc import Iterator
from pathlib import Path

from flatrope_planner.arguments import user_path
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.weights import OF_A_DRAFT, WEIGHTS_FILE, problem_of
from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in, read_json

CONFIG_FILE, INDEX_FILE = "config.json", "model.safetensors.index.json"
DRAFTS_FOLDER = "drafts"
# An index of weights in several files is long.
MOST_INDEX_BYTES = 16 * 2**20
REMEDY = "fetch the checkpoint again, whole; nano plans without it"


def folder_of(name: str) -> Path | None:
    """Where a target's checkpoint lies: in this folder, or in the local Hugging Face cache; None for nowhere."""
    try:
        folder = user_path(name)
        # An empty name would be the working directory.
        if name and folder.is_dir():
            return folder
    except OSError:
        # Too long a name, for instance.
        return None
    from flatrope_planner.vla.checkpoint.files import cached_folder

    return cached_folder(name)


def check_target_weights(name: str) -> Iterator[Finding]:
    """Whether every file of the checkpoint is there, and every file of weights can be read."""
    folder = folder_of(name)
    if folder is None:
        remedy = "give a checkpoint's folder, or the Hugging Face id of one that has been downloaded"
        yield Finding("weights", Mark.FAIL, f"there is no target {name!r}", remedy)
        return
    files, problems = weight_files(folder)
    drafts = [path for path in sorted((folder / DRAFTS_FOLDER).glob("*")) if path.is_dir()]
    wanted = [(folder, CONFIG_FILE), *((folder, file) for file in files)]
    wanted += [(draft, file) for draft in drafts for file in OF_A_DRAFT]
    problems += filter(None, (problem_of(*each) for each in wanted))
    facts = {"folder": str(folder), "drafts": [draft.name for draft in drafts], "problems": problems}
    if problems:
        yield Finding("weights", Mark.FAIL, "; ".join(problems), REMEDY, facts)
    else:
        size = f"{size_bytes(folder) / 1e9:.3g} GB in {len(files)} files"
        yield Finding("weights", Mark.OK, f"{size} and {len(drafts)} drafts, whole, in {folder}", facts=facts)


def size_bytes(folder: Path) -> int:
    """How much the files of weights that are there hold."""
    return sum((folder / file).stat().st_size for file in weight_files(folder)[0] if (folder / file).is_file())


def weight_files(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the files of weights, and what is wrong with the index that lists them."""
    try:
        index = file_in(folder, INDEX_FILE)
        if not index.is_file():
            return [WEIGHTS_FILE], []
        listed = read_json(index, MOST_INDEX_BYTES)["weight_map"].values()
        return sorted({Path(str(file)).name for file in listed}), []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SetupError) as err:
        return [], [f"{folder / INDEX_FILE}: lists no files of weights ({reason(err)})"]
