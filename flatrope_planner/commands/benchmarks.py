"""`flatrope bench ...`: measure."""

import argparse
from pathlib import Path
from typing import Any

from flatrope_planner.arguments import COUNT, JOBS, SEED, real_number
from flatrope_planner.commands.command import Result, add_command
from flatrope_planner.commands.pairs import drafts_named
from flatrope_planner.errors import InputError


def add_benchmarks(commands: Any) -> None:
    """Add all of `bench`."""
    driving = add_command(commands, "driving", _bench_driving, "closed-loop success by scene family")
    driving.add_argument("--seeds", type=COUNT, default=20, help="scenes of each family (default: %(default)s)")
    driving.add_argument("--families", nargs="+", default=[], metavar="FAMILY", help="default: all")
    drivers = ("nano", "blind", "reference")
    driving.add_argument("--drivers", nargs="+", choices=drivers, default=drivers, help="default: all")
    _add_worker_arguments(driving)
    nano = add_command(commands, "nano", _bench_nano, "decisions and trajectories of nano on held-out scenes")
    nano.add_argument("--episodes", type=COUNT, default=10, help="episodes of each family (default: %(default)s)")
    _add_worker_arguments(nano)
    decode = add_command(commands, "decode", _bench_decode, "every way to write a rationale side by side")
    decode.add_argument("--target", type=Path, metavar="FOLDER", help="a text model of transformers in place of nano")
    decode.add_argument("--prompts", type=Path, metavar="FILE", help="for --target: one prompt a line")
    decode.add_argument("--tokens", type=COUNT, default=64, help="for --target: most tokens (default: %(default)s)")
    decode.add_argument("--episodes", type=COUNT, default=1, help="drives of each family (default: %(default)s)")
    decode.add_argument("--moments", type=COUNT, default=16, help="most moments of a drive (default: %(default)s)")
    decode.add_argument("--splits", nargs="+", choices=("val", "on_shelf", "off_shelf"), help="default: all")
    decode.add_argument("--precisions", nargs="+", choices=("float32", "bfloat16"), help="default: both")
    decode.add_argument("--draft", nargs="+", default=[], metavar="NAME=FOLDER", help="further trained drafts")
    _add_worker_arguments(decode)
    attention = add_command(commands, "attention", _bench_attention, "where drafts look: pictures, history, text")
    attention.add_argument("--moments", type=COUNT, default=8, help="of a drive of each family (default: %(default)s)")
    attention.add_argument("--draft", nargs="+", default=[], metavar="NAME=FOLDER", help="further trained drafts")
    attention.add_argument("--weights", type=Path, metavar="FOLDER", help="nano's; default: those of the package")
    latency = add_command(commands, "latency", _bench_latency, "speed of reasoning where a pass costs what it costs")
    latency.add_argument("--prompts", type=COUNT, default=6, help="texts to write (default: %(default)s)")
    retrieval = add_command(commands, "retrieval", _bench_retrieval, "how far earlier texts draft recorded rationales")
    retrieval.add_argument("--corpus", type=Path, required=True, metavar="FILE", help="JSON lines, may be gzipped")
    retrieval.add_argument("--jobs", type=JOBS, default=2, help="processes at work (default: %(default)s)")
    replay = add_command(commands, "replay", _bench_replay, "how fast bags are read, apart from the model")
    replay.add_argument(
        "--seconds", type=real_number(4.0, 600.0), default=10.0, help="length of the bags (default: %(default)s)"
    )
    fuzz = add_command(commands, "fuzz", _bench_fuzz, "broken messages through codec and buffer: what escapes")
    fuzz.add_argument("--messages", type=COUNT, default=100_000, help="default: %(default)s")
    fuzz.add_argument("--seed", type=SEED, default=0, help="default: %(default)s")
    faults = add_command(
        commands, "faults", _bench_faults, "the planner node under faults of sensors, clock, model, system"
    )
    faults.add_argument("--only", nargs="+", default=[], metavar="NAME", help="default: all faults")
    faults.add_argument("--list", action="store_true", help="list the faults")
    soak = add_command(commands, "soak", _bench_soak, "memory, latency and signs of life of a long drive")
    minutes = real_number(0.2, 10_000.0)
    soak.add_argument("--minutes", type=minutes, default=30.0, help="length of the drive (default: %(default)s)")
    transport = add_command(commands, "transport", _bench_transport, "share of large pictures that reach the planner")
    # As long as the parameter it becomes allows.
    seconds = real_number(0.1, 600.0)
    transport.add_argument("--seconds", type=seconds, default=15.0, help="length of the test (default: %(default)s)")


def _add_worker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=JOBS, default=2, help="processes at work (default: %(default)s)")
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help="nano's; default: those of the package")


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
        drafts=drafts_named(arguments.draft),
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
    drafts = drafts_named(arguments.draft)
    options = TextDecodeOptions(arguments.target, arguments.prompts, arguments.tokens, drafts)
    result = run_text_decode_benchmark(options)
    print(headline_table(result["drafters"]))
    return result


def _bench_attention(arguments: argparse.Namespace) -> Result:
    from flatrope_planner.evaluation.attention_budget import AttentionOptions, run_attention_budget, table

    drafts = drafts_named(arguments.draft)
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
