"""`flatrope ...`: reads the command line, calls the room that does the work, writes its result.

Rooms are imported when their command runs, so that `flatrope --help` waits for neither torch nor ROS.
"""

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from flatrope_planner.arguments import COUNT, JOBS, SEED, output_folder, real_number
from flatrope_planner.errors import FlatropeError, InputError, SetupError
from flatrope_planner.evaluation.replay.arguments import add_replay_arguments

Result = Mapping[str, Any]

EXIT_OK, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 2, 130
# A command whose work has brought something to light says so in its result.
EXIT_CODE = "exit_code"


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = _parser(training=argv[:1] in (["train"], ["capture"])).parse_args(argv)
    # Asked to end either way, a command ends what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _prepare_folder_of(arguments.json)
        result: Result = arguments.run(arguments)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    except FlatropeError as err:
        return _complain(err, EXIT_BAD_INPUT)
    except OSError as err:
        if err.filename is None:
            raise
        return _complain(f"{err.filename}: {err.strerror}", EXIT_BAD_INPUT)
    except ModuleNotFoundError as err:
        return _complain(f"{err.name} is not installed: run `make setup`, or source ROS 2", EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_INTERRUPTED)
    return int(result.get(EXIT_CODE, EXIT_OK))


def _parser(*, training: bool) -> argparse.ArgumentParser:
    """The parser of all commands; `train` and `capture` get their options only when `training`: these need torch."""
    parser = _Parser(prog="flatrope", description="Plan, drive, measure and train with flatrope_planner.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    demo = _command(commands, "demo", _demo, "drive the embedded simulator over ROS 2, record it, make a report")
    demo.add_argument(
        "--out", type=output_folder, default=Path("out/demo"), metavar="FOLDER", help="default: %(default)s"
    )
    _add_launch_arguments(demo)
    _add_launch_arguments(_command(commands, "up", _up, "run the planner and its diagnostics until interrupted"))
    doctor = _command(commands, "doctor", _doctor, "check installation, middleware, models, inputs; say what to do")
    doctor.add_argument("--planner", metavar="NAME", help="a running planner, which must be there (default: planner)")
    doctor.add_argument("--clean", action="store_true", help="first remove what ended processes left in shared memory")
    report = _command(commands, "report", _report, "make the report of a recorded bag")
    report.add_argument("bag", type=Path, help="folder of a bag, or a single .mcap file")
    report.add_argument("--html", type=Path, metavar="FILE", help="default: report.html beside the bag")
    add_replay_arguments(_command(commands, "replay", _replay, "what the planner would have done on recorded drives"))
    _add_launch_arguments(_command(commands, "play", _play, "play a bag into running nodes, with its time on /clock"))
    bench = commands.add_parser("bench", help="measure", description="Measure.")
    _add_benchmarks(bench.add_subparsers(metavar="WHAT", required=True))
    train = commands.add_parser("train", help="train", description="Train.").add_subparsers(
        metavar="WHAT", required=True
    )
    target = _command(train, "target", _train_target, "make nano from nothing; an interrupted run goes on")
    draft = _command(train, "draft", _train_draft, "train a draft on a target's traces; an interrupted run goes on")
    corpus = _command(train, "corpus", _train_corpus, "gather the texts of a target's traces, for retrieval")
    capture = _command(commands, "capture", _capture, "write down what a target writes and what goes on in it")
    checkpoint = commands.add_parser("checkpoint", help="look at drafts, convert them", description="Drafts on disk.")
    _add_checkpoint_commands(checkpoint.add_subparsers(metavar="WHAT", required=True))
    if training:
        _add_training_arguments(target, draft, corpus, capture)
    return parser


def _add_training_arguments(
    target: argparse.ArgumentParser,
    draft: argparse.ArgumentParser,
    corpus: argparse.ArgumentParser,
    capture: argparse.ArgumentParser,
) -> None:
    """Options whose defaults stand in modules that load PyTorch."""
    from flatrope_planner.training.capture_command import add_capture_arguments
    from flatrope_planner.training.command import add_target_arguments
    from flatrope_planner.training.corpus_command import add_corpus_arguments
    from flatrope_planner.training.draft_command import add_draft_arguments

    add_target_arguments(target)
    add_draft_arguments(draft)
    add_corpus_arguments(corpus)
    add_capture_arguments(capture)


def _command(commands: Any, name: str, run: Any, meaning: str) -> argparse.ArgumentParser:
    description = f"{meaning[0].upper()}{meaning[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    parser.set_defaults(run=run)
    return parser


def _add_launch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show-args", action="store_true", help="list the arguments and their defaults")
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="as for `ros2 launch`")


def _add_benchmarks(commands: Any) -> None:
    driving = _command(commands, "driving", _bench_driving, "closed-loop success by scene family")
    driving.add_argument("--seeds", type=COUNT, default=20, help="scenes of each family (default: %(default)s)")
    driving.add_argument("--families", nargs="+", default=[], metavar="FAMILY", help="default: all")
    drivers = ("nano", "blind", "reference")
    driving.add_argument("--drivers", nargs="+", choices=drivers, default=drivers, help="default: all")
    _add_worker_arguments(driving)
    nano = _command(commands, "nano", _bench_nano, "decisions and trajectories of nano on held-out scenes")
    nano.add_argument("--episodes", type=COUNT, default=10, help="episodes of each family (default: %(default)s)")
    _add_worker_arguments(nano)
    decode = _command(commands, "decode", _bench_decode, "every way to write a rationale side by side")
    decode.add_argument("--target", type=Path, metavar="FOLDER", help="a text model of transformers in place of nano")
    decode.add_argument("--prompts", type=Path, metavar="FILE", help="for --target: one prompt a line")
    decode.add_argument("--tokens", type=COUNT, default=64, help="for --target: most tokens (default: %(default)s)")
    decode.add_argument("--episodes", type=COUNT, default=1, help="drives of each family (default: %(default)s)")
    decode.add_argument("--moments", type=COUNT, default=16, help="most moments of a drive (default: %(default)s)")
    decode.add_argument("--splits", nargs="+", choices=("val", "on_shelf", "off_shelf"), help="default: all")
    decode.add_argument("--precisions", nargs="+", choices=("float32", "bfloat16"), help="default: both")
    decode.add_argument("--draft", nargs="+", default=[], metavar="NAME=FOLDER", help="further trained drafts")
    _add_worker_arguments(decode)
    attention = _command(commands, "attention", _bench_attention, "where drafts look: pictures, history, text")
    attention.add_argument("--moments", type=COUNT, default=8, help="of a drive of each family (default: %(default)s)")
    attention.add_argument("--draft", nargs="+", default=[], metavar="NAME=FOLDER", help="further trained drafts")
    attention.add_argument("--weights", type=Path, metavar="FOLDER", help="nano's; default: those of the package")
    latency = _command(commands, "latency", _bench_latency, "speed of reasoning where a pass costs what it costs")
    latency.add_argument("--prompts", type=COUNT, default=6, help="texts to write (default: %(default)s)")
    retrieval = _command(commands, "retrieval", _bench_retrieval, "how far earlier texts draft recorded rationales")
    retrieval.add_argument("--corpus", type=Path, required=True, metavar="FILE", help="JSON lines, may be gzipped")
    retrieval.add_argument("--jobs", type=JOBS, default=2, help="processes at work (default: %(default)s)")
    replay = _command(commands, "replay", _bench_replay, "how fast bags are read, apart from the model")
    replay.add_argument(
        "--seconds", type=real_number(4.0, 600.0), default=10.0, help="length of the bags (default: %(default)s)"
    )
    fuzz = _command(commands, "fuzz", _bench_fuzz, "broken messages through codec and buffer: what escapes")
    fuzz.add_argument("--messages", type=COUNT, default=100_000, help="default: %(default)s")
    fuzz.add_argument("--seed", type=SEED, default=0, help="default: %(default)s")
    faults = _command(
        commands, "faults", _bench_faults, "the planner node under faults of sensors, clock, model, system"
    )
    faults.add_argument("--only", nargs="+", default=[], metavar="NAME", help="default: all faults")
    faults.add_argument("--list", action="store_true", help="list the faults")
    soak = _command(commands, "soak", _bench_soak, "memory, latency and signs of life of a long drive")
    minutes = real_number(0.2, 10_000.0)
    soak.add_argument("--minutes", type=minutes, default=30.0, help="length of the drive (default: %(default)s)")
    transport = _command(commands, "transport", _bench_transport, "share of large pictures that reach the planner")
    # As long as the parameter it becomes allows.
    seconds = real_number(0.1, 600.0)
    transport.add_argument("--seconds", type=seconds, default=15.0, help="length of the test (default: %(default)s)")


def _add_checkpoint_commands(commands: Any) -> None:
    inspect = _command(commands, "inspect", _checkpoint_inspect, "what a draft's files hold, and whether it fits nano")
    inspect.add_argument("draft", type=Path, metavar="DIR", help="folder of a draft")
    convert = _command(commands, "convert", _checkpoint_convert, "write a draft in another layout")
    convert.add_argument("draft", type=Path, metavar="DIR", help="folder of a draft")
    convert.add_argument("out", type=Path, metavar="OUT", help="empty or new folder")
    layouts = "flatrope, z-lab, speculators or eagle3"
    convert.add_argument("--to", default="flatrope", metavar="LAYOUT", help=f"{layouts} (default: %(default)s)")
    for parser in (inspect, convert):
        parser.add_argument(
            "--tapped-layers", metavar="1,9,17", help="the target's layers the draft reads, where its files do not say"
        )
        parser.add_argument(
            "--weights", type=Path, metavar="FOLDER", help="the target's; default: nano's, of the package"
        )


def _add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=JOBS, default=2, help="processes at work (default: %(default)s)")
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help="default: the ones that ship with the package")


def _demo(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import DEMO_ARGUMENTS
    from flatrope_planner.evaluation.demo import SCENES, describe, run_demo

    if arguments.show_args:
        return _shown_arguments([replace(each, default=SCENES.get(each.name, each.default)) for each in DEMO_ARGUMENTS])
    summary = run_demo(_chosen(arguments.arguments), arguments.out)
    print(describe(summary, arguments.out))
    return summary


def _up(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import PLANNER_ARGUMENTS, planner_processes
    from flatrope_planner.bringup.leftovers import warn_of_leftovers
    from flatrope_planner.bringup.processes import run

    if arguments.show_args:
        return _shown_arguments(PLANNER_ARGUMENTS)
    processes = planner_processes(_chosen(arguments.arguments))
    warn_of_leftovers(print)
    ended = run(processes, {})
    if ended is not None and ended.exit_code != 0:
        raise SetupError(str(ended))
    return {EXIT_CODE: EXIT_OK}


def _doctor(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.doctor.checkup import check_up
    from flatrope_planner.doctor.shared_memory import clean

    if arguments.clean:
        removed = clean()
        print(f"removed from shared memory: {', '.join(removed) or 'nothing, there was nothing left over'}")
    return check_up(arguments.planner)


def _report(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.report.page import write_report

    _prepare_folder_of(arguments.html)
    bag: Path = arguments.bag
    html: Path = arguments.html or (bag if bag.is_dir() else bag.parent) / "report.html"
    summary = write_report(bag, html)
    print(f"report: {html}")
    return summary


def _replay(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.replay.command import describe, run_replay

    cameras = dict(_pairs(arguments.camera, "=", "NAME=TOPIC"))
    summary, failed = run_replay(arguments, cameras)
    if failed == len(summary["bags"]) == 1:
        raise InputError(summary["bags"][0]["error"])
    print(describe(summary, arguments.out))
    if failed:
        msg = f"{failed} of {len(summary['bags'])} bags could not be replayed"
        raise InputError(msg)
    return summary


def _play(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.bringup.description import PLAY_ARGUMENTS, play_processes
    from flatrope_planner.bringup.processes import run

    if arguments.show_args:
        return _shown_arguments(PLAY_ARGUMENTS)
    ended = run(play_processes(_chosen(arguments.arguments)), {})
    if ended is not None and ended.exit_code != 0:
        raise SetupError(str(ended))
    return {"exit_code": 0}


def _bench_driving(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation import driving_benchmark as bench

    options = bench.DrivingOptions(
        seeds=arguments.seeds,
        families=bench.families_named(arguments.families),
        drivers=tuple(arguments.drivers),
        jobs=arguments.jobs,
        weights=arguments.weights,
    )
    result = bench.run_driving_benchmark(options)
    print(bench.table(result))
    return result


def _bench_nano(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.nano_benchmark import run_nano_benchmark, table

    result = run_nano_benchmark(arguments.episodes, arguments.jobs, arguments.weights)
    print(table(result))
    return result


def _bench_decode(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.decode_benchmark import DecodeOptions, run_decode_benchmark, table

    if arguments.target is not None:
        return _bench_text_decode(arguments)
    plain = DecodeOptions()
    options = DecodeOptions(
        splits=tuple(arguments.splits or plain.splits),
        precisions=tuple(arguments.precisions or plain.precisions),
        episodes=arguments.episodes,
        moments=arguments.moments,
        jobs=arguments.jobs,
        weights=arguments.weights,
        drafts=_drafts(arguments.draft),
    )
    result = run_decode_benchmark(options)
    print(table(result))
    return result


def _bench_text_decode(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.decode_scores import headline_table
    from flatrope_planner.evaluation.text_decode_benchmark import TextDecodeOptions, run_text_decode_benchmark

    if arguments.prompts is None:
        msg = "bench decode --target: no prompts, expected --prompts FILE"
        raise InputError(msg)
    drafts = _drafts(arguments.draft)
    options = TextDecodeOptions(arguments.target, arguments.prompts, arguments.tokens, drafts)
    result = run_text_decode_benchmark(options)
    print(headline_table(result["drafters"]))
    return result


def _bench_attention(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.attention_budget import AttentionOptions, run_attention_budget, table

    drafts = _drafts(arguments.draft)
    result = run_attention_budget(AttentionOptions(arguments.moments, arguments.weights, drafts))
    print(table(result))
    return result


def _bench_latency(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.latency_benchmark import LatencyOptions, run_latency_benchmark, table

    result = run_latency_benchmark(LatencyOptions(prompts=arguments.prompts))
    print(table(result))
    return result


def _bench_retrieval(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.retrieval_benchmark import run_retrieval_benchmark, table

    result = run_retrieval_benchmark(arguments.corpus, arguments.jobs)
    print(table(result))
    return result


def _bench_replay(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.replay.benchmark import run_replay_benchmark, table

    result = run_replay_benchmark(arguments.seconds)
    print(table(result))
    return result


def _bench_fuzz(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.fuzz_benchmark import run_fuzz, table

    result = run_fuzz(arguments.messages, arguments.seed)
    print(table(result))
    return result


def _bench_transport(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.transport_benchmark import run_transport_benchmark, table

    result = run_transport_benchmark(arguments.seconds)
    print(table(result))
    return result


def _bench_faults(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.fault_benchmark import listing, run_fault_benchmark, table
    from flatrope_planner.evaluation.faults import faults_named

    faults = faults_named(arguments.only)
    if arguments.list:
        print(listing(faults))
        return {fault.name: fault.meaning for fault in faults}
    result = run_fault_benchmark(faults)
    print(table(result))
    return result


def _bench_soak(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.soak_benchmark import run_soak_benchmark, table

    json_file: Path | None = arguments.json
    picture = json_file.with_suffix(".svg") if json_file is not None else None
    result = run_soak_benchmark(arguments.minutes, picture)
    print(table(result))
    if picture is not None:
        print(f"picture: {picture}")
    return result


def _train_target(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.command import options_of, train_target

    return train_target(options_of(arguments), arguments.stage)


def _train_draft(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.draft_command import command_of, train_draft

    return train_draft(command_of(arguments))


def _train_corpus(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.corpus_command import write_corpus

    return write_corpus(arguments.traces, arguments.out)


def _checkpoint_inspect(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import inspect_draft, layers_named, table

    result = inspect_draft(arguments.draft, layers_named(arguments.tapped_layers), arguments.weights)
    print(table(result))
    return result


def _checkpoint_convert(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.checkpoint_command import convert_draft, layers_named, table

    layers = layers_named(arguments.tapped_layers)
    result = convert_draft(arguments.draft, arguments.out, arguments.to, layers, arguments.weights)
    print(table(result))
    return result


def _capture(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.training.capture_command import CaptureOptions, capture_nano

    return capture_nano(CaptureOptions(arguments.out, arguments.weights, arguments.episodes, arguments.jobs))


def _shown_arguments(known: Sequence[Any]) -> Result:
    for argument in known:
        choices = f" [{' | '.join(argument.choices)}]" if argument.choices else ""
        print(f"{argument.name}:={argument.default}{choices}\n    {argument.meaning}")
    return {argument.name: argument.default for argument in known}


def _chosen(texts: Sequence[str]) -> dict[str, str]:
    """The arguments of a launch, written as name:=value."""
    return _pairs(texts, ":=", "name:=value")


def _drafts(texts: Sequence[str]) -> dict[str, Path]:
    """Folders of drafts by name.

    Raises:
        InputError: for a text of another form, and a name that stands there twice.
    """
    drafts = {name: Path(folder) for name, folder in _pairs(texts, "=", "NAME=FOLDER").items()}
    if len(drafts) < len(texts):
        msg = f"--draft {' '.join(texts)}: a name stands there twice, expected one name for each draft"
        raise InputError(msg)
    return drafts


def _pairs(texts: Sequence[str], sign: str, form: str) -> dict[str, str]:
    """Names and values with a sign between them.

    Raises:
        InputError: for a text that is not of this form.
    """
    pairs = [text.partition(sign) for text in texts]
    for (name, found, _), text in zip(pairs, texts, strict=True):
        if not name or not found:
            msg = f"{text!r} is no argument of the form {form}"
            raise InputError(msg)
    return {name: value for name, _, value in pairs}


def _prepare_folder_of(file: Path | None) -> None:
    """Make the folder a result goes into before the work, not after it.

    Raises:
        InputError: if the file cannot be written.
    """
    if file is None:
        return
    try:
        file.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        msg = f"{file} cannot be written: {err.strerror}"
        raise InputError(msg) from err
    if file.is_dir():
        msg = f"{file} cannot be written: it is a folder"
        raise InputError(msg)


def _complain(problem: object, status: int) -> int:
    print(f"flatrope: {problem}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
