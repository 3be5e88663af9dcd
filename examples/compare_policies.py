"""Replay a recorded trace under several budgets on a measured machine: what is planning worth?"""

from pathlib import Path

from dspark_ops.cost.cells import CostCells
from dspark_ops.replay.scenes import measured
from dspark_ops.replay.study import Recorded, study, table
from dspark_ops.replay.timeline import Load, timeline
from dspark_ops.trace import Trace

traces = Path(__file__).parent / "traces"
trace = Trace.load(traces / "greedy_small.npz")
machine = measured(CostCells.load(traces / "cost_cells.json"))
load = Load(slots=16, max_steps=100)
runs = study(Recorded.of(trace, "z_refit"), timeline(trace, load), load.slots, machine, greedy=True)
for line in table(runs):
    what = f"{line['policy']}, {line['budget']}"
    print(f"{what:28} {line['rows']:6} rows  {line['tokens_per_second']:6.1f} tokens/s  ×{line['over_static']:.2f}")
