"""Prints the tables of docs/calibration.md: python bench/calibration_table.py bench/results/calibration.json"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

POSITIONS = 3


def rows(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    titles = list(head)
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in body)])


def figures(values: Iterable[float], digits: int = 3) -> str:
    return " ".join(f"{v:.{digits}f}".removeprefix("0") for v in values)


def scores(source: dict[str, Any]) -> str:
    """ECE, Brier, AUROC and throughput of the four candidates."""
    body = []
    for c in source["candidates"]:
        cumulative = c["cumulative"][:POSITIONS]
        ratios = [t["over_best_fixed"] for t in c["throughput"].values()]
        body.append(
            [
                f"**{c['name']}**" if c["name"] == source["ship"] else c["name"],
                figures(s["ece"] for s in cumulative),
                figures([c["brier"]], 4),
                figures(s["auroc"] for s in cumulative),
                f"{c['log_loss']:.3f}",
                figures(ratios),
            ]
        )
    body.append(["oracle", "", "", "", "", figures(source["oracle"].values())])
    batches = " / ".join(source["oracle"])
    return rows(["held out", "ECE 1 2 3", "Brier", "AUROC 1 2 3", "log loss", f"tokens/s, B = {batches}"], body)


def short(table: dict[str, Any]) -> str:
    """The same columns from the short form."""
    body = [
        [
            name,
            figures(c["ece"][:POSITIONS]),
            figures([c["brier"]], 4),
            figures(c["auroc"][:POSITIONS]),
            f"{c['log_loss']:.3f}",
            figures(c["throughput"].values()),
        ]
        for name, c in table.items()
    ]
    batches = " / ".join(next(iter(table.values()))["throughput"])
    return rows(["held out", "ECE 1 2 3", "Brier", "AUROC 1 2 3", "log loss", f"tokens/s, B = {batches}"], body)


def tau(biases: dict[str, Any]) -> str:
    """Bias of tau per step by batch and lag, first none, then what ships."""
    body = []
    for source, by_name in biases.items():
        for name, groups in by_name.items():
            for lag in sorted({g["lag"] for g in groups["by"]}):
                found = [g for g in groups["by"] if g["lag"] == lag]
                cells = [f"{g['bias']:+.2f} ± {g['standard_error']:.2f} of {g['actual']:.1f}" for g in found]
                body.append([source, name, str(lag), *cells])
    return rows(["outcome, head", "calibration", "lag", "B = 8", "B = 16", "B = 32"], body)


def events(found: dict[str, Any]) -> str:
    """Means per position of labels and guesses, given that every draft before was accepted."""
    body = [
        [decoding, name, figures(values[:POSITIONS])]
        for decoding, by_name in found.items()
        for name, values in by_name.items()
    ]
    return rows(["decoding", "mean of", "position 1 2 3"], body)


def learning(found: dict[str, Any]) -> str:
    """Log loss by how many drafts of a step the offset may see."""
    seen = next(iter(found.values()))
    body = [[source, *(f"{loss:.4f}" for loss in losses.values())] for source, losses in found.items()]
    return rows(["outcome, head", *(f"first {n}" for n in seen)], body)


def tables(data: dict[str, Any]) -> dict[str, str]:
    """Every table of the document, by name."""
    return {
        **{f"compare {key}": scores(source) for key, source in data["compare"].items()},
        **{f"global {key}": short(source) for key, source in data["global"].items()},
        **{f"greedy on sampled {key}": short(source) for key, source in data["greedy_on_sampled"].items()},
        **{f"variants {key}": short(source) for key, source in data["variants"].items()},
        "tau": tau(data["tau_bias"]),
        "events": events(data["events"]),
        "learning": learning(data["learning"]),
    }


if __name__ == "__main__":
    for name, text in tables(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).items():
        print(f"## {name}\n\n{text}\n")
