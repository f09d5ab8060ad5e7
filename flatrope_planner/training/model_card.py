"""The text that says what a trained nano is."""

from collections.abc import Mapping

from flatrope_planner.vla.config import TOKENS_PER_PICTURE, NanoConfig

_CARD = """---
license: apache-2.0
library_name: flatrope_planner
---
# nano

A small vision-language-action model that drives in the embedded simulator of flatrope_planner. It shows the mechanism
of a reasoning driver - look, write why, act - on a laptop. It does not drive like a large model, and it knows no other
world.

| | |
|---|---|
| architecture | Qwen3-VL (interleaved M-RoPE, DeepStack) and a flow-matching action expert on its keys and values |
| parameters | {parameters:,} (stored in bfloat16, computed in float32) |
| sees | {cameras}: {frames} pictures each, {period} s apart, 448 x 160, {visual} visual tokens |
| reads | 16 ego poses at 10 Hz as 48 tokens; no commands |
| writes | one sentence that begins with its decision |
| plans | 64 accelerations and curvatures, 0.1 s apart |

Trained from nothing with `flatrope train target` on episodes of the embedded simulator, driven and narrated by its
reference driver, most of them disturbed so that recovering is learnt. No other data, no other weights.

{facts}

Not for any real vehicle.
"""


def model_card(config: NanoConfig, parameters: int, facts: Mapping[str, object]) -> str:
    """Markdown for a model of this configuration; `facts` are listed as they are."""
    return _CARD.format(
        parameters=parameters,
        cameras=" and ".join(f"`{camera}`" for camera in config.cameras),
        frames=config.frames_per_camera,
        period=config.frame_period_s,
        visual=config.pictures * TOKENS_PER_PICTURE,
        facts="\n".join(f"- {name}: {value}" for name, value in facts.items()),
    )
