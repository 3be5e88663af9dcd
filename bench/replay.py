"""What does confidence-scheduled verification give on real traces, on a measured machine and on two made-up ones?

    python bench/replay.py GREEDY.npz SAMPLED.npz [--json bench/results/replay.json]

`dspark-ops report --held-out` for each trace: calibrations are fitted to every second request, and all is replayed on
the others. docs/replay.md holds its tables: `python bench/replay_table.py bench/results/replay.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dspark_ops._files import write_atomic
from dspark_ops.commands.report import rounded
from dspark_ops.cost.cells import CostCells
from dspark_ops.replay.report import Options, report
from dspark_ops.trace import Trace

CELLS = Path(__file__).parent.parent / "examples/traces/cost_cells.json"


def as_json(data: dict[str, Any]) -> str:
    """JSON with a line of a table on one line: a change is then seen where it is."""
    held: list[str] = []

    def hold(value: Any) -> Any:
        if isinstance(value, dict) and not any(isinstance(v, dict | list) for v in value.values()):
            held.append(json.dumps(value))
            return f"@{len(held) - 1}@"
        if isinstance(value, dict):
            return {key: hold(entry) for key, entry in value.items()}
        return [hold(entry) for entry in value] if isinstance(value, list) else value

    text = json.dumps(hold(data), indent=1)
    for i, line in enumerate(held):
        text = text.replace(f'"@{i}@"', line)
    return text + "\n"


def main() -> int:
    """Replay, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--cost", type=Path, default=CELLS)
    parser.add_argument("--json", type=Path, help="write the result to this file; else to standard output")
    options = parser.parse_args()
    cells = CostCells.load(options.cost)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    reports = []
    for path in options.traces:
        data, _ = report(Trace.load(path), cells, Options(held_out=True))
        origin = {
            "trace": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "cost": options.cost.name,
        }
        reports.append(origin | data)
        print(f"{path.name}: {len(data['tables'])} tables", file=sys.stderr)
    text = as_json(rounded({"commit": commit.stdout.strip(), "reports": reports}))
    if options.json is None:
        print(text, end="")
    else:
        write_atomic(options.json, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
