"""Which calibration to ship, on real traces; docs/calibration.md shows the result and says what it means.

python bench/calibration.py --traces FOLDER --json bench/results/calibration.json

FOLDER holds greedy_dev.npz, sampling_dev.npz and cost_cells.json: not in the repository, whose examples/traces has cuts
of them. About a minute of one core.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from dspark_ops._files import write_atomic
from dspark_ops._threads import one_thread
from dspark_ops.calibration import (
    AffineCalibration,
    Calibration,
    OffsetRule,
    Samples,
    fit_affine,
    fit_affine_offset,
    fit_offset_rule,
    fit_sts,
    follow_offsets,
)
from dspark_ops.calibration.compare import CANDIDATES, Comparison, Fit, compare
from dspark_ops.calibration.offset import log_loss
from dspark_ops.cost.cells import CostCells
from dspark_ops.metrics import TauBias
from dspark_ops.trace import Trace

HEADS = ("z", "z_refit")
Say = Callable[[str], None]


def with_rule(calibration: AffineCalibration, rule: OffsetRule) -> AffineCalibration:
    return msgspec.structs.replace(calibration, offset=rule)


VARIANTS: dict[str, Fit] = {
    "affine": fit_affine,
    "affine, ridge 0.001": lambda s: fit_affine(s, ridge=0.001),
    "affine, ridge 30": lambda s: fit_affine(s, ridge=30.0),
    "affine, one scale": lambda s: fit_affine(s, shared_scale=True),
    "affine+offset (eta 0.1, no decay)": lambda s: with_rule(fit_affine(s), OffsetRule(0.1)),
    "affine+offset (eta, decay chosen)": lambda s: fit_offset_rule(s, fit_affine(s)),
    "affine+offset, affine refitted under it": fit_affine_offset,
    "affine, one scale + offset (chosen)": lambda s: fit_offset_rule(s, fit_affine(s, shared_scale=True)),
}


def others(source: Samples, fit: Callable[[Samples], Calibration]) -> Fit:
    """Fit on `source`'s steps of the same requests instead, and pass the result off as fitted to what is judged."""

    def fitted(samples: Samples) -> Calibration:
        assert source.request is not None and samples.request is not None
        same = torch.isin(source.request, samples.request).nonzero()[:, 0]
        return msgspec.structs.replace(fit(source[same]), acceptance=samples.acceptance)

    return fitted


def short(summary: dict[str, Any]) -> dict[str, Any]:
    """The figures that a table of many candidates has room for."""
    return {
        "ece": [s["ece"] for s in summary["cumulative"]],
        "auroc": [s["auroc"] for s in summary["cumulative"]],
        "mean_prediction": [s["mean_prediction"] for s in summary["cumulative"]],
        "mean_outcome": [s["mean_outcome"] for s in summary["cumulative"]],
        "brier": summary["brier"],
        "log_loss": summary["log_loss"],
        "throughput": {b: t["over_best_fixed"] for b, t in summary["throughput"].items()},
    }


def table(samples: Samples, cells: CostCells, fits: dict[str, Fit]) -> dict[str, Any]:
    found = compare(samples, cells, candidates=fits).as_dict()
    return {c["name"]: short(c) for c in found["candidates"]}


def tau_bias(found: list[Comparison]) -> dict[str, Any]:
    """Actual minus predicted tokens per step, without calibration and with the one to ship, in every bucket."""
    biases = {}
    for name in dict.fromkeys(("none", found[0].ship)):
        together = TauBias()
        for comparison in found:
            together.merge(comparison[name].tau)
        biases[name] = {"by": together.by("batch", "lag"), "by tier": together.by("batch", "lag", "tier")}
    return biases


def learning(samples: Samples) -> dict[str, Any]:
    """The offset when each step shows it only its first drafts (in-sample fit: only the rows are to be compared)."""
    calibration = fit_affine_offset(samples)
    observed = (1, 2, 3, 5, samples.gamma)
    return {str(n): log_loss(follow_offsets(samples, calibration, n)[0], samples.correct_len) for n in observed}


def events(trace: Trace) -> dict[str, list[float]]:
    """Per position, over the steps that really accepted every draft before: the three events and the heads' guesses."""
    named = {
        "soft label 1 - TV": torch.from_numpy(trace.soft_accept),
        "argmax match": columns(trace.argmax_prefix_len, trace.gamma),
        "accepted": columns(trace.correct_len, trace.gamma),
        "sigmoid(z)": torch.from_numpy(trace.z).sigmoid(),
        "sigmoid(z_refit)": torch.from_numpy(trace.z_refit).sigmoid(),
    }
    reached = [torch.from_numpy(trace.correct_len >= k) for k in range(trace.gamma)]
    # An argmax match is known only where the argmax prefix before it is the drafted one too.
    both = [m & torch.from_numpy(trace.argmax_prefix_len >= k) for k, m in enumerate(reached)]
    means = {}
    for name, x in named.items():
        rows = both if name == "argmax match" else reached
        means[name] = [float(x[rows[k], k].double().mean()) for k in range(trace.gamma)]
    return means


def columns(lengths: Any, gamma: int) -> Tensor:
    return torch.arange(gamma) < torch.from_numpy(lengths.astype("int64"))[:, None]


def rounded(value: Any) -> Any:
    """Six significant digits: what is compared is larger, and the file stays readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {str(k): rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list | tuple) else value


def measure(folder: Path, say: Say) -> dict[str, Any]:
    cells = CostCells.load(folder / "cost_cells.json")
    traces = {name: Trace.load(folder / f"{name}_dev.npz") for name in ("greedy", "sampling")}
    results: dict[str, Any] = {
        "compare": {},
        "variants": {},
        "greedy_on_sampled": {},
        "learning": {},
        "global": {},
        "tau_bias": {},
    }
    for head in HEADS:
        greedy = Samples.from_trace(traces["greedy"], head)
        sampled = Samples.from_trace(traces["sampling"], head)
        # What SGLang's collector records while the server samples.
        argmax = Samples.from_trace(traces["sampling"], head, "greedy")
        for samples in (greedy, sampled):
            key = f"{samples.acceptance} {head}"
            say(key)
            found = [compare(samples, cells)]
            results["compare"][key] = found[0].as_dict()
            if samples is greedy:  # the one event for which a search on current confidences is lossless
                found.append(compare(samples, cells, search="global"))
                results["global"][key] = {c["name"]: short(c) for c in found[1].as_dict()["candidates"]}
            results["tau_bias"][key] = tau_bias(found)
            results["variants"][key] = table(samples, cells, VARIANTS)
            results["learning"][key] = learning(samples)
        results["greedy_on_sampled"][head] = table(
            sampled,
            cells,
            {
                "none": CANDIDATES["none"],
                "sts, fitted to sampled outcomes": fit_sts,
                "sts, fitted on greedy traffic": others(greedy, fit_sts),
                "sts, argmax labels of sampled traffic": others(argmax, fit_sts),
                "affine, fitted to sampled outcomes": fit_affine,
                "affine, fitted on greedy traffic": others(greedy, fit_affine),
                "affine, argmax labels of sampled traffic": others(argmax, fit_affine),
            },
        )
    results["events"] = {name: events(trace) for name, trace in traces.items()}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    with one_thread():
        results = measure(arguments.traces, lambda text: print(text, flush=True))
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    write_atomic(arguments.json, json.dumps(rounded({"versions": versions, **results})) + "\n")


if __name__ == "__main__":
    main()
