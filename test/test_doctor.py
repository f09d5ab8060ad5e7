"""The doctor: each fault is found, named, and comes with what to do; none of its checks can break the report."""

import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import reserve_domain
from sources import ROOT

from flatrope_planner.doctor import checkup, installation, middleware, model, packages, shared_memory, storage, weights
from flatrope_planner.doctor.checkup import Step, guarded
from flatrope_planner.doctor.finding import Finding, Mark, worst
from flatrope_planner.doctor.loopback import verdict
from flatrope_planner.doctor.message_definitions import fields_of
from flatrope_planner.doctor.middleware import check_discovery, check_profile, check_ros
from flatrope_planner.doctor.planner_inputs import check_planner, findings
from flatrope_planner.doctor.probe import Probe
from flatrope_planner.doctor.target_weights import check_target_weights, size_bytes
from flatrope_planner.errors import SetupError

OK, WARN, FAIL = Mark.OK, Mark.WARN, Mark.FAIL


def only(found: Iterable[Finding]) -> Finding:
    (finding,) = found
    assert "\n" not in finding.found + finding.remedy
    assert finding.remedy or finding.mark is OK
    return finding


def doctor(tmp_path: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the whole check-up as a user does."""
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "flatrope_planner.cli", "doctor", "--json", str(file)]
    # Where nothing is sourced, the package is installed with this very Python.
    environment = {"AMENT_PREFIX_PATH": sys.prefix, **os.environ, **environment}
    # A domain apart from that of the tests, where a planner of another test may still be seen.
    domain, reservation = reserve_domain()
    with reservation:
        environment["ROS_DOMAIN_ID"] = str(domain)
        ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stdout + ended.stderr, ended.stderr
    return ended, json.loads(file.read_text())


def marks(result: dict[str, Any]) -> dict[str, str]:
    return {finding["check"]: finding["mark"] for finding in result["findings"]}


def test_a_sound_machine_is_found_sound_by_real_messages_and_a_real_plan(tmp_path: Path) -> None:
    ended, result = doctor(tmp_path)
    assert (ended.returncode, result["exit_code"]) == (0, 0), ended.stdout
    assert set(result) == {"format", "mark", "exit_code", "duration_s", "findings"}
    assert all(set(each) == {"check", "mark", "found", "remedy", "facts"} for each in result["findings"])
    found = marks(result)
    steps = {"python", "packages", "package", "messages", "ros", "domain", "discovery", "profile", "shared memory"}
    assert steps | {"leftovers", "logs", "results", "memory", "weights", "device", "drafts"} <= set(found)
    assert found["plan"] == found["messages"] == "ok"
    by_name = {each["check"]: each for each in result["findings"]}
    assert by_name["loop-back"]["facts"]["small"] > 0
    assert by_name["loop-back"]["facts"]["pictures"] > 0
    assert by_name["planner"]["found"].startswith("no node 'planner' in this domain")
    assert [line.split()[0] for line in ended.stdout.splitlines() if line[2] != " "] == [
        each["mark"] for each in result["findings"]
    ]


def test_without_ros_and_without_pytorch_it_says_so_and_goes_on(tmp_path: Path) -> None:
    for name in ("rclpy", "torch", "ament_index_python", "yaml", "numpy", "std_msgs"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name} here')\n")
    ended, result = doctor(tmp_path, PYTHONPATH=str(tmp_path))
    assert ended.returncode == 1
    found = {each["check"]: each for each in result["findings"]}
    assert (found["loop-back"]["mark"], found["device"]["mark"], found["weights"]["mark"]) == ("fail", "fail", "ok")
    assert "no rclpy here" in found["loop-back"]["found"]
    assert "no torch here" in found["device"]["found"]
    assert (found["planner"]["mark"], found["package"]["mark"]) == ("warn", "fail")
    assert "Traceback" not in ended.stdout


def test_a_check_that_fails_itself_is_a_finding() -> None:
    def broken() -> Iterable[Finding]:
        yield Finding("half", OK, "fine")
        _ = os.environ["MEM_AVAILABLE"]

    finding = only(guarded(Step("memory", broken)))
    assert (finding.check, finding.mark) == ("memory", FAIL)
    assert finding.found == "this check failed itself: KeyError: 'MEM_AVAILABLE'"


def test_the_worst_mark_counts() -> None:
    assert worst([]) is OK
    assert worst([Finding("a", WARN, ""), Finding("b", OK, "")]) is WARN
    assert worst([Finding("a", FAIL, ""), Finding("b", WARN, "")]) is FAIL


def test_long_lines_are_broken_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    report = checkup.Report(sys.stdout)
    report.show(Step("long", lambda: [Finding("long", WARN, "word " * 60, "do this")]))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("  warn long")
    assert second.strip() == "-> do this"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit('out of luck')", "out of luck"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("print('[1, 2]'); print('no json')", "exit code 0"),
    ],
)
def test_a_probe_that_says_nothing_is_one_line(
    code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silent.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Probe("silent") as probe, pytest.raises(SetupError, match=f"^{words}$"):
        probe.facts(30.0)


def test_a_probe_that_hangs_is_ended_and_what_it_said_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time; print('{\"a\": 1}', flush=True); time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Probe("slow") as probe:
        assert probe.facts(2.0) == {"a": 1, "trouble": "no answer within 2 s"}


def test_versions_are_those_of_this_python(tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text('# c\nnumpy==2.2.6; python_version < "3.11"\nNumPy==2.4.6; python_version >= "3.11"\nx.y==1.0\n')
    assert packages.pinned(file, (3, 10)) == {"numpy": "2.2.6", "x.y": "1.0"}
    assert packages.pinned(file, (3, 11)) == {"numpy": "2.4.6", "x.y": "1.0"}


def test_a_missing_package_fails_and_another_version_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime.txt").write_text("# what\nnumpy\nno-such-package\n")
    (tmp_path / "constraints.txt").write_text("numpy==0.1\nno-such-package==1.0\n")
    monkeypatch.setattr(packages, "shared_folder", lambda _: tmp_path)
    missing, other = packages.check_packages()
    assert (missing.mark, missing.found) == (FAIL, "not installed: no-such-package")
    assert other.mark is WARN
    assert "(tested: 0.1)" in other.found
    assert "constraints.txt" in other.remedy


@pytest.mark.parametrize("file", sorted((ROOT / "msg").glob("*.msg")), ids=lambda file: str(file.stem))
def test_sources_of_messages_are_read_as_the_generator_reads_them(file: Path) -> None:
    messages = pytest.importorskip("flatrope_planner.msg", reason="the package is not built")
    assert fields_of(file) == getattr(messages, file.stem).get_fields_and_field_types()


def test_every_form_of_a_field_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "Any.msg"
    file.write_text(
        "uint8 LIMIT=3\nuint8 A = 4 # constant\nstring<=5 word  # a comment\nfloat64[9] k\nbyte[] raw\n"
        "std_msgs/Header[<=3] few\nPlannedPoint one\nint32 with_default 7\nbool flag\n"
    )
    assert fields_of(file) == {
        "word": "string<5>",
        "k": "double[9]",
        "raw": "sequence<octet>",
        "few": "sequence<std_msgs/Header, 3>",
        "one": "flatrope_planner/PlannedPoint",
        "with_default": "int32",
        "flag": "boolean",
    }


def test_messages_older_than_their_sources_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flatrope_planner.msg", reason="the package is not built")
    shutil.copytree(ROOT / "msg", tmp_path / "msg")
    monkeypatch.setattr(installation, "shared_folder", lambda _: tmp_path / "msg")
    assert only(installation.check_messages()).mark is OK
    with (tmp_path / "msg/Rationale.msg").open("a") as file:
        file.write("float64 new_field\n")
    (tmp_path / "msg/Brand.msg").write_text("bool new\n")
    finding = only(installation.check_messages())
    assert (finding.mark, finding.found) == (FAIL, "built from older sources: Brand, Rationale")
    assert "make setup" in finding.remedy


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, [(OK, "0 (ROS_DOMAIN_ID is not set)"), (OK, "the whole subnet")]),
        ({"ROS_DOMAIN_ID": "7", "ROS_LOCALHOST_ONLY": "1"}, [(OK, "7"), (OK, "this machine only")]),
        ({"ROS_DOMAIN_ID": "150"}, [(WARN, "150"), (OK, "subnet")]),
        ({"ROS_DOMAIN_ID": "233"}, [(FAIL, "233 is no domain"), (OK, "subnet")]),
        ({"ROS_DOMAIN_ID": "-1"}, [(FAIL, "-1 is no domain"), (OK, "subnet")]),
        ({"ROS_DOMAIN_ID": "many"}, [(FAIL, "many is no domain"), (OK, "subnet")]),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}, [(OK, "0"), (FAIL, "no node finds another")]),
        ({"ROS_AUTOMATIC_DISCOVERY_RANGE": "HERE"}, [(OK, "0"), (WARN, "HERE")]),
        (
            {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DISTRO": "humble"},
            [(OK, "0"), (WARN, "Humble does not know")],
        ),
    ],
)
def test_discovery_is_read_from_the_environment(environment: dict[str, str], expected: list[tuple[Mark, str]]) -> None:
    found = list(check_discovery(environment))
    assert [each.mark for each in found] == [mark for mark, _ in expected]
    assert all(words in each.found for each, (_, words) in zip(found, expected, strict=True))
    assert all(each.remedy for each in found if each.mark is not OK)


def test_the_middleware_is_named() -> None:
    finding = only(check_ros({"ROS_DISTRO": "humble", "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}))
    assert finding.found == "ROS 2 humble, rmw_cyclonedds_cpp"


def test_a_middleware_that_is_not_installed_is_named_with_what_to_do(tmp_path: Path) -> None:
    there = {"ROS_DISTRO": "humble", "AMENT_PREFIX_PATH": f"{tmp_path / 'workspace'}:{tmp_path}"}
    asked = {**there, "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}
    missing = only(check_ros(asked))
    assert missing.mark is FAIL
    assert missing.found == "RMW_IMPLEMENTATION=rmw_cyclonedds_cpp is not installed: no node starts with it"
    for remedy in ("unset RMW_IMPLEMENTATION", "apt install ros-humble-rmw-cyclonedds-cpp"):
        assert remedy in missing.remedy
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "librmw_cyclonedds_cpp.so").touch()
    assert only(check_ros(asked)).mark is OK


def test_the_wheels_have_no_other_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "_wheels", lambda: "jazzy")
    found = only(check_ros({"RMW_IMPLEMENTATION": "rmw_zenoh_cpp"}))
    assert found.mark is FAIL
    assert found.remedy == "unset RMW_IMPLEMENTATION, for rmw_fastrtps_cpp: the wheels have no other"
    assert only(check_ros({})).mark is OK


@pytest.mark.parametrize(
    ("environment", "mark", "words"),
    [
        ({"ROS_DISTRO": "jazzy"}, OK, "FASTRTPS_DEFAULT_PROFILES_FILE is not set"),
        ({"ROS_DISTRO": "lyrical"}, OK, "FASTDDS_DEFAULT_PROFILES_FILE is not set"),
        (
            {"ROS_DISTRO": "lyrical", "FASTRTPS_DEFAULT_PROFILES_FILE": "x.xml"},
            WARN,
            "this Fast DDS reads FASTDDS_DEFAULT_PROFILES_FILE",
        ),
        ({"ROS_DISTRO": "jazzy", "FASTRTPS_DEFAULT_PROFILES_FILE": "/no/x.xml"}, FAIL, "cannot be read: No such file"),
        ({"ROS_DISTRO": "jazzy", "FASTRTPS_DEFAULT_PROFILES_FILE": __file__}, FAIL, "which is no XML"),
        (
            {"ROS_DISTRO": "jazzy", "FASTRTPS_DEFAULT_PROFILES_FILE": str(ROOT / "config/fastdds.xml")},
            OK,
            "fastdds.xml",
        ),
        ({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, OK, "not needed"),
    ],
)
def test_the_profile_is_looked_for_where_this_fast_dds_looks(
    environment: dict[str, str], mark: Mark, words: str
) -> None:
    finding = only(check_profile(environment))
    assert finding.mark is mark
    assert words in finding.found


Room = namedtuple("Room", "f_frsize f_blocks f_bavail")


@pytest.mark.parametrize(("free_mib", "mark"), [(1000, OK), (40, WARN), (10, FAIL)])
def test_little_shared_memory_is_said(
    free_mib: int, mark: Mark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: Room(2**20, 2000, free_mib))
    finding = only(shared_memory.check_space(tmp_path))
    assert finding.mark is mark
    assert f"{free_mib} of 2000 MiB free" in finding.found


def test_leftovers_are_named_and_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(shared_memory.check_leftovers(tmp_path)).mark is OK
    assert only(shared_memory.check_leftovers(tmp_path / "none")).mark is WARN
    monkeypatch.setattr("flatrope_planner.bringup.leftovers.YOUNG_S", -1.0)
    for suffix in ("", "_el"):
        (tmp_path / f"fastrtps_port7500{suffix}").write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    finding = only(shared_memory.check_leftovers(tmp_path))
    assert finding.mark is WARN
    assert "1 port of ended processes" in finding.found
    assert "flatrope doctor --clean" in finding.remedy
    assert shared_memory.clean(tmp_path) == ["fastrtps_port7500"]
    assert [file.name for file in tmp_path.iterdir()] == ["other"]


def test_leftovers_of_another_user_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> bool:
        raise PermissionError

    monkeypatch.setattr("flatrope_planner.bringup.leftovers.YOUNG_S", -1.0)
    monkeypatch.setattr(shared_memory, "remove", refuse)
    (tmp_path / "fastrtps_port7500_el").write_bytes(b"")
    with pytest.raises(SetupError, match="fastrtps_port7500 may not be removed"):
        shared_memory.clean(tmp_path)


def test_the_log_folder_is_where_ros_writes() -> None:
    assert storage.log_folder({"ROS_LOG_DIR": "/a", "ROS_HOME": "/b"}) == Path("/a")
    assert storage.log_folder({"ROS_HOME": "/b"}) == Path("/b/log")
    assert storage.log_folder({}) == Path("~/.ros/log").expanduser()


Disk = namedtuple("Disk", "total used free")


@pytest.mark.parametrize(("free", "mark"), [(5 * 10**9, OK), (5 * 10**8, WARN), (10**6, FAIL)])
def test_a_full_disk_is_said(free: int, mark: Mark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**10, 0, free))
    logs, _ = storage.check_storage({"ROS_LOG_DIR": str(tmp_path / "not yet/there")})
    assert (logs.check, logs.mark) == ("logs", mark)


def test_a_log_folder_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    logs, _ = storage.check_storage({"ROS_LOG_DIR": str(tmp_path / "log")})
    assert logs.mark is FAIL
    assert "is a file" in logs.found
    assert "ROS_LOG_DIR" in logs.remedy


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"version https"), "model.safetensors: no weights"),
        (lambda folder: (folder / "drafts/flatrope-8/config.json").unlink(), "flatrope-8/config.json is missing"),
        (lambda folder: os.truncate(folder / "drafts/medusa/model.safetensors", 5000), "medusa/model.safetensors"),
    ],
)
def test_weights_that_are_not_whole_are_named(harm: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    folder = tmp_path / "nano"
    shutil.copytree(weights.SHIPPED, folder)
    assert only(weights.check_weights(folder)).mark is OK
    harm(folder)
    finding = only(weights.check_weights(folder))
    assert finding.mark is FAIL
    assert words in finding.found


DEVICE = {"torch": "2.13.0", "threads": 2, "cuda": False, "cuda_built": None}
GPU = {"gpu": "H200", "gpu_free_bytes": 100e9, "gpu_total_bytes": 140e9, "bfloat16": True}
DRAFTS = {"fingerprint": "abcd", "names": ["a"], "problems": {}}
PLAN = {"load_s": 0.2, "plan_s": 1.0, "health": "", "slow": ""}


@pytest.mark.parametrize(
    ("facts", "check", "mark", "words"),
    [
        ({}, "device", OK, "no GPU, and built without CUDA"),
        ({"device": {**DEVICE, "cuda_built": "13.0"}}, "device", OK, "finds no GPU"),
        ({"device": {**DEVICE, "cuda": True, **GPU}}, "device", OK, "H200 with 100 of 140 GB free, bfloat16"),
        ({"device": {"problem": "no torch"}}, "device", FAIL, "no torch"),
        ({"drafts": {**DRAFTS, "problems": {"a": "for target ffff"}}}, "drafts", WARN, "a: for target ffff"),
        ({"plan": {**PLAN, "health": "writes alone"}}, "plan", WARN, "writes alone"),
        ({"plan": {**PLAN, "slow": "computed in bfloat16"}}, "plan", WARN, "computed in bfloat16"),
        ({"plan": None, "trouble": "exit code -9"}, "plan", FAIL, "not tried: exit code -9"),
    ],
)
def test_the_model_is_judged_by_what_was_seen(facts: dict[str, Any], check: str, mark: Mark, words: str) -> None:
    found = {each.check: each for each in model.findings({"device": DEVICE, "drafts": DRAFTS, "plan": PLAN, **facts})}
    assert found[check].mark is mark
    assert words in found[check].found
    assert {name for name, each in found.items() if each.mark is not OK} <= {check}


def test_another_target_is_judged_by_its_own_needs() -> None:
    facts = {"device": DEVICE, "drafts": {"problem": "no weights"}, "plan": {"problem": "no weights"}}
    device, drafts, plan = model.findings(facts, "/models/large")
    assert "nano" not in device.found
    assert (drafts.found, plan.found) == ("no weights", "not tried: see above")
    assert {drafts.mark, plan.mark} == {FAIL}
    assert "git checkout" not in drafts.remedy
    (alone,) = [
        each
        for each in model.findings({"device": DEVICE, "drafts": DRAFTS, "plan": {**PLAN, "health": "alone"}}, "x")
        if each.check == "plan"
    ]
    assert alone.found.startswith("x loads in 0.2 s")
    assert "flatrope train draft" in alone.remedy


def test_weights_are_compared_with_the_memory_of_their_device(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemAvailable:   8000000 kB\n")
    size = 20_000_000_000
    assert model.memory_for(size, {**DEVICE, "cuda": True, **GPU}, file).mark is OK
    finding = model.memory_for(size, DEVICE, file)
    assert (finding.mark, finding.found) == (WARN, "8.2 GB free in main memory, weights of 20 GB")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A target's folder with weights in two files; what is in them belongs to no target."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "boat"}')
    files = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for file in files:
        shutil.copy(weights.SHIPPED / "drafts" / "medusa" / "model.safetensors", folder / file)
    index = {"weight_map": dict(zip(("a", "b", "c"), (*files, files[0]), strict=True))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_the_checkpoint_of_a_target_is_looked_through(checkpoint: Path) -> None:
    finding = only(check_target_weights(str(checkpoint)))
    assert finding.mark is OK
    size = 2 * (weights.SHIPPED / "drafts" / "medusa" / "model.safetensors").stat().st_size
    assert finding.found == f"{size / 1e9:.3g} GB in 2 files and 0 drafts, whole, in {checkpoint}"
    os.truncate(checkpoint / "model-00001-of-00002.safetensors", 5000)
    (checkpoint / "model-00002-of-00002.safetensors").unlink()
    finding = only(check_target_weights(str(checkpoint)))
    assert finding.mark is FAIL
    assert "00001-of-00002.safetensors: no weights of a model" in finding.found
    assert "00002-of-00002.safetensors is missing" in finding.found
    (checkpoint / "model.safetensors.index.json").write_text("[]")
    assert "lists no files of weights" in only(check_target_weights(str(checkpoint))).found
    assert only(check_target_weights("no/such-target")).found == "there is no target 'no/such-target'"


def test_the_plan_of_a_check_up_is_of_the_target_that_was_named(checkpoint: Path) -> None:
    with model.start_model(str(checkpoint)) as probe:
        found = {each.check: each for each in model.check_model(probe, str(checkpoint))}
    assert found["memory"].facts["needed_bytes"] == size_bytes(checkpoint)
    assert "model_type is 'boat', expected" in found["drafts"].found
    assert found["plan"].mark is FAIL


@pytest.mark.parametrize(("free_kb", "mark"), [(8_000_000, OK), (2_000_000, WARN), (500_000, FAIL)])
def test_main_memory_is_compared_with_the_need(free_kb: int, mark: Mark, tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text(f"MemTotal: 9000000 kB\nMemAvailable:   {free_kb} kB\n")
    assert only(model.check_memory(file)).mark is mark


HEARD = {"rmw": "rmw", "first_s": 0.4, "small": 40, "pictures": 8, "pictures_sent": 8}


@pytest.mark.parametrize(
    ("facts", "mark", "words"),
    [
        ({}, OK, "8 of 8 pictures"),
        ({"small": 0}, FAIL, "no message from one process reaches another"),
        ({"pictures": 0}, FAIL, "no picture of 1600x900"),
        ({"pictures": 5}, WARN, "5 of 8 pictures"),
        ({"first_s": 61.0}, WARN, "the first message after 61.0 s"),
        ({"small": 0, "trouble": "exit code 1"}, FAIL, "exit code 1"),
    ],
)
def test_what_comes_back_is_judged(facts: dict[str, Any], mark: Mark, words: str) -> None:
    finding = verdict({**HEARD, **facts})
    assert finding.mark is mark
    assert words in finding.found
    assert finding.remedy or mark is OK


def asked(**facts: Any) -> dict[str, Any]:
    clock = {"publishers": [], "heard": 0}
    return {
        "planner": "/planner",
        "state": None,
        "use_sim_time": False,
        "clock": clock,
        "inputs": [],
        "status": {},
    } | facts


@pytest.mark.parametrize(
    ("facts", "mark", "words"),
    [
        ({"state": "active"}, OK, "/planner runs, active"),
        ({"state": "unconfigured"}, WARN, "is unconfigured: it does not plan"),
        ({"use_sim_time": True}, FAIL, "nobody publishes /clock"),
        ({"use_sim_time": True, "clock": {"publishers": [{}], "heard": 0}}, FAIL, "stands still"),
        ({"use_sim_time": True, "clock": {"publishers": [{}], "heard": 9}}, OK, "simulated, from /clock"),
        ({"clock": {"publishers": [{}], "heard": 9}}, WARN, "use_sim_time is false"),
        ({"use_sim_time": None}, WARN, "does not say"),
        ({"status": {"planner: model": {"level": 2, "message": "not loaded"}}}, FAIL, "says of model: not loaded"),
        ({"status": {"planner: draft": {"level": 1, "message": "slow"}}}, WARN, "says of draft: slow"),
    ],
)
def test_a_planner_is_judged_by_state_clock_and_its_own_words(facts: dict[str, Any], mark: Mark, words: str) -> None:
    found = [each for each in findings(asked(**facts)) if words in each.found]
    assert only(found).mark is mark


NO_MODEL = {"planner: model": {"level": 2, "message": "model not loaded: no weights"}}


@pytest.mark.parametrize(
    ("ros2", "state", "status", "words"),
    [
        ("/bin/ros2", "unconfigured", {}, "start it with autostart:=true, or ros2 lifecycle set /planner configure"),
        ("/bin/ros2", "inactive", {}, "start it with autostart:=true, or ros2 lifecycle set /planner activate"),
        (None, "unconfigured", {}, "it waits for a manager to configure it: start it with autostart:=true"),
        ("/bin/ros2", "unconfigured", NO_MODEL, "its model could not be loaded, the reason stands below: mend that"),
    ],
)
def test_what_makes_a_planner_active_is_said_as_it_is_possible_here(
    monkeypatch: pytest.MonkeyPatch, ros2: str | None, state: str, status: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: ros2)
    found = next(each for each in findings(asked(state=state, status=status)) if "does not plan" in each.found)
    assert words in found.remedy
    assert ("ros2 lifecycle" in found.remedy) is (ros2 is not None and not status)
    assert ("autostart" in found.remedy) is not bool(status)


def test_a_planner_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    class Told:
        def facts(self, _timeout_s: float) -> dict[str, Any]:
            return {"planner": None, "nodes": ["/pilot"]}

    told: Any = Told()
    assert only(check_planner(told, None)).mark is OK
    finding = only(check_planner(told, "planer"))
    assert finding.mark is FAIL
    assert finding.found == "no node 'planer' in this domain; there are /pilot"
