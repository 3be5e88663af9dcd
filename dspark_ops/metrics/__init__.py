"""What tells whether a planner's predictions hold: calibration scores, progress and acceptance, tau bias."""

from .progress import AcceptanceCounts, count_acceptance, visible_len
from .scores import (
    BINS,
    Score,
    auroc,
    brier,
    expected_calibration_error,
    prefix_outcome,
    reliability,
    score,
    score_conditional,
    score_cumulative,
)
from .tau import Bucket, TauBias

__all__ = [
    "BINS",
    "AcceptanceCounts",
    "Bucket",
    "Score",
    "TauBias",
    "auroc",
    "brier",
    "count_acceptance",
    "expected_calibration_error",
    "prefix_outcome",
    "reliability",
    "score",
    "score_conditional",
    "score_cumulative",
    "visible_len",
]
