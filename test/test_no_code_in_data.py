"""Nothing that is read can run: no pickle, no evaluation, no remote code, anywhere in what ships."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import ROOT

SOURCES = sorted(path for folder in ("flatrope_planner", "launch", "scripts") for path in (ROOT / folder).rglob("*.py"))
# Modules whose files or bytes are programs.
PROGRAMS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
EVALUATORS = {"eval", "exec", "compile", "__import__"}
# Function, by the end of its name -> what it must be told.
REQUIRED = {
    "torch.load": {"weights_only": True},
    "np.load": {"allow_pickle": False},
    "numpy.load": {"allow_pickle": False},
}
# Those that run what they read, whatever they are told.
NEVER = {
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all"),
    *("os.system", "os.popen", "torch.hub.load", "torch.jit.load", "pd.read_pickle", "pandas.read_pickle"),
}
LOADERS = ("from_pretrained", "from_config")


def offences(tree: ast.AST) -> Iterator[str]:
    """What in a module could run what it reads, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            yield from (f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in PROGRAMS)
        elif isinstance(node, ast.Call):
            yield from (f"{node.lineno}: {offence}" for offence in offences_of_call(node))


def offences_of_call(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    told = {each.arg: each.value for each in call.keywords}
    if name in EVALUATORS or name in NEVER:
        yield name
    for argument, value in REQUIRED.get(name, {}).items():
        if not is_constant(told.get(argument), value):
            yield f"{name} without {argument}={value}"
    if "trust_remote_code" in told and not is_constant(told["trust_remote_code"], False):
        yield f"{name} with trust_remote_code"
    if name.endswith(LOADERS) and name.startswith("Auto") and "trust_remote_code" not in told:
        yield f"{name} without trust_remote_code=False"
    if name.endswith(".from_pretrained") and not is_constant(told.get("local_files_only"), True):
        yield f"{name} without local_files_only=True"
    if not is_constant(told.get("shell", ast.Constant(False)), False):
        yield f"{name} with shell"
    if name.endswith("import_module") and call.args and not says_where(call.args[0]):
        yield f"{name} of anything"


def is_constant(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def says_where(node: ast.expr) -> bool:
    """Whether the package that is imported from is written down, or was checked under this name."""
    return isinstance(node, ast.Constant | ast.JoinedStr) or ast.unparse(node) in CHECKED


# Variables that hold the name of a module: in planner_probe, the package of a message type in the graph of ROS.
CHECKED = {"package"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_that_is_read_can_run(path: Path) -> None:
    assert list(offences(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import a, dill as d",
        "torch.load(p)",
        "torch.load(p, weights_only=False)",
        "torch.load(p, weights_only=flag)",
        "np.load(p)",
        "np.load(p, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "yaml.unsafe_load(text)",
        "eval('1')",
        "exec(text)",
        "os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "AutoModel.from_pretrained(p, trust_remote_code=True, local_files_only=True)",
        "AutoModel.from_pretrained(p, local_files_only=True)",
        "AutoModel.from_pretrained(p, trust_remote_code=False)",
        "AutoConfig.from_config(c, trust_remote_code=flag)",
        "importlib.import_module(name)",
        "torch.hub.load('a', 'b')",
    ],
)
def test_each_offence_is_seen(code: str) -> None:
    assert list(offences(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["model.eval()", "yaml.safe_load(t)", "torch.load(p, weights_only=True)", "np.load(p, allow_pickle=False)"],
)
def test_what_is_sound_passes(code: str) -> None:
    assert not list(offences(ast.parse(code)))
