"""Calibration of confidences: record, fit, compare, and the files that a server loads (DESIGN 3.1, 3.10 and 5)."""

from .affine import fit_affine
from .offset import fit_affine_offset, fit_offset_rule, follow_offsets
from .recorder import StsRecorder, load_shards
from .samples import Samples
from .sts import fit_sts, temperature_grid
from .tables import AffineCalibration, Calibration, OffsetRule, StsCalibration, identity, load_calibration
from .training import ConfidenceHead, confidence_loss, previous_tokens, soft_accept

__all__ = [
    "AffineCalibration",
    "Calibration",
    "ConfidenceHead",
    "OffsetRule",
    "Samples",
    "StsCalibration",
    "StsRecorder",
    "confidence_loss",
    "fit_affine",
    "fit_affine_offset",
    "fit_offset_rule",
    "fit_sts",
    "follow_offsets",
    "identity",
    "load_calibration",
    "load_shards",
    "previous_tokens",
    "soft_accept",
    "temperature_grid",
]
