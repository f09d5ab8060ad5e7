"""What is said of an AutoVLA that cannot be run: one line that names the file and what was expected of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from tiny_autovla import CASES, observation, outlines, tokenizer, write_checkpoint

from flatrope_planner.bringup.configuration import default_parameters
from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.planner_node import load_planner as load_for_node
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.autovla import target as autovla_target
from flatrope_planner.vla.autovla.cameras import CAMERAS, in_order
from flatrope_planner.vla.autovla.target import AutoVlaTarget
from flatrope_planner.vla.autovla.weights import to_model
from flatrope_planner.vla.checkpoint import weights as checkpoint_weights
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import find_target, load_target

FIRST = "model-00001-of-00002.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("whole"), shards=2)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def edit(path: Path, **changes: object) -> None:
    """Change fields of a JSON file, "a__b" for the field b of a."""
    content: dict[str, Any] = json.loads(path.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        at = content
        for part in outer:
            at = at[part]
        at[last] = value
    path.write_text(json.dumps(content))


def complaint_of(folder: Path, running: Running | None = None) -> str:
    with pytest.raises(SetupError) as caught:
        load_target(folder, running=running)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    return str(caught.value)


CONFIG_FAULTS: list[tuple[dict[str, object], str]] = [
    ({"vision_config": None}, "config.json: vision_config is None, expected an object"),
    ({"vision_config__patch_size": 16}, "vision_config.patch_size is 16, expected 14"),
    ({"vision_config__temporal_patch_size": 1}, "vision_config.temporal_patch_size is 1, expected 2"),
    ({"use_sliding_window": True}, "use_sliding_window is True, expected False"),
    (
        {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 4]}},
        "mrope_section is three numbers that add up",
    ),
    ({"rope_scaling__type": "yarn"}, "no configuration of a Qwen2.5-VL ("),
    ({"rope_theta": "far"}, "no configuration of a Qwen2.5-VL ("),
    ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000, expected a whole number from 1 to 1024"),
    ({"num_key_value_heads": 3}, "expected that num_key_value_heads divides num_attention_heads"),
    ({"vision_config__window_size": 30}, "expected that window_size is a multiple of 28"),
    ({"vision_config__num_heads": 3}, "expected that 4 num_heads divide the hidden_size of vision_config"),
    ({"vision_config__out_hidden_size": 32}, "expected that out_hidden_size is hidden_size"),
    ({"num_attention_heads": "four"}, "config.json: no configuration of a Qwen2.5-VL ("),
    ({"torch_dtype": "int8"}, "dtype is 'int8', expected float32, bfloat16"),
    ({"autovla": 3}, "config.json: autovla is 3, expected an object"),
    ({"autovla__use_cot": "yes"}, "autovla.use_cot is 'yes', expected true or false"),
    ({"autovla__min_pixels": 99999}, "autovla.max_pixels is 9408, expected at least min_pixels, 99999"),
    ({"autovla__use_cott": True}, "autovla.use_cott is no setting, expected some of use_cot, min_pixels"),
    ({"vision_config__fullatt_block_indexes": [2]}, "expected that fullatt_block_indexes are some below 2"),
    ({"vocab_size": 500}, "config.json: vocab_size is 500, expected at least 604, the tokens of tokenizer.json"),
    ({"intermediate_size": 97}, "expected [64, 97] by config.json"),
]


@pytest.mark.parametrize(("changes", "complaint"), CONFIG_FAULTS, ids=lambda value: str(value)[:40])
def test_a_configuration_that_cannot_be_run(folder: Path, changes: dict[str, object], complaint: str) -> None:
    edit(folder / "config.json", **changes)
    assert complaint in complaint_of(folder)


def test_files_that_are_missing_or_damaged(folder: Path) -> None:
    (folder / FIRST).rename(folder / "kept")
    assert f"{folder / FIRST}: missing, expected as one of the 2 files" in complaint_of(folder)
    (folder / FIRST).write_bytes(b"\x10\0\0\0\0\0\0\0 no safetensors ")
    assert f"{folder / FIRST}: expected the weights of the checkpoint (" in complaint_of(folder)
    (folder / "model.safetensors.index.json").unlink()
    assert f"{folder / 'model.safetensors'}: missing, expected the weights of the checkpoint" in complaint_of(folder)
    (folder / "tokenizer.json").write_text("{}")
    assert "tokenizer.json: damaged" in complaint_of(folder)
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json: missing; expected the tokenizer of the checkpoint" in complaint_of(folder)
    edit(folder / "preprocessor_config.json", image_mean=[0.5, 0.5, 0.5])
    assert "preprocessor_config.json: image_mean is [0.5, 0.5, 0.5], expected [0.48" in complaint_of(folder)


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer.json", "codebook.safetensors", "preprocessor_config.json", FIRST],
)
def test_links_lead_nowhere_else(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    assert f"{folder / name}: a link to /dev/zero, out of its folder" in complaint_of(folder)


CODEBOOK_FAULTS: list[tuple[Callable[[Path], object], str]] = [
    (Path.unlink, "missing; expected the codebook of AutoVLA's actions, which `flatrope checkpoint codebook` makes"),
    (lambda path: path.write_bytes(b"no codebook"), "no weights of a codebook ("),
    (lambda path: save_arrays({"ped": outlines()}, path), "veh is nothing, expected F32 [actions, steps, 4, 2]"),
    (lambda path: save_arrays({"veh": outlines()[:, 0]}, path), "veh is F32 [96, 4, 2], expected F32 [actions,"),
    (lambda path: save_arrays({"veh": outlines().astype(np.float64)}, path), "veh is F64 [96, 6, 4, 2], expected F32"),
    (lambda path: save_arrays({"veh": outlines() * np.float32(np.inf)}, path), "veh holds a number that is not finite"),
]


@pytest.mark.parametrize(("damage", "complaint"), CODEBOOK_FAULTS)
def test_a_codebook_that_is_none(folder: Path, damage: Callable[[Path], object], complaint: str) -> None:
    damage(folder / "codebook.safetensors")
    found = complaint_of(folder)
    assert found.startswith(f"{folder / 'codebook.safetensors'}: ")
    assert complaint in found


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        (95, "tokenizer.json: more than 95 action tokens, expected 95, the actions of codebook.safetensors"),
        (97, "tokenizer.json: 96 action tokens, expected 97, the actions of codebook.safetensors"),
    ],
)
def test_a_codebook_of_another_size(folder: Path, actions: int, complaint: str) -> None:
    save_arrays({"veh": outlines(actions)}, folder / "codebook.safetensors")
    assert complaint in complaint_of(folder)


def test_a_tokenizer_without_actions_gets_them(folder: Path) -> None:
    prompts = []
    for _ in range(2):
        target = AutoVlaTarget.load(folder)
        prompts.append(target.prepare(observation(CASES["standing"])).token_ids)
        tokenizer(0).save(str(folder / "tokenizer.json"))
    assert prompts[0] == prompts[1]
    # More actions than rows of the network.
    save_arrays({"veh": outlines(200)}, folder / "codebook.safetensors")
    assert "vocab_size is 604, expected at least 708, the tokens of tokenizer.json" in complaint_of(folder)


def test_tokenizers_of_something_else(folder: Path) -> None:
    made = tokenizer()
    made.add_tokens(["<extra>"])
    made.save(str(folder / "tokenizer.json"))
    edit(folder / "config.json", vocab_size=700)
    assert "token <action_0> has the id 508, expected 509: actions come last" in complaint_of(folder)
    text = (folder / "tokenizer.json").read_text().replace("<|video_pad|>", "<|other|>")
    (folder / "tokenizer.json").write_text(text)
    assert "tokenizer.json: no token <|video_pad|>, expected the tokenizer of a Qwen2.5-VL" in complaint_of(folder)


def test_weights_that_do_not_fit(folder: Path) -> None:
    weights = load_file(folder / FIRST)
    name = min(weights)
    kept = weights.pop(name)
    save_file(weights, folder / FIRST)
    assert f"{FIRST}: {name} is missing, expected as model.safetensors.index.json says" in complaint_of(folder)
    save_file({**weights, name: kept[..., :-1].contiguous()}, folder / FIRST)
    assert f"{FIRST}: {name} is {[*kept.shape[:-1], kept.shape[-1] - 1]}, expected" in complaint_of(folder)


def test_an_untied_head_must_be_there(folder: Path) -> None:
    edit(folder / "config.json", tie_word_embeddings=False)
    assert "lm_head.weight is missing (1 in all), expected by config.json" in complaint_of(folder)


def test_names_of_either_age_are_understood(whole: Path, tmp_path: Path) -> None:
    stored = {name: weight for file in whole.glob("model-*.safetensors") for name, weight in load_file(file).items()}
    renewed = shutil.copytree(whole, tmp_path / "renewed", ignore=shutil.ignore_patterns("model*"))
    save_file({to_model(name): weight for name, weight in stored.items()}, renewed / "model.safetensors")
    one, other = load_target(whole), load_target(renewed)
    assert one.fingerprint == other.fingerprint
    assert one.parts.head.get_parameter("weight") is one.parts.embeddings.weight


def test_too_little_memory_is_said_before_anything_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_weights, "free_memory", lambda _: 10_000)
    complaint = complaint_of(folder, Running(device="cpu"))
    assert " MB, expected no more than the 0 MB free on cpu" in complaint


def test_rows_without_a_token_are_never_written(folder: Path) -> None:
    weights = load_file(folder / "model-00001-of-00002.safetensors")
    rows = weights["model.embed_tokens.weight"]
    weights["model.embed_tokens.weight"] = torch.cat([rows, 100.0 * rows[:4]])
    save_file(weights, folder / "model-00001-of-00002.safetensors")
    edit(folder / "config.json", vocab_size=len(rows) + 4)
    target = load_target(folder)
    unused = list(range(len(rows), len(rows) + 4))
    assert target.forbidden.nonzero().flatten().tolist() == unused
    target.token_budget = 12
    prompt = target.prepare(observation(CASES["tight"]))
    _, read = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    assert int(read.block.logits[0].argmax()) in unused, "the network would write one"
    guesser = RehearsedDrafter(unused * 4, len(target.forbidden), Rehearsal(1.0, 1))
    decoded = Decoder(target, guesser, 8).decode(prompt)
    assert decoded.speculation.proposed == 0
    assert not set(decoded.token_ids) & set(unused)


def test_it_is_found_by_its_folder(whole: Path, folder: Path) -> None:
    assert find_target(str(whole)) == whole
    target = load_target(whole, (1,))
    assert isinstance(target, AutoVlaTarget)
    assert target.observation_spec.cameras == CAMERAS
    assert (target.observation_spec.frames_per_camera, target.observation_spec.frame_period_s) == (4, 0.5)
    assert target.mrope_section == (2, 3, 3)
    edit(folder / "config.json", model_type="qwen2_vl")
    with pytest.raises(
        SetupError, match=r"config\.json: model_type is 'qwen2_vl', expected flatrope_nano, .*qwen2_5_vl"
    ):
        load_planner(str(folder))


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        (("cross_right", "front_wide", "cross_left"), ("front_wide", "cross_left", "cross_right")),
        (
            ("front_right_camera", "front_left_camera", "front_camera"),
            ("front_camera", "front_left_camera", "front_right_camera"),
        ),
        (("CAM_FRONT_RIGHT", "CAM_FRONT"), ("CAM_FRONT", "CAM_FRONT_RIGHT")),
        (("cam_r0", "cam_l0", "cam_f0"), ("cam_f0", "cam_l0", "cam_r0")),
        (("camera_front_wide_120fov",), ("camera_front_wide_120fov",)),
    ],
)
def test_cameras_are_known_by_many_names(given: tuple[str, ...], ordered: tuple[str, ...]) -> None:
    assert in_order(given) == ordered


@pytest.mark.parametrize(
    ("cameras", "complaint"),
    [
        (
            ("front_wide", "front_tele"),
            "cameras: AutoVLA knows no 'front_tele', expected some of front_wide",
        ),
        (("front_wide", "front"), "cameras: front and front_wide are the same one"),
        ((), "cameras: none, expected at least one of front_wide"),
    ],
)
def test_cameras_that_autovla_does_not_know(cameras: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        in_order(cameras)


def test_it_cannot_be_quantised(whole: Path) -> None:
    with pytest.raises(InputError, match="precision is 'int8', expected auto, float32 or bfloat16: only alpamayo"):
        load_target(whole, running=Running(quantised=True))


def test_observations_that_are_not_as_asked_for(whole: Path) -> None:
    target = AutoVlaTarget.load(whole, running=Running(("front_wide", "cross_left"), device="cpu"))
    seen = observation(CASES["standing"], ("front_wide", "cross_left"))
    wide, left = seen.frames["front_wide"], seen.frames["cross_left"]
    small = CameraFrame(wide[0].stamp_ns, wide[0].image[:40])
    faults: list[tuple[dict[str, tuple[CameraFrame, ...]], str]] = [
        ({"front_wide": wide}, "expected {'front_wide': 4, 'cross_left': 4}"),
        ({"front_wide": wide, "cross_left": left[:2]}, "expected {'front_wide': 4, 'cross_left': 4}"),
        ({"front_wide": wide[::-1], "cross_left": left}, "pictures of front_wide at .* expected the oldest first"),
        (
            {"front_wide": (small, *wide[1:]), "cross_left": left},
            "pictures of front_wide of sizes .* expected one size",
        ),
    ]
    for frames, complaint in faults:
        with pytest.raises(InputError, match=complaint):
            target.prepare(Observation(0, frames, seen.ego_history))
    text = target._tokenizer.decode(target.prepare(seen).token_ids)
    assert "The second video presents the front-left view" in text
    assert "third video" not in text


def test_the_planner_node_loads_it_by_its_parameters(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autovla_target, "TOKEN_BUDGET", 12)
    values: dict[str, Any] = {**default_parameters("planner.param.yaml"), "target": str(whole)}
    core = load_for_node(PlannerParameters(**{**values, "cameras": ("cross_left", "front_wide", "cross_right")}))
    assert core.observation_spec.cameras == CAMERAS
    assert core.observation_spec.frame_period_s == 0.5


def test_a_planner_plans_with_a_checkpoint(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autovla_target, "TOKEN_BUDGET", 12)
    planner = load_planner(str(whole), running=Running(device="cpu"))
    # There is no draft beside it.
    assert "earlier texts draft alone" in planner.health.problem
    plan, samples = planner.plan_with_samples(observation(CASES["standing"]), seed=3, samples=2)
    assert plan.rationale.complete
    assert plan.trajectory.position_m.shape == (64, 3)
    assert all(np.array_equal(each.position_m, plan.trajectory.position_m) for each in samples)
    assert set(plan.stage_ms) >= {"vision", "prefill", "reasoning", "action", "total"}
