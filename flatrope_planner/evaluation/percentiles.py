"""The shares in which durations are told."""

from collections.abc import Sequence

import numpy as np

PERCENTILES = (50, 90, 99)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90 and p99; nothing of nothing."""
    shares = np.percentile(values, PERCENTILES) if values else ()
    return {f"p{percent}": round(float(value), 1) for percent, value in zip(PERCENTILES, shares, strict=False)}
