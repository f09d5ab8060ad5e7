"""Whether a network can be made of the sizes of a Qwen3-VL, and whether it is of use."""

from transformers import Qwen3VLConfig, Qwen3VLTextConfig

from flatrope_planner.vla.checkpoint.sizes import check_rules, check_whole, counts

TEXT_SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("head_dim", "vocab_size"),
)
VISION_SIZES = ("depth", "hidden_size", "intermediate_size", "num_heads", "out_hidden_size", "num_position_embeddings")


def check_sizes(config: Qwen3VLConfig) -> None:
    """Raise a ValueError for sizes that do not go together."""
    check_text_sizes(config.text_config)
    text, vision = config.text_config, config.vision_config
    check_whole(vision, VISION_SIZES)
    seen = vision.deepstack_visual_indexes
    check_rules(
        {
            "4 num_heads divide the hidden_size of vision_config": vision.hidden_size % (4 * vision.num_heads) == 0,
            "out_hidden_size is the text's hidden_size": vision.out_hidden_size == text.hidden_size,
            "in_channels is 3": vision.in_channels == 3,
            f"deepstack_visual_indexes are some below {vision.depth}": counts(list(seen), len(set(seen)))
            and all(index < vision.depth for index in seen),
            "deepstack_visual_indexes are no more than text layers": len(seen) <= text.num_hidden_layers,
        }
    )


def check_text_sizes(text: Qwen3VLTextConfig) -> None:
    """As `check_sizes`, of a text model alone."""
    check_whole(text, TEXT_SIZES)
    rope = text.rope_parameters
    theta = rope["rope_theta"]
    check_rules(
        {
            "num_key_value_heads divides num_attention_heads": text.num_attention_heads % text.num_key_value_heads == 0,
            "head_dim is even": text.head_dim % 2 == 0,
            "rope_theta is a number above 1": type(theta) in (int, float) and 1.0 < theta < 1e12,
            "mrope_section is three numbers": "mrope_section" not in rope or counts(rope["mrope_section"], 3),
            "rms_norm_eps is a number from 0 to 1": 0.0 <= text.rms_norm_eps <= 1.0,
        }
    )
