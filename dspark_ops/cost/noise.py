"""How small a predicted gain is still a gain: `min_gain_ppm` from the noise of the measurements behind a table."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

from .. import _checks


@cache
def range_over_deviation(samples: int) -> float:
    """Mean range of so many normal samples in standard deviations (Tippett): 1.128 for 2, 3.472 for 15.

    ``∫ 1 - Φ(x)^n - (1 - Φ(x))^n dx``: what turns a recorded minimum and maximum into a deviation.
    """
    _checks.integer("samples", samples, 2, 1 << 20)
    normal, step = NormalDist(), 0.01
    below = [normal.cdf(-8.0 + step * i) for i in range(1601)]
    return step * sum(1.0 - p**samples - (1.0 - p) ** samples for p in below)


def min_gain_ppm(relative_noise: float, samples: int = 1, confidence: float = 0.95) -> int:
    """The least gain, in parts per million, that a plan must predict before it leaves verify-all.

    A predicted gain compares two entries of a table, each the median of `samples` step times whose relative standard
    deviation is `relative_noise`. What noise alone reaches or exceeds in 1 - confidence of the cases is no gain:
    ``ppm = ceil(10^6 * z(confidence) * sqrt(2) * noise * sqrt(π / (2 * samples)))``, at most 10^6. (Up to two samples,
    where the median is the mean, π / 2 is 1.) It covers the noise of the entries, not a fit that has the wrong shape.

    Args:
        relative_noise: as `CostCells.relative_noise` measures it, in [0, 1].
        samples: step times behind an entry, at least 1.
        confidence: in [0.5, 0.999999].
    """
    _checks.number("relative_noise", relative_noise, 0.0, 1.0)
    _checks.integer("samples", samples, 1)
    _checks.number("confidence", confidence, 0.5, 0.999999)
    of_median = math.sqrt((math.pi / 2.0 if samples > 2 else 1.0) / samples)
    gain = NormalDist().inv_cdf(confidence) * math.sqrt(2.0) * relative_noise * of_median
    return min(math.ceil(1e6 * gain), 1_000_000)
