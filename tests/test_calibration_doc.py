"""docs/calibration.md is held to bench/results/calibration.json, and its words to the figures that they summarise."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import calibration as study  # noqa: E402
import calibration_table  # noqa: E402

from dspark_ops.calibration import Samples  # noqa: E402
from dspark_ops.trace import Trace  # noqa: E402

SHOWN = [
    *(f"compare {event} {head}" for event in ("greedy", "sampled") for head in ("z", "z_refit")),
    "global greedy z",
    "greedy on sampled z",
    "variants greedy z",
    "tau",
    "events",
    "learning",
]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return json.loads((ROOT / "bench/results/calibration.json").read_text())


def test_every_table_is_the_files(data: dict[str, Any]) -> None:
    text = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
    tables = calibration_table.tables(data)
    for name in SHOWN:
        assert tables[name] in text, f"{name}: run bench/calibration_table.py and mend the document"


def candidate(data: dict[str, Any], source: str, name: str) -> dict[str, Any]:
    return next(c for c in data["compare"][source]["candidates"] if c["name"] == name)


def test_what_the_document_says_of_them(data: dict[str, Any]) -> None:
    assert {k: v["ship"] for k, v in data["compare"].items()} == {
        "greedy z": "affine+offset",
        "sampled z": "affine+offset",
        "greedy z_refit": "affine+offset",
        "sampled z_refit": "affine",
    }
    for fit in candidate(data, "greedy z", "sts")["fitted"]:
        first, second, third = (1 / scale for scale in fit["scale"][:3])
        assert round(first, 1) == 4.5 and 8.5 < second <= 10.01 and round(third, 1) == 0.3
    for source in ("greedy z", "greedy z_refit"):
        none, sts = candidate(data, source, "none"), candidate(data, source, "sts")
        assert sts["log_loss"] > none["log_loss"]
        assert all(sts["cumulative"][k]["auroc"] < none["cumulative"][k]["auroc"] for k in (1, 2))
    floors = {
        event: [round(s["ece_floor"], 3) for s in candidate(data, f"{event} z", "affine")["cumulative"][:3]]
        for event in ("greedy", "sampled")
    }
    assert floors == {"greedy": [0.014, 0.011, 0.008], "sampled": [0.013, 0.009, 0.006]}
    for source in data["compare"]:
        first = candidate(data, source, "affine")["cumulative"][:3]
        assert all(s["ece"] - s["ece_floor"] < 0.012 for s in first)
    lost = candidate(data, "sampled z", "none")["throughput"]
    assert lost["8"]["over_best_fixed"] < 1 and lost["32"]["over_best_fixed"] < 1
    assert data["compare"]["sampled z"]["best_fixed_len"]["32"] == [1] * 6
    sampled = data["events"]["sampling"]
    soft, accepted = sampled["soft label 1 - TV"], sampled["accepted"]
    assert all(abs(a - b) < 0.0101 for a, b in zip(soft[:3], accepted[:3], strict=True))
    for by_name in data["tau_bias"].values():
        *_, ships = by_name.values()
        assert all(0 < b["bias"] < 0.025 * b["actual"] for b in ships["by"])
    for source, least, most in (("sampled z", 0.02, 0.1), ("sampled z_refit", 0.02, 0.1), ("greedy z", 0.15, 0.15)):
        fitted = candidate(data, source, "affine+offset")["fitted"]
        assert all(least <= f["offset"]["eta"] <= most for f in fitted)
    for key, compared in data["compare"].items():
        for batch, bound in compared["oracle"].items():
            best = max(c["throughput"][batch]["over_best_fixed"] for c in compared["candidates"])
            assert (best - 1) / (bound - 1) < 0.25, key


def test_the_studys_own_parts() -> None:
    """Events by hand, a fit from elsewhere, and rounding."""
    trace = Trace.load(ROOT / "examples/traces/sampling_small.npz")
    means = study.events(trace)
    assert means["accepted"][0] == pytest.approx((trace.correct_len >= 1).mean())
    assert means["argmax match"][0] == pytest.approx((trace.argmax_prefix_len >= 1).mean())
    reached = trace.correct_len >= 1
    assert means["accepted"][1] == pytest.approx((trace.correct_len >= 2)[reached].mean())
    assert means["soft label 1 - TV"][1] == pytest.approx(trace.soft_accept[reached, 1].astype(float).mean())
    samples, argmax = Samples.from_trace(trace), Samples.from_trace(trace, acceptance="greedy")
    half = samples[samples.requests()[0]]
    fitted = study.others(argmax, study.fit_affine)(half)
    assert fitted.acceptance == "sampled"
    assert fitted.scale_bias() == study.fit_affine(argmax[argmax.requests()[0]]).scale_bias()
    assert study.rounded({"a": [1.23456789, 2], 8: (0.1,)}) == {"a": [1.23457, 2], "8": [0.1]}
