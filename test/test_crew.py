"""Several processes at one training end where one alone would, and one of them writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from crew_program import STEPS, train
from safetensors.torch import load_file
from test_token_drafts import TARGET, medusa
from tiny_nano import noise_observation

from flatrope_planner.training.capture import capture
from flatrope_planner.training.checkpoint import CHECKPOINT_FILE
from flatrope_planner.training.crew import Crew, own_gpu
from flatrope_planner.training.traces import write_drive

PATIENCE_S = 120.0
PROCESSES = 2
TORCHRUN = ("torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", f"--nproc-per-node={PROCESSES}")
# `accelerate launch` starts torchrun, with these set besides.
ACCELERATE = {"ACCELERATE_USE_CPU": "true", "ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "NO"}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    with torch.no_grad():
        texts = list(capture(TARGET, (TARGET.prepare(noise_observation(seed)) for seed in range(4))))
    assert len({len(text.tokens) for text in texts}) == 1
    for number in range(3):
        write_drive(folder / f"{number}.safetensors", texts)
    return folder


@pytest.mark.usefixtures("alone")
def test_a_crew_trains_what_one_process_trains(tmp_path: Path, traces: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "crew").mkdir()
    program = Path(__file__).with_name("crew_program.py")
    command = [sys.executable, "-m", *TORCHRUN, str(program), str(traces), str(tmp_path / "crew")]
    environment = {**os.environ, **ACCELERATE, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        train(traces, tmp_path / "alone")
        try:
            said, _ = run.communicate(timeout=PATIENCE_S)
        finally:
            run.kill()
    assert run.returncode == 0, said
    one = load_file(tmp_path / "alone/0.safetensors")
    first, second = (load_file(tmp_path / f"crew/{rank}.safetensors") for rank in range(PROCESSES))
    start = medusa().state_dict()
    assert one["steps"] == first["steps"] == second["steps"] == STEPS
    for name, before in start.items():
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], one[name], atol=1e-5, rtol=0.0)
        assert (one[name] - before).abs().max() > 1e-4
    assert (tmp_path / "crew/0" / CHECKPOINT_FILE).is_file()
    assert not (tmp_path / "crew/1").exists()


@pytest.mark.usefixtures("alone")
def test_one_process_is_a_crew_of_its_own() -> None:
    crew = Crew()
    gradient = torch.tensor([2.0])
    crew.average([gradient])
    crew.wait()
    assert (crew.size, crew.leads, gradient.item()) == (1, True, 2.0)
    assert crew.share([5, 6, 7]) == [5, 6, 7]
    assert crew.agree(wish=True)
    assert not crew.agree(wish=False)


def test_a_batch_is_shared_without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setenv("WORLD_SIZE", "3")
    shares = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        crew = Crew()
        assert crew.leads == (rank == 0)
        shares.append(crew.share(range(7)))
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("asked", "rank", "taken"),
    [("cuda", "3", "cuda:1"), ("cuda", None, "cuda:0"), ("cuda:0", "1", "cuda:0"), ("cpu", "1", "cpu")],
)
def test_each_process_of_a_machine_takes_a_gpu_of_its_own(
    monkeypatch: pytest.MonkeyPatch, asked: str, rank: str | None, taken: str
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    assert own_gpu(torch.device(asked)) == torch.device(taken)
