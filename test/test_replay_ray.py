"""Replay on a Ray cluster gives what one machine gives; whatever is wrong with the cluster is one line."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from drives import Drive, task_of, write_bag
from replay_work import work_cheaply, work_or_die, work_without_weights

from flatrope_planner.cli import main
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.replay import ray_crew
from flatrope_planner.evaluation.replay.crew import replay_all
from flatrope_planner.evaluation.replay.ray_crew import replay_on_ray

ROOT = Path(__file__).resolve().parents[1]
LOOPBACK = "127.0.0.1"
PATIENCE_S = 120.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of this machine; its address."""
    pytest.importorskip("ray")
    port = free_port()
    # Sockets below it may have no long names.
    folder = tmp_path_factory.mktemp("r")
    options = [f"--port={port}", f"--node-ip-address={LOOPBACK}", "--num-cpus=2", f"--temp-dir={folder}", "--block"]
    options += ["--include-dashboard=false", "--disable-usage-stats"]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "test"), os.environ.get("PYTHONPATH", "")])
    # How much memory others on this machine use is no matter of this test.
    environment = {**os.environ, "PYTHONPATH": paths, "RAY_memory_monitor_refresh_ms": "0", "RAY_worker_niceness": "0"}
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", *options]
    with subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as head:
        try:
            assert head.stdout is not None
            said = next((line for line in head.stdout if "Ray runtime started" in line), None)
            assert said is not None, "ray did not start"
            yield f"{LOOPBACK}:{port}"
        finally:
            head.terminate()
            head.communicate(timeout=PATIENCE_S)


def stable(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "run"}


def test_a_cluster_gives_what_one_machine_gives(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        write_bag(tmp_path / name, Drive(duration_s=2.6))
    (tmp_path / "broken.mcap").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    # Relative, as people give them.
    bags = [Path("a"), Path("b"), Path("broken.mcap")]
    shares: list[float] = []
    tasks = [task_of(bag, Path("cluster")) for bag in bags]
    there = {result["name"]: stable(result) for result in replay_on_ray(tasks, cluster, shares.append, work_cheaply)}
    tasks = [task_of(bag, Path("here")) for bag in bags]
    here = {result["name"]: stable(result) for result in replay_all(tasks, 1, shares.append, work_cheaply)}
    assert there == here
    assert {name: result["status"] for name, result in there.items()} == {
        "a": "complete",
        "b": "complete",
        "broken": "failed",
    }
    for name in "ab":
        files = [tmp_path / folder / name / "plans.jsonl" for folder in ("cluster", "here")]
        assert files[0].read_text() == files[1].read_text()
    assert 1.0 in shares


def test_a_worker_that_dies_takes_no_other_bag_with_it(cluster: str, tmp_path: Path) -> None:
    tasks = [task_of(tmp_path / name, tmp_path) for name in ("a", "deadly", "b")]
    found = {each["name"]: each["status"] for each in replay_on_ray(tasks, cluster, lambda _: None, work_or_die)}
    assert found == {"a": "complete", "b": "complete", "deadly": "failed"}


def test_what_no_bag_can_do_without_ends_all(cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task_of(tmp_path / "a", tmp_path)]
    with pytest.raises(SetupError, match=r"^no weights for a$"):
        list(replay_on_ray(tasks, cluster, lambda _: None, work_without_weights))
    monkeypatch.setattr(ray_crew, "__version__", "9.9")
    with pytest.raises(SetupError, match=r"the cluster has flatrope_planner \S+, expected 9\.9 as here"):
        list(replay_on_ray(tasks, cluster, lambda _: None, work_cheaply))


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:ray", ":6379", "ray://x"])
def test_what_is_no_address_is_one_line(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    assert complaint(address, tmp_path, capsys).startswith(f"flatrope: --ray is {address!r}, expected host:port")


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_nobody_at_the_address_is_one_line(prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    address = f"{prefix}{LOOPBACK}:{free_port()}"
    assert complaint(address, tmp_path, capsys).startswith(f"flatrope: no Ray cluster could be reached at {address}: ")


def test_somebody_else_at_the_address_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

        thread = Thread(target=answer)
        thread.start()
        said = complaint(f"{LOOPBACK}:{port}", tmp_path, capsys)
        thread.join()
    assert said == f"flatrope: no Ray cluster could be reached at {LOOPBACK}:{port}: somebody else listens there\n"


def test_without_ray_one_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    said = complaint("auto", tmp_path, capsys)
    assert said.startswith("flatrope: --ray needs the package ray, which is not installed: ")


def complaint(address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `flatrope replay --ray` says, which must be one line."""
    bag = folder / "drive"
    if not bag.exists():
        bag.mkdir()
        (bag / "metadata.yaml").write_text("")
    assert main(["replay", str(bag), "--out", str(folder / "out"), "--ray", address]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


def test_bags_and_jobs_and_clusters_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["replay", str(tmp_path), "--jobs", "2", "--ray", "auto"])
    assert "not allowed with" in capsys.readouterr().err
