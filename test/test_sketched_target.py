"""A third target is one file and one line: planned with, speculated for, captured from, as any other."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sketched_onevl
import torch
from pretended_gpu import GPU, pretended_gpu
from sketched_onevl import SketchedOneVl
from test_alpamayo_exactness import bits
from tiny_alpamayo import picture, write_backbone
from tiny_nano import arc
from transformers import Qwen3VLForConditionalGeneration

from flatrope_planner.domain import CameraFrame, Observation
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.exactness import self_test
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.training import capture_command
from flatrope_planner.training.capture import trace_of
from flatrope_planner.vla import targets
from flatrope_planner.vla.alpamayo.backbone import load_backbone
from flatrope_planner.vla.alpamayo.pictures import resized
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.target import Running, VlaTarget
from flatrope_planner.vla.vision import patchify

LENGTH = 24
HOW = Running(("front_wide",), device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("onevl") / "checkpoint"
    tokenizer = write_backbone(made)
    torch.manual_seed(0)
    vlm = Qwen3VLForConditionalGeneration(load_backbone(made, tokenizer.get_vocab_size()))
    with torch.no_grad():
        for weight in vlm.model.language_model.parameters():
            if weight.ndim > 1:
                weight.copy_(torch.randn(weight.shape) * 0.15)
    vlm.save_pretrained(made)
    return made


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    # The one line.
    monkeypatch.setitem(targets.LOADERS, "qwen3_vl", SketchedOneVl.load)


def moment() -> Observation:
    frames = (CameraFrame(0, picture(5)),)
    return Observation(0, {"front_wide": frames}, arc(6.0, 0.0), "turn left")


@pytest.mark.usefixtures("registered")
def test_it_writes_what_transformers_writes_whatever_is_proposed(folder: Path) -> None:
    target = targets.load_target(folder, (1, 3), HOW)
    target.token_budget = LENGTH
    prompt = target.prepare(moment())
    ids = torch.tensor([prompt.token_ids])
    patches = patchify(torch.from_numpy(resized(moment().frames["front_wide"][0].image, (96, 160)))[None])
    generated = (
        Qwen3VLForConditionalGeneration.from_pretrained(folder)
        .generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            mm_token_type_ids=(ids == target.image_pad).int(),
            pixel_values=patches.reshape(-1, 3, 1, 256).expand(-1, 3, 2, 256).reshape(-1, 1536),
            image_grid_thw=torch.tensor([[1, 6, 10]]),
            max_new_tokens=LENGTH,
            do_sample=False,
            eos_token_id=target.stop_token,
            pad_token_id=0,
        )[0, ids.shape[1] :]
        .tolist()
    )
    plain = Decoder(target, None, 8).decode(prompt)
    assert list(plain.token_ids[: len(generated)]) == generated
    assert len(set(generated)) > 4
    drafter = RehearsedDrafter(plain.token_ids, len(target.forbidden), Rehearsal(0.6, 2, 1))
    assert bits(Decoder(target, drafter, 8).decode(prompt)) == bits(plain)
    assert self_test(target, prompt, 9) == []
    # What drafts learn from.
    assert trace_of(target, prompt, plain.token_ids).tapped.shape[0] == 2


@pytest.mark.usefixtures("registered")
def test_it_writes_the_same_on_a_gpu(folder: Path) -> None:
    written = []
    for device in ("cpu", "auto"):
        with pretended_gpu():
            target = targets.load_target(folder, (1,), replace(HOW, device=device))
            assert (target.device == GPU) == (device == "auto")
            target.token_budget = 4
            written.append(Decoder(target, None, 8).decode(target.prepare(moment())).token_ids)
    assert written[0] == written[1]


@pytest.mark.usefixtures("registered")
def test_a_head_of_ones_own_reads_on_behind_the_text(folder: Path) -> None:
    target = targets.load_target(folder, (), HOW)
    prompt = target.prepare(moment())
    state, _ = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    queries = Block.of(7, Candidates.chain([8, 9], ""))
    hidden = target.behind(state, queries).hidden[0]
    # They are the states that a step would write with, and nothing is kept of them.
    assert torch.equal(target.vlm.lm_head(hidden), target.step(state, queries).logits)
    assert torch.equal(hidden, target.behind(state, queries).hidden[0])
    assert (state.length, state.written) == (len(prompt.token_ids), [])
    # Room is for the last token of the prompt, the text, its end, and no more.
    for _ in range(256):
        target.step(state, Block.of(7, Candidates()))
        target.commit(state, (0,))
    with pytest.raises(InputError, match="cache: a path of 260 tokens does not fit into 258 places"):
        target.behind(state, queries)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("frames", "complaint"),
    [
        ({"front_wide": (20, 10)}, r"pictures \{'front_wide': 2\}, expected \{'front_wide': 1\}"),
        ({"front_tele": (10,)}, r"pictures \{'front_tele': 1\}, expected \{'front_wide': 1\}"),
    ],
)
def test_it_looks_at_what_it_asks_for(folder: Path, frames: dict[str, tuple[int, ...]], complaint: str) -> None:
    shown = {camera: tuple(CameraFrame(stamp, picture(5)) for stamp in stamps) for camera, stamps in frames.items()}
    with pytest.raises(InputError, match=f"^observation: {complaint}$"):
        targets.load_target(folder, (), HOW).prepare(replace(moment(), frames=shown))


@pytest.mark.usefixtures("registered")
def test_its_faults_are_one_line(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"none")
    with pytest.raises(SetupError, match=r"model\.safetensors: expected the weights of the checkpoint"):
        targets.load_target(broken, (), HOW)
    (broken / "config.json").write_text((broken / "config.json").read_text().replace('"float32"', '"float16"'))
    with pytest.raises(SetupError, match=r"config\.json: dtype is 'float16', expected float32, bfloat16; or ask"):
        targets.load_target(broken, (), HOW)


@pytest.mark.usefixtures("registered")
def test_capture_says_when_it_has_nothing_to_show(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(folder: Path, tapped_layers: tuple[int, ...], running: Running) -> VlaTarget:
        return SketchedOneVl.load(folder, tapped_layers, replace(running, cameras=("roof", "front_wide")))

    monkeypatch.setitem(targets.LOADERS, "qwen3_vl", load)
    monkeypatch.setattr(sketched_onevl, "CAMERA_NAMES", ("roof", "front_wide"))
    with pytest.raises(InputError, match="looks at roof, front_wide; the simulator shows front_wide, front_tele "):
        capture_command._target(capture_command.CaptureOptions(tmp_path, str(folder), device="cpu"))


@pytest.mark.usefixtures("registered")
def test_its_figures_become_a_trajectory(folder: Path) -> None:
    target = targets.load_target(folder, (), HOW)
    assert isinstance(target, SketchedOneVl)
    prompt = target.prepare(moment())
    state, _ = target.prefill(prompt, Block.of(prompt.token_ids[-1], Candidates()))
    answer = target._tokenizer.encode("3.0, 0.0], [6.0, 0.0], [9.0, 0.0], [12.0, 0.0]]")
    for start in range(0, len(answer), 8):
        part = answer[start : start + 8]
        target.step(state, Block.of(part[0], Candidates.chain(part[1:], "")))
        target.commit(state, range(len(part)))
    (trajectory,) = target.act(state, None)
    # Six metres a second, and on.
    np.testing.assert_allclose(trajectory.position_m[:, 0], 0.6 * np.arange(1, 65), atol=1e-3)


@pytest.mark.usefixtures("registered")
def test_a_planner_takes_it_by_its_folder(folder: Path) -> None:
    planner = load_planner(str(folder), SpeculationOptions(DrafterKind.PROMPT_LOOKUP, nodes=7), HOW)
    assert planner.observation_spec.cameras == ("front_wide",)
    assert planner.health.problem == ""
