"""Fits sequential temperature scaling exactly as SGLang does: left to right, by the ECE of the cumulative product."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..metrics import BINS, expected_calibration_error
from .samples import Samples
from .tables import StsCalibration


def temperature_grid() -> Tensor:
    """SGLang's 41 temperatures: 0.1 to 10, evenly spaced in the logarithm, float32."""
    return torch.logspace(math.log10(0.1), math.log10(10.0), steps=41)


def fit_sts(samples: Samples, grid: Tensor | None = None, bins: int = BINS, dataset: str = "") -> StsCalibration:
    """Per position, the temperature whose cumulative product has the smallest ECE, the earlier ones kept.

    ``T_k = argmin_T ECE(s_{k-1} · sigmoid(z_k / T), prefix covers k)``, the first of equals. Float64, deterministic.

    Args:
        samples: at least one.
        grid: temperatures, positive, 1-D. Default `temperature_grid()`.
        bins: of the ECE.
        dataset: a name for the file.

    Source: DSpark (arXiv 2607.05147); the grid and the ECE are SGLang's.
    """
    temperatures = (temperature_grid() if grid is None else grid).double()
    if temperatures.dim() != 1 or not len(temperatures) or not bool((temperatures > 0).all()):
        raise ValueError(f"grid: expected positive temperatures, 1-D, got {temperatures.tolist()}")
    if not len(samples):
        raise ValueError("samples: expected at least one, got none")
    logits, outcome = samples.logits.double(), samples.outcome
    plain = torch.ones(len(samples), dtype=torch.float64)
    fitted = plain
    chosen, before, after = [], [], []
    for k in range(samples.gamma):
        plain = plain * torch.sigmoid(logits[:, k])
        before.append(expected_calibration_error(plain, outcome[:, k], bins))
        candidates = [fitted * torch.sigmoid(logits[:, k] / t) for t in temperatures]
        errors = [expected_calibration_error(c, outcome[:, k], bins) for c in candidates]
        best = min(range(len(errors)), key=errors.__getitem__)
        fitted = candidates[best]
        chosen.append(float(temperatures[best]))
        after.append(errors[best])
    return StsCalibration(
        temperatures=chosen,
        dataset=dataset,
        num_samples=len(samples),
        ece_before=before,
        ece_after=after,
        acceptance=samples.acceptance,
    )
