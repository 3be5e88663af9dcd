"""Fit a calibration on one half of a recorded trace and judge it on the other half."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from dspark_ops.calibration import (
    Samples,
    fit_affine,
    fit_affine_offset,
    fit_sts,
    follow_offsets,
    identity,
    load_calibration,
)
from dspark_ops.metrics.scores import score_cumulative
from dspark_ops.trace import Trace

trace = Trace.load(Path(__file__).parent / "traces/greedy_small.npz")
samples = Samples.from_trace(trace, head="z", acceptance="greedy")
odd = torch.from_numpy(np.cumsum(trace.step == 0) % 2 == 1)  # by request, not by step: steps of a request are alike
training, held_out = samples[odd], samples[~odd]

for name, calibration in {
    "none": identity(trace.gamma, "greedy"),
    "STS": fit_sts(training),
    "affine": fit_affine(training),
    "affine + offset": fit_affine_offset(training),
}.items():
    confidence, _ = follow_offsets(held_out, calibration)  # each step predicted before its outcome is known
    positions, _ = score_cumulative(confidence, held_out.correct_len)
    ece = ", ".join(f"{position.ece:.3f}" for position in positions[:3])
    print(f"{name:15} ECE of the first three positions: {ece}")

with tempfile.TemporaryDirectory() as folder:  # what a server loads; another γ or another kind of acceptance is refused
    calibration.save(Path(folder) / "calibration.json")
    loaded = load_calibration(Path(folder) / "calibration.json", gamma=trace.gamma, acceptance="greedy")
print("arguments of allocate_verify_lens:", ", ".join(loaded.operands()))
