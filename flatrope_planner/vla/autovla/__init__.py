"""AutoVLA: a Qwen2.5-VL that reasons and then writes its motion as tokens of a codebook (arXiv:2506.13757)."""
