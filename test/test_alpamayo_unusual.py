"""What a configuration of Alpamayo may say otherwise than the released ones, against NVIDIA's own code.

`alpamayo_unusual.npz` is recorded as `alpamayo_recorded.npz` is (see `test_alpamayo`).
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_alpamayo import CASES, NUMBERS, PACKAGES, Unusual, observation, tokenizer, write_unusual

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.vla.alpamayo.config import TRAJECTORY_MARKS, Release
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.target import Running

RECORDED = np.load(Path(__file__).parent / "alpamayo_unusual.npz")


def space(release: Release, **fields: float) -> dict[str, object]:
    return {
        "_target_": f"{PACKAGES[release]}.action_space.unicycle_accel_curvature.UnicycleAccelCurvatureActionSpace",
        "accel_std": 0.7,
        "curvature_std": 0.026,
        **fields,
    }


def delta(release: Release, **fields: object) -> dict[str, object]:
    return {"_target_": f"{PACKAGES[release]}.models.delta_tokenizer.DeltaTrajectoryTokenizer", **fields}


BEHIND = tokenizer().get_vocab_size() + NUMBERS
UNUSUAL = {
    # An expert that is less deep than the backbone and turns its keys at another pace, smoother fits, a
    # shorter plan, and bins that are said nowhere.
    "deviating": Unusual(
        {"num_attention_heads": 3, "num_key_value_heads": 1, "rms_norm_eps": 1e-5},
        {
            "expert_cfg": {
                "hidden_size": 40,
                "intermediate_size": 56,
                "num_attention_heads": 5,
                "num_hidden_layers": 2,
                "rope_theta": 20000.0,
                "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [2, 3, 3]},
            },
            "action_space_cfg": space(Release.R1, v_lambda=1e-3, v_ridge=1e-2, n_waypoints=40),
            "traj_tokenizer_cfg": delta(Release.R1),
            "hist_traj_tokenizer_cfg": delta(Release.R1, ego_xyz_min=[-1.0, -2.0, -5.0], num_bins=301),
            "tokens_per_history_traj": 16,
            "expert_non_causal_attention": False,
        },
    ),
    # The head is the embeddings, the expert differs in nothing, plans are longer than trajectories, and one tokenizer
    # serves past and future.
    "shared": Unusual(
        {"tie_word_embeddings": True, "attention_bias": True},
        {
            "expert_cfg": None,
            "action_space_cfg": space(Release.V1_5, n_waypoints=70),
            "traj_tokenizer_cfg": delta(Release.V1_5, num_bins=500),
            "hist_traj_tokenizer_cfg": None,
        },
    ),
    # Only trajectories have marks: those of text are spelt.
    "spelt": Unusual(
        {},
        {
            "add_special_tokens": False,
            "vocab_size": BEHIND + len(TRAJECTORY_MARKS),
            "traj_token_ids": {name: BEHIND + place for place, name in enumerate(TRAJECTORY_MARKS)},
        },
    ),
}
RELEASES = {"deviating": Release.R1, "shared": Release.V1_5, "spelt": Release.V1_5}


@pytest.mark.parametrize("case", ["cruise", "tight"])
@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_plan_is_theirs_from_prompt_to_trajectory(tmp_path: Path, kind: str, case: str) -> None:
    checkpoint = write_unusual(tmp_path, RELEASES[kind], UNUSUAL[kind])
    target = AlpamayoTarget.load(checkpoint, running=Running(CAMERA_NAMES, device="cpu"))
    name = f"{kind}_{case}"
    prompt = target.prepare(observation(CASES[case]))
    assert list(prompt.token_ids) == RECORDED[f"{name}_ids"].tolist()
    decoded = Decoder(target, None, 8).decode(prompt)
    text = RECORDED[f"{name}_text"].tolist()
    # Theirs goes on for one token behind the stop token; one text has none.
    assert list(decoded.token_ids) == text[: text.index(target.stop_token) + 1 if target.stop_token in text else None]
    torch.manual_seed(CASES[case].seed)
    noise = torch.randn(1, target.points, 2)
    action = target.scaled_actions(decoded.state, noise)[0]
    np.testing.assert_allclose(action, RECORDED[f"{name}_action"], atol=1e-5)
    (trajectory,) = target.trajectories(decoded.state, noise)
    theirs = RECORDED[f"{name}_xyz"][:64]
    np.testing.assert_allclose(trajectory.position_m[: target.points], theirs, atol=1e-4)
    # Behind a shorter plan the ego goes straight on.
    assert len(set(trajectory.yaw_rad[target.points - 1 :])) <= 1
    assert len(set(trajectory.speed_mps[target.points - 1 :])) <= 1
    (drawn,) = target.act(decoded.state, CASES[case].seed)
    np.testing.assert_allclose(drawn.position_m, trajectory.position_m, atol=1e-5)
