"""What a configuration of Alpamayo may say otherwise than the released ones, against NVIDIA's own code.

`alpamayo_unusual.npz` is recorded as `alpamayo_recorded.npz` is (see `test_alpamayo`).
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_alpamayo import CASES, PACKAGES, Unusual, observation, write_unusual

from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.vla.alpamayo.cameras import CAMERAS
from flatrope_planner.vla.alpamayo.config import Release
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


UNUSUAL = {
    # An expert that is less deep than the backbone and turns its keys at another pace, smoother fits, a
    # shorter plan, and bins that are said nowhere.
    Release.R1: Unusual(
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
    Release.V1_5: Unusual(
        {"tie_word_embeddings": True, "attention_bias": True},
        {
            "expert_cfg": None,
            "action_space_cfg": space(Release.V1_5, n_waypoints=70),
            "traj_tokenizer_cfg": delta(Release.V1_5, num_bins=500),
            "hist_traj_tokenizer_cfg": None,
        },
    ),
}


@pytest.fixture(scope="module", params=list(Release), ids=lambda release: release.value)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AlpamayoTarget:
    checkpoint = write_unusual(tmp_path_factory.mktemp("unusual"), request.param, UNUSUAL[request.param])
    return AlpamayoTarget.load(checkpoint, running=Running(CAMERAS, device="cpu"))


@pytest.mark.parametrize("case", ["cruise", "tight"])
def test_a_plan_is_theirs_from_prompt_to_trajectory(target: AlpamayoTarget, case: str) -> None:
    name = f"{target.release.value}_{case}"
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
