"""The tier of a device plan, on the host without stopping the stream: a pinned copy of one int, and an event."""

from pathlib import Path

import torch

import dspark_ops

on_gpu = torch.cuda.is_available()
device = "cuda" if on_gpu else "cpu"
print(torch.cuda.get_device_name() if on_gpu else "no GPU here: runs on the CPU, where nothing is asynchronous")
cost = dspark_ops.load_cost_table(Path(__file__).with_name("sps_table.json"))
tiers = torch.tensor([64, 128, 256, 384, 512], dtype=torch.int32, device=device)
tier = torch.empty(1, dtype=torch.int64, pin_memory=on_gpu)
arrived = torch.cuda.Event() if on_gpu else None

for step in range(5):
    confidence = 1 - torch.rand(64, 7, device=device) * (1 - step / 4)  # better drafts from step to step
    plan = dspark_ops.allocate_verify_lens(
        confidence, cost, search="global", tiers=tiers, fill_tier=True, max_rows=512
    )  # fmt: skip
    tier.copy_(plan.stats[2:3], non_blocking=True)
    if arrived:
        arrived.record()
    # ... the host prepares the step here, while plan and copy are on their way ...
    if arrived:
        arrived.synchronize()  # waits for the copy alone, not for what other work the stream was given after it
    print(f"step {step}: replay the graph of {int(tier)} rows")
