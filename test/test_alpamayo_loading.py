"""What is said of a checkpoint that cannot be run: one line that names the file and what was expected of it."""

import json
import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_alpamayo import CASES, observation, write_checkpoint
from tokenizers import Tokenizer

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.planner_node import load_planner as load_for_node
from flatrope_planner.vla.alpamayo.cameras import USUAL
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.alpamayo.vocabulary import marks_of
from flatrope_planner.vla.arithmetic import slow_arithmetic
from flatrope_planner.vla.checkpoint import weights as checkpoint_weights
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.memory_limits import left_in_container, left_in_process
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import find_target, load_target

WEIGHTS = "model-00001-of-00002.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("whole"), shards=2).parent


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy")) / "checkpoint"


def edit(path: Path, **changes: object) -> None:
    """Change fields of a JSON file, "a__b" for the field b of a; None takes a field out."""
    content: dict[str, Any] = json.loads(path.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        at = content
        for part in outer:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value
    path.write_text(json.dumps(content))


def reweigh(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


CONFIG_FAULTS: list[tuple[dict[str, object], str]] = [
    ({"model_type": "llama"}, r"model_type is 'llama', expected alpamayo_r1 or alpamayo1_5"),
    ({"vlm_backend": "internvl"}, r"vlm_backend is 'internvl', expected 'qwenvl3'"),
    ({"vlm_name_or_path": "nvidia/nowhere"}, r"vlm_name_or_path is 'nvidia/nowhere'; expected its config\.json in"),
    ({"vlm_name_or_path": "."}, r"vlm_name_or_path is '\.'; expected its config\.json in"),
    ({"vlm_name_or_path": "a" * 5000}, r"vlm_name_or_path is 'a+ \.\.\., expected a string of at most"),
    ({"diffusion_cfg___target_": "a.b.DDPM"}, r"diffusion_cfg\._target_ is 'a\.b\.DDPM', expected a path that ends in"),
    ({"diffusion_cfg": None}, r"diffusion_cfg is missing, expected an object"),
    ({"action_space_cfg__n_waypoints": 0}, r"action_space_cfg\.n_waypoints is 0, expected a whole number from 1"),
    ({"action_space_cfg__dt": 0.2}, r"action_space_cfg\.dt is 0\.2, expected 0\.1"),
    ({"action_space_cfg__v_ridge": 0}, r"action_space_cfg\.v_ridge is 0, expected a number above zero, without which"),
    ({"action_space_cfg__a_lambda": -1.0}, r"action_space_cfg\.a_lambda is -1\.0, expected a number not below zero"),
    ({"action_space_cfg__accel_std": "wide"}, r"action_space_cfg\.accel_std is 'wide', expected a number"),
    ({"hist_traj_tokenizer_cfg__predict_yaw": True}, r"predict_yaw is True, expected False"),
    ({"expert_cfg__head_dim": 8}, r"expert_cfg\.head_dim is 8, expected 16"),
    ({"expert_cfg__num_attention_heads": 3}, r"num_attention_heads is 3, expected a multiple of 2 key-value heads"),
    ({"expert_cfg__num_hidden_layers": 5}, r"expert_cfg\.num_hidden_layers is 5, expected a whole number from 1 to 4"),
    (
        {"expert_cfg__hidden_size": "wide"},
        r"config\.json: expert_cfg is none of a text model of Qwen3-VL \(.*hidden_size",
    ),
    ({"expert_cfg__rope_scaling": "x"}, r"expert_cfg\.rope_scaling is 'x', expected an object"),
    (
        {"action_in_proj_cfg__num_enc_layers": 10**9},
        r"num_enc_layers is 1000000000, expected a whole number from 1 to 1024",
    ),
    ({"action_in_proj_cfg__max_freq": 0}, r"action_in_proj_cfg\.max_freq is 0, expected a number above zero"),
    ({"traj_tokenizer_cfg__num_bins": None}, r"traj_tokenizer_cfg\.num_bins is missing, expected a whole number"),
    ({"min_pixels": None}, r"max_pixels is 16384, expected at least min_pixels, 163840"),
    ({"traj_vocab_size": 3500}, r"traj_vocab_size is 3500, expected at least 4000"),
    ({"vocab_size": 4711}, r"tokenizer\.json: \d+ tokens, expected 4711 \(vocab_size of .*config\.json\)"),
    ({"traj_token_start_idx": 7}, r"tokenizer\.json: token <i0> has the id \d+, expected 7"),
    ({"traj_token_ids__history": 9}, r"token <\|traj_history\|> has the id \d+, expected 9"),
    ({"action_space_cfg__accel_std": 0}, "accel_std is 0, expected a number above zero"),
    ({"action_space_cfg__curvature_std": -0.026}, "curvature_std is -0.026, expected a number above zero"),
    ({"model_dtype": "int8"}, r"model_dtype is 'int8', expected float32, bfloat16; or ask for one"),
]


@pytest.mark.parametrize(("changes", "complaint"), CONFIG_FAULTS, ids=lambda value: str(value)[:40])
def test_a_configuration_that_cannot_be_run(folder: Path, changes: dict[str, object], complaint: str) -> None:
    edit(folder / "config.json", **changes)
    with pytest.raises(SetupError, match=complaint) as caught:
        AlpamayoTarget.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


BACKBONE_FAULTS: list[tuple[dict[str, object], str]] = [
    (
        {"text_config__num_hidden_layers": 10**9},
        "num_hidden_layers is 1000000000, expected a whole number from 1 to 1024",
    ),
    ({"text_config__num_key_value_heads": 3}, "expected that num_key_value_heads divides num_attention_heads"),
    ({"text_config__rope_scaling__mrope_section": 8}, "expected that mrope_section is three numbers"),
    ({"text_config__rope_theta": 0}, "expected that rope_theta is a number above 1"),
    ({"text_config": []}, r"text_config is \[\], expected an object"),
    ({"vision_config__out_hidden_size": 32}, "expected that out_hidden_size is the text's hidden_size"),
    ({"vision_config__deepstack_visual_indexes": [0, 2]}, "expected that deepstack_visual_indexes are some below 2"),
    (
        {"vision_config__hidden_act": "squash"},
        r"checkpoint/config\.json: no network can be made of it and its backbone's",
    ),
]


@pytest.mark.parametrize(("changes", "complaint"), BACKBONE_FAULTS, ids=lambda value: str(value)[:40])
def test_a_backbone_that_cannot_be_run(folder: Path, changes: dict[str, object], complaint: str) -> None:
    edit(folder.parent / "backbone" / "config.json", **changes)
    with pytest.raises(SetupError, match=complaint) as caught:
        AlpamayoTarget.load(folder)
    assert "config.json: " in str(caught.value)
    assert "\n" not in str(caught.value)


def complaint_of(folder: Path, running: Running | None = None) -> str:
    with pytest.raises(SetupError) as caught:
        AlpamayoTarget.load(folder, running=running)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["config.json", WEIGHTS, "model.safetensors.index.json", "../backbone/config.json", "../backbone/tokenizer.json"],
)
def test_a_link_to_where_reading_never_ends_is_not_followed(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(SetupError, match=r"/dev/zero|not a file|missing|expected its config\.json in") as caught:
        load_planner(str(folder))
    assert Path(name).name in str(caught.value)


def test_files_larger_than_any_of_their_kind(folder: Path) -> None:
    for path in (folder.parent / "backbone" / "tokenizer.json", folder / "config.json"):
        # Without taking place on the disk.
        os.truncate(path, 2**30)
        with pytest.raises(SetupError, match=r"1073741824 bytes, a tokenizer has at most|more than 1000000 bytes"):
            load_planner(str(folder))


def test_files_that_are_missing_or_damaged(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "kept")
    assert f"{folder / WEIGHTS}: missing, expected as one of the 2 files" in complaint_of(folder)
    (folder / WEIGHTS).write_bytes(b"\x10\0\0\0\0\0\0\0 no safetensors ")
    assert f"{folder / WEIGHTS}: expected the weights of the checkpoint (" in complaint_of(folder)
    (folder / "model.safetensors.index.json").write_text("[]")
    assert "model.safetensors.index.json: holds a list, expected an object" in complaint_of(folder)
    (folder / "model.safetensors.index.json").unlink()
    assert f"{folder / 'model.safetensors'}: missing, expected the weights of the checkpoint" in complaint_of(folder)
    (folder / "pytorch_model.bin").touch()
    assert "index.json names; pytorch_model.bin is a pickle, which is not opened" in complaint_of(folder)
    (folder.parent / "backbone" / "tokenizer.json").write_text("{}")
    assert "tokenizer.json: damaged" in complaint_of(folder)
    (folder.parent / "backbone" / "tokenizer.json").unlink()
    assert "tokenizer.json: missing; expected the tokenizer of the checkpoint" in complaint_of(folder)
    shutil.rmtree(folder.parent / "backbone")
    assert "vlm_name_or_path is '../backbone'; expected its config.json in" in complaint_of(folder)
    (folder / "config.json").write_text("{")
    assert "config.json: expected a JSON file of the checkpoint" in complaint_of(folder)


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|vision_start|>", "<|image_pad|>"])
def test_a_tokenizer_of_another_model(folder: Path, mark: str) -> None:
    path = folder.parent / "backbone" / "tokenizer.json"
    path.write_text(path.read_text().replace(mark, "<|other|>"))
    # Else the mark would be spelt out in letters.
    assert f"tokenizer.json: no token {mark}, expected the tokenizer of a Qwen3-VL" in complaint_of(folder)


@pytest.mark.parametrize("name", ["config.json", WEIGHTS, "../backbone/tokenizer.json"])
def test_what_git_left_in_place_of_a_large_file(folder: Path, name: str) -> None:
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 16000000\n")
    with pytest.raises(SetupError, match=r"a pointer of Git LFS, expected the file itself: `git lfs pull`") as caught:
        load_planner(str(folder))
    assert Path(name).name in str(caught.value)


@pytest.mark.parametrize("device", ["gpu", "meta", "mps", "cuda:-1", "cuda:99", ""])
def test_a_device_that_is_none(folder: Path, device: str) -> None:
    with pytest.raises(InputError, match=f"^device is '{device}', ") as caught:
        AlpamayoTarget.load(folder, running=Running(device=device))
    assert "\n" not in str(caught.value)


def test_weights_that_do_not_fit(folder: Path) -> None:
    name = "action_in_proj.norm.weight"
    index = folder / "model.safetensors.index.json"
    reweigh(folder / WEIGHTS, lambda weights: weights.update({name: torch.zeros(7)}))
    assert f"{WEIGHTS}: {name} is [7], expected [48]" in complaint_of(folder)
    reweigh(folder / WEIGHTS, lambda weights: weights.update({name: torch.full((48,), torch.nan)}))
    assert f"{WEIGHTS}: {name} has values that are no numbers, expected finite ones" in complaint_of(folder)
    reweigh(folder / WEIGHTS, lambda weights: weights.update({name: torch.zeros(48, dtype=torch.uint8)}))
    assert f"{WEIGHTS}: {name} is of type U8, expected one of F32, BF16, F16, F64" in complaint_of(folder)
    reweigh(folder / WEIGHTS, lambda weights: weights.__delitem__(name))
    assert f"{WEIGHTS}: {name} is missing, expected as model.safetensors.index.json says" in complaint_of(folder)
    content = json.loads(index.read_text())
    del content["weight_map"][name]
    index.write_text(json.dumps(content))
    assert f"{folder}: {name} is missing (1 in all), expected by config.json" in complaint_of(folder)
    content["weight_map"]["vlm.visual.extra"] = WEIGHTS
    index.write_text(json.dumps(content))
    reweigh(folder / WEIGHTS, lambda weights: weights.update({"vlm.visual.extra": torch.zeros(1)}))
    assert "vlm.visual.extra is no weight of the model that config.json describes" in complaint_of(folder)


def test_pictures_prepared_in_another_way(folder: Path) -> None:
    edit(folder.parent / "backbone" / "preprocessor_config.json", image_mean=[0.48, 0.45, 0.4])
    assert "preprocessor_config.json: image_mean is [0.48, 0.45, 0.4], expected [0.5, 0.5, 0.5]" in complaint_of(folder)
    edit(folder.parent / "backbone" / "preprocessor_config.json", image_mean=[0.5] * 3, rescale_factor=1 / 255)
    AlpamayoTarget.load(folder)
    edit(folder.parent / "backbone" / "preprocessor_config.json", do_resize=False)
    assert "preprocessor_config.json: do_resize is False, expected True" in complaint_of(folder)


def test_too_little_memory_is_said_before_anything_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_weights, "free_memory", lambda _: 1_000_000)
    said = complaint_of(folder, Running(device="cpu"))
    assert re.search(r"weights of \d MB, expected no more than the 1 MB free on cpu", said)


@pytest.mark.parametrize(
    ("kind", "words"), [(MemoryError, "it takes more memory than there is"), (RuntimeError, "RuntimeError")]
)
def test_memory_that_ends_while_weights_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], words: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise kind

    monkeypatch.setattr(checkpoint_weights, "safe_open", refuse)
    assert f"{WEIGHTS}: expected memory for its weights on cpu ({words})" in complaint_of(folder, Running(device="cpu"))


def test_a_limit_of_addresses_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert left_in_process() is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**60, resource.RLIM_INFINITY))
    left = left_in_process()
    assert left is not None
    assert 2**59 < left < 2**60
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    assert left_in_process() == 0


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, None),
        ({"memory.max": "max\n", "memory.current": "5\n"}, None),
        ({"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ({"memory.max": "1000\n", "memory.current": "1200\n"}, 0),
        ({"memory/memory.limit_in_bytes": "70\n", "memory/memory.usage_in_bytes": "20\n"}, 50),
    ],
)
def test_a_containers_limit_counts(tmp_path: Path, files: dict[str, str], left: int | None) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert left_in_container(tmp_path) == left


def test_a_checkpoint_with_its_own_tokenizer(folder: Path) -> None:
    loaded = AlpamayoTarget.load(folder)
    added = Tokenizer.from_file(str(folder.parent / "backbone" / "tokenizer.json"))
    added.add_tokens([f"<i{number}>" for number in range(4000)])
    added.add_special_tokens(marks_of(Release.R1))
    added.save(str(folder / "tokenizer.json"))
    again = AlpamayoTarget.load(folder)
    prompts = [each.prepare(observation(CASES["standing"])).token_ids for each in (loaded, again)]
    assert prompts[0] == prompts[1]
    # The backbone's, copied into the checkpoint.
    shutil.copy(folder.parent / "backbone" / "tokenizer.json", folder / "tokenizer.json")
    assert AlpamayoTarget.load(folder).prepare(observation(CASES["standing"])).token_ids == prompts[0]


def test_targets_are_found_by_name(whole: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_target("nano") is None
    assert find_target(str(folder)) == folder
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_target("~/checkpoint/") == folder
    with pytest.raises(
        InputError, match=r"no target 'nvidia/Alpamayo-R9': .* `hf download nvidia/Alpamayo-R9` fetches it$"
    ):
        find_target("nvidia/Alpamayo-R9")
    for name in ("", "./R9", "/models/R9", "~nobody/R9", "~no_such_user/R9", "a b"):
        with pytest.raises(InputError, match=r"no such folder and nothing in the cache; expected nano, or .* cache$"):
            find_target(name)
    with pytest.raises(InputError, match=r"config.json'?: a file; expected nano, or a checkpoint"):
        find_target(str(folder / "config.json"))
    target = load_target(whole / "checkpoint", (1,))
    assert isinstance(target, AlpamayoTarget)
    assert target.observation_spec.cameras == USUAL
    assert target.sizes.layers == 4
    assert target.draft_layers == (1, 2, 3)
    with pytest.raises(InputError, match="there is no target 'mmm"):
        find_target("m" * 5000)
    with pytest.raises(
        SetupError, match=r"config\.json: no model_type can be read there \(.*No such file.*\), expected"
    ):
        load_planner(str(folder.parent))
    edit(folder / "config.json", model_type=7)
    with pytest.raises(
        SetupError, match=r"config\.json: no model_type can be read there, expected flatrope_nano, alpa"
    ):
        load_planner(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(SetupError, match=r"config\.json: no model_type can be read there \(Expecting"):
        load_planner(str(folder))


def test_a_planner_plans_with_a_checkpoint(whole: Path) -> None:
    cameras = ("front_tele", "camera_front_wide_120fov")
    planner = load_planner(str(whole / "checkpoint"), running=Running(cameras, device="cpu"))
    assert planner.observation_spec.cameras == ("camera_front_wide_120fov", "front_tele")
    assert planner.observation_spec.frames_per_camera == 4
    # There is no draft beside it.
    assert "earlier texts draft alone" in planner.health.problem
    plan = planner.plan(observation(CASES["standing"]))
    assert plan.rationale.complete
    assert plan.rationale.text
    assert plan.trajectory.position_m.shape == (64, 3)


@pytest.mark.parametrize(
    ("cameras", "complaint"),
    [
        (
            ("front", "front_tele"),
            "cameras: Alpamayo knows no 'front', expected some of cross_left",
        ),
        (("front_wide", "front_wide_120"), "cameras: front_wide and front_wide_120 are the same one"),
    ],
)
def test_cameras_that_alpamayo_does_not_know(whole: Path, cameras: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        AlpamayoTarget.load(whole / "checkpoint", running=Running(cameras))


def test_observations_that_are_not_as_asked_for(whole: Path) -> None:
    target = AlpamayoTarget.load(whole / "checkpoint", running=Running(("front_wide", "front_tele"), device="cpu"))
    seen = observation(CASES["standing"])
    wide, tele = seen.frames["front_wide"], seen.frames["front_tele"]
    faults: list[tuple[dict[str, tuple[CameraFrame, ...]], str]] = [
        ({"front_wide": wide, "front_tele": tele[:2]}, "expected equally many of some of front_wide, front_tele"),
        ({"cross_left": wide}, "expected equally many of some of front_wide, front_tele"),
        ({"windscreen": wide}, "cameras: Alpamayo knows no 'windscreen'"),
        ({"front_wide": wide[::-1]}, "expected the oldest first"),
        ({}, "cameras: none, expected at least one"),
    ]
    for frames, complaint in faults:
        with pytest.raises(InputError, match=complaint):
            target.prepare(Observation(0, frames, seen.ego_history))
    swapped = Observation(0, {"front_tele": tele, "front_wide": wide}, seen.ego_history)
    assert torch.equal(target.prepare(swapped).features.tokens, target.prepare(seen).features.tokens)


def test_the_planner_node_loads_it_by_its_parameters(whole: Path) -> None:
    values: dict[str, Any] = {**default_parameters("planner.param.yaml"), "target": str(whole / "checkpoint")}
    core = load_for_node(PlannerParameters(**{**values, "cameras": ("front_tele", "front_wide")}))
    assert core.observation_spec.cameras == ("front_wide", "front_tele")
    assert core.observation_spec.frame_period_s == 0.1


def test_that_a_plan_takes_longer_than_it_may_is_told_when_it_is_loaded(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values: dict[str, Any] = {**default_parameters("planner.param.yaml"), "target": str(whole / "checkpoint")}
    values |= {"cameras": ("front_tele", "front_wide")}
    told: list[str] = []
    load_for_node(PlannerParameters(**{**values, "deadline_s": 0.0, "max_plan_age_s": 0.0}), told.append)
    assert told == []
    load_for_node(PlannerParameters(**{**values, "deadline_s": 0.0001}), told.append)
    (words,) = told
    assert words.startswith(f"{whole / 'checkpoint'}: a plan takes about ")
    assert "s and deadline_s is 0.0001, max_plan_age_s 1.2: plans will be late" in words
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    unbounded = {**values, "deadline_s": 0.0, "max_plan_age_s": 0.0}
    load_for_node(PlannerParameters(**{**unbounded, "device": "cpu", "precision": "bfloat16"}), told.append)
    assert told[1:] == [f"{whole / 'checkpoint'}: {slow_arithmetic(torch.device('cpu'), torch.bfloat16)}"]


def test_devices_that_are_not_there() -> None:
    with pytest.raises(InputError, match=r"device is 'gpu', expected auto, cpu or cuda"):
        Running(device="gpu").place()
    with pytest.raises(InputError, match=r"device is 'cuda:99', but PyTorch sees \d+ GPUs"):
        Running(device="cuda:99").place()


def test_a_tokenizer_that_is_not_grown_out_of_the_backbones_is_refused(folder: Path) -> None:
    base = folder.parent / "backbone" / "tokenizer.json"
    content = json.loads(base.read_text())
    words = content["model"]["vocab"]
    one, other = list(words)[300:302]
    swapped = {**words, one: words[other], other: words[one]}
    own = folder / "tokenizer.json"
    own.write_text(json.dumps({**content, "model": {**content["model"], "vocab": swapped}}))
    complaint = complaint_of(folder)
    assert f"{own}: token " in complaint
    assert complaint.endswith("backbone/tokenizer.json")
    own.write_text(json.dumps({**content, "model": {**content["model"], "merges": content["model"]["merges"][::-1]}}))
    assert f"{own}: words are put together in another way than in " in complaint_of(folder)


def test_the_later_release_is_not_taken_for_the_first(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, Release.V1_5, changes={"model_type": "alpamayo_r1"})
    assert "model_type is 'alpamayo_r1', expected alpamayo1_5, of whose package its classes are" in complaint_of(
        checkpoint
    )
