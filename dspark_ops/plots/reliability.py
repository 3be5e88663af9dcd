"""Reliability diagram: what was observed where so much was predicted, before and after calibration."""

from __future__ import annotations

import os
from collections.abc import Mapping

from torch import Tensor

from ..metrics import expected_calibration_error, prefix_outcome, reliability
from ._figure import new_figure, save_figure

POSITIONS = 4  # deeper ones have too few acceptances to show anything


def draw_reliability(confidences: Mapping[str, Tensor], correct_len: Tensor, path: str | os.PathLike[str]) -> None:
    """Draw, for the first positions, observed against predicted coverage of the accepted prefix.

    Args:
        confidences: label -> c [S, γ], drawn in this order.
        correct_len: accepted drafts [S].
        path: .png, .svg or .pdf; replaced in one step.

    A dot is a bin of ECE (15 of equal width), its area the share of the samples.
    """
    gamma = next(iter(confidences.values())).shape[1]
    positions = min(POSITIONS, gamma)
    outcome = prefix_outcome(correct_len, gamma)
    figure = new_figure(3.1 * positions, 3.4)
    axes = figure.subplots(1, positions, sharey=True, squeeze=False)[0]
    for k, axis in enumerate(axes):
        axis.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
        for color, (label, confidence) in enumerate(confidences.items()):
            survival = confidence.double().cumprod(1)[:, k]
            count, predicted, observed = zip(*reliability(survival, outcome[:, k]), strict=True)
            ece = expected_calibration_error(survival, outcome[:, k])
            area = [400 * n / len(survival) for n in count]
            axis.plot(predicted, observed, color=f"C{color}", linewidth=1, label=f"{label}: ECE {ece:.3f}")
            axis.scatter(predicted, observed, s=area, color=f"C{color}", alpha=0.6)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"prefix covers draft {k + 1}", xlabel="predicted")
        axis.legend(fontsize="x-small", loc="lower right")
    axes[0].set_ylabel("observed")
    save_figure(figure, path)
