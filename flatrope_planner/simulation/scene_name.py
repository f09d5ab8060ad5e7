"""What a scene is called wherever it is spoken of: by this name an outcome finds its scene again."""


def scene_name(family: str, seed: int) -> str:
    """For example `lead, seed 1`."""
    return f"{family}, seed {seed}"
