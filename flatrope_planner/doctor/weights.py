"""Whether the weights that ship with the package are whole. Reads their headers only, and needs no PyTorch."""

from collections.abc import Iterator
from pathlib import Path

from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.places import CHECKOUT
from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.speculation.checkpoints.header import read_header

SHIPPED = CHECKOUT / "flatrope_planner" / "weights" / "nano"
SAFETENSORS = ".safetensors"
WEIGHTS_FILE = f"model{SAFETENSORS}"
OF_NANO, OF_A_DRAFT = ("config.json", "tokenizer.json", WEIGHTS_FILE), ("config.json", WEIGHTS_FILE)
REMEDY = "`git checkout flatrope_planner/weights` in the checkout, or install the package again"


def check_weights(folder: Path = SHIPPED) -> Iterator[Finding]:
    """Whether every file is there, and every file of weights can be read."""
    drafts = [path for path in sorted((folder / "drafts").glob("*")) if path.is_dir()]
    wanted = [(folder, name) for name in OF_NANO] + [(draft, name) for draft in drafts for name in OF_A_DRAFT]
    problems = list(filter(None, (problem_of(*each) for each in wanted)))
    facts = {"folder": str(folder), "drafts": [draft.name for draft in drafts], "problems": problems}
    if problems:
        yield Finding("weights", Mark.FAIL, "; ".join(problems), REMEDY, facts)
    else:
        yield Finding("weights", Mark.OK, f"nano and {len(drafts)} drafts, whole, in {folder}", facts=facts)


def problem_of(folder: Path, name: str) -> str:
    """What is wrong with a file of a folder of weights; "" for nothing."""
    try:
        path = file_in(folder, name)
        if not path.exists():
            return f"{path} is missing"
        if name.endswith(SAFETENSORS):
            read_header(path)
    except SetupError as err:
        return str(err)
    return ""
