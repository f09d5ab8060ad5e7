"""The shares in which durations and errors are told."""

from collections.abc import Sequence

import numpy as np

PERCENTILES = (50, 90, 99)


def percentiles(values: Sequence[float], percents: Sequence[int] = PERCENTILES, decimals: int = 1) -> dict[str, float]:
    """p50, p90 and p99, or others; nothing of nothing."""
    shares = np.percentile(values, percents) if len(values) else ()
    return {f"p{percent}": round(float(value), decimals) for percent, value in zip(percents, shares, strict=False)}
