"""The set-up script: what can be checked without setting anything up."""

import importlib.util
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "set_up.py"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module that works in an empty folder."""
    spec = importlib.util.spec_from_file_location("set_up", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, path in {"ROOT": ".", "VENV": ".venv", "LOG": "log/set_up.log", "STAMPS": ".venv/set_up"}.items():
        monkeypatch.setattr(module, name, tmp_path / path)
    (tmp_path / "log").mkdir()
    return module


def test_wheels_name_this_python(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / ".venv/share/std_msgs/cmake/export.cmake"
    file.parent.mkdir(parents=True)
    built_on = "/opt/python/cp311-cp311"
    file.write_text(
        f'set(A "{built_on}/include/python3.11;{built_on}/lib/python3.11/site-packages/numpy/_core/include")\n'
        'set(B "${_IMPORT_PREFIX}/include/std_msgs")\n'
    )
    script.adapt_wheels()
    numpy = script.SITE_PACKAGES / "numpy/_core/include"
    assert file.read_text() == (
        f'set(A "{sysconfig.get_path("include")};{numpy}")\nset(B "${{_IMPORT_PREFIX}}/include/std_msgs")\n'
    )


def test_digest_tells_parts_apart(script: ModuleType) -> None:
    assert script.digest(["ab", "c"]) != script.digest(["a", "bc"])
    assert script.digest([b"ab", None]) == script.digest([b"ab", None])


def test_ros_sourced_for_another_python_is_refused(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setattr(script, "ask_python", lambda _: None)
    with pytest.raises(script.SetUpError, match=r"ROS 2 jazzy is sourced, but .* cannot import rclpy"):
        script.sourced_ros()


def test_without_ros_distro_nothing_is_sourced(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    assert script.sourced_ros() is None


def test_a_missing_tool_is_named(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(script.SetUpError, match="cmake is needed and was not found: apt install cmake"):
        script.check_tools(None)


def test_python_beyond_the_wheels_needs_ros(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.platform, "machine", lambda: "aarch64")
    with pytest.raises(script.SetUpError, match=r"no ROS 2 is sourced, .* on aarch64"):
        script.check_tools(None)
    script.check_tools("jazzy /opt/ros/jazzy")


def test_a_foreign_venv_is_left_alone(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    with pytest.raises(script.SetUpError, match="not of this set-up's making"):
        script.install_packages(None)
    assert (tmp_path / ".venv").exists()


def test_a_failing_step_is_told_with_its_complaint(script: ModuleType) -> None:
    with pytest.raises(
        script.SetUpError, match=r"packages: ERROR: no such thing \(everything it said: .*set_up\.log\)"
    ):
        script.run("packages", ["sh", "-c", "echo collecting; echo ERROR: no such thing >&2; exit 1"])


def test_paths_keep_what_the_shell_has_later(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/ros/a b")
    line = script.export_path("PYTHONPATH", tmp_path / "site")
    for later, tail in (("", ""), ("/home/me", ":/home/me")):
        shell = f'PYTHONPATH="{later}"; {line}; printf %s "$PYTHONPATH"'
        printed = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
        assert printed == f"{tmp_path}/site:/opt/ros/a b{tail}"


def test_flatrope_in_a_copied_checkout_says_so(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    executable = tmp_path / ".venv/lib/flatrope_planner/flatrope"
    executable.parent.mkdir(parents=True)
    executable.write_text('#!/bin/sh\necho "$1 $AMENT_PREFIX_PATH"\n')
    executable.chmod(0o755)
    script.write_launchers(None)
    flatrope = tmp_path / ".venv/bin/flatrope"
    printed = subprocess.run([flatrope, "demo"], capture_output=True, text=True, check=True).stdout
    assert printed == f"demo {tmp_path / '.venv'}\n"
    copy = tmp_path / "flatrope"
    copy.write_bytes(flatrope.read_bytes())
    copy.chmod(0o755)
    copied = subprocess.run([copy, "demo"], capture_output=True, text=True, check=False)
    assert copied.returncode == 1
    assert copied.stderr == "flatrope: the checkout was moved or copied: run 'make setup' in it\n"
