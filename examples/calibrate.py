"""Fit calibrations on one half of a recorded trace and judge them on the other half."""

from pathlib import Path

import numpy as np
import torch

from dspark_ops import calibration as cal
from dspark_ops.metrics.scores import score_cumulative
from dspark_ops.trace import Trace

trace = Trace.load(Path(__file__).parent / "traces/greedy_small.npz")
samples = cal.Samples.from_trace(trace, head="z", acceptance="greedy")
odd = torch.from_numpy(np.cumsum(trace.step == 0) % 2 == 1)  # by request, not by step: steps of a request are alike
training, held_out = samples[odd], samples[~odd]

for name, calibration in {
    "none": cal.identity(trace.gamma, "greedy"),
    "STS": cal.fit_sts(training),
    "affine": cal.fit_affine(training),
    "affine + offset": cal.fit_affine_offset(training),
}.items():
    confidence, _ = cal.follow_offsets(held_out, calibration)  # each step predicted before its outcome is known
    positions, _ = score_cumulative(confidence, held_out.correct_len)
    ece = ", ".join(f"{position.ece:.3f}" for position in positions[:3])
    print(f"{name:15} ECE of the first three positions: {ece}")

# calibration.save(path); in the server: cal.load_calibration(path, gamma=7, acceptance="greedy").operands(device)
print("arguments of allocate_verify_lens:", ", ".join(calibration.operands()))
