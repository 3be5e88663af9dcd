"""Prints the tables of docs/replay.md from a result file of bench/replay.py.

python bench/replay_table.py bench/results/replay.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUDGETS = {
    "static": "static, all 7 drafts",
    "fixed": "best fixed length, in hindsight",
    "threshold": "best threshold, in hindsight",
    "cap-accept": "cap-accept (tier, lag 1)",
    "additive, lag 1": "additive cost, lag 1",
    "tier, lag 1": "tier cost, lag 1",
    "tier, lag 2": "tier cost, lag 2",
    "tier, lag 0": "tier cost, lag 0, global (greedy only)",
    "tier, first_drop": "tier cost, first_drop",
    "tier, lag 1, STS": "tier cost, lag 1, STS",
    "tier, lag 1, affine": "tier cost, lag 1, affine",
    "tier, lag 1, affine + offset": "tier cost, lag 1, affine + offset",
    "oracle": "oracle",
}
Part = dict[str, Any]


def kind(line: Part) -> str:
    """Which row of a table a line belongs to."""
    if line["policy"] in ("static", "cap-accept"):
        return line["policy"]
    return line["budget"].split()[0] if line["budget"].startswith(("fixed", "threshold")) else line["budget"]


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def is_full(part: Part) -> bool:
    """Whether every slot was busy and the requests mixed."""
    return part["arrivals"] is None and part["order"] == "mixed"


def throughput(report: Part, keep: Callable[[Part], bool] = is_full) -> str:
    """Tokens per second over the best fixed length, by budget; a column per machine and load."""
    parts = [part for part in report["tables"] if keep(part)]
    parts.sort(key=lambda part: [p["scene"] for p in report["tables"]].index(part["scene"]))
    by_kind = [{kind(line): line for line in part["lines"]} for part in parts]

    def coming(part: Part) -> str:
        return "" if is_full(part) else ", drift" if part["arrivals"] is None else ", arrivals"

    head = [f"{report['acceptance']}, over the best fixed"]
    head += [f"{part['scene']}, B {part['slots']}{coming(part)}" for part in parts]
    rows = [
        [label, *(f"{lines[budget]['over_best_fixed']:.3f}" for lines in by_kind)]
        for budget, label in BUDGETS.items()
        if budget in by_kind[0]
    ]
    return _markdown(head, rows)


def acceptance(report: Part, scene: str = "compute-bound") -> str:
    """One machine at the largest load in full: acceptance with its counts, rows, TPOT, bias of tau."""
    part = max((p for p in report["tables"] if is_full(p) and p["scene"] == scene), key=lambda p: p["slots"])
    head = [f"{report['acceptance']}, {scene}, B {part['slots']}", "AL", "accepted of proposed", "rows", "TPOT ms"]
    rows = []
    for line in part["lines"]:
        counts = f"{line['accepted']:,} of {line['proposed']:,}"
        counts += "" if line["acceptance_rate"] is None else f" = {line['acceptance_rate']:.3f}"
        bias = "" if line["tau_bias"] is None else f"{100 * line['tau_bias']:+.1f} %"
        rows.append(
            [
                BUDGETS[kind(line)], f"{line['accept_length']:.3f}", counts,
                f"{line['rows']:,}", f"{line['tpot_ms']:.2f}", f"{line['over_static']:.3f}",
                f"{line['over_oracle']:.3f}", bias,
            ]
        )  # fmt: skip
    return _markdown([*head, "over static", "over oracle", "tau, actual - predicted"], rows)


def ranks(report: Part) -> str:
    """Throughput of four ranks over the filled maximum of local tiers, by rule."""
    rows = []
    for part in report["ranks"]:
        lines = {line["rule"]: line for line in part["lines"]}
        joint = lines["joint"]
        rows.append(
            [
                part["scene"], part["ranks"], part["calibration"],
                f"{lines['all rows']['over_maximum']:.3f}", f"{lines['best fixed graph']['over_maximum']:.3f}",
                f"{lines['maximum']['over_maximum']:.3f}", f"{joint['over_maximum']:.3f}",
                f"{joint['expected_over_maximum']:.3f}",
                f"{lines['maximum, filled']['mean_graph_rows']:.0f}, {joint['mean_graph_rows']:.0f}",
            ]
        )  # fmt: skip
    head = [f"{report['acceptance']}: machine", "requests of the ranks", "calibration", "all rows", "best fixed graph"]
    return _markdown([*head, "maximum, unfilled", "**joint**", "joint, expected", "graph rows: maximum, joint"], rows)


def tables(data: Part) -> list[str]:
    """Every table of the document, in its order."""
    greedy, sampled = data["reports"]
    return [
        throughput(greedy),
        throughput(sampled),
        throughput(greedy, lambda part: not is_full(part)),
        acceptance(greedy),
        ranks(greedy),
        ranks(sampled),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables(json.loads(Path(sys.argv[1]).read_text()))))
