"""Cut a small, balanced trace from a large one: `python cut.py SOURCE.npz DESTINATION.npz [--per-domain 25]`.

Whole requests are kept, evenly spread over each domain, and dealt in turn (math, code, chat, math, ...), so that any
window of the trace mixes the domains. Every field of the source is kept.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np


def chosen_rows(request_id: np.ndarray, domain: np.ndarray, per_domain: int) -> np.ndarray:
    """Row indices of the kept requests, in the order of the new trace."""
    lists = []
    for d in np.unique(domain):
        requests = np.unique(request_id[domain == d])
        lists.append(requests[np.linspace(0, len(requests) - 1, min(per_domain, len(requests))).round().astype(int)])
    turns = max(len(requests) for requests in lists)
    order = [requests[i] for i in range(turns) for requests in lists if i < len(requests)]
    return np.concatenate([np.flatnonzero(request_id == r) for r in order])


def cut(source: Path, destination: Path, per_domain: int) -> None:
    """Write the cut trace; the destination appears only when it is complete."""
    with np.load(source, allow_pickle=False) as trace:
        fields = {name: trace[name] for name in trace.files}
    rows = chosen_rows(fields["request_id"], fields["domain"], per_domain)
    steps = len(fields["request_id"])
    cut_fields = {name: a if name.endswith("_names") else a[rows] for name, a in fields.items()}
    partial = destination.with_name(destination.name + ".partial.npz")
    np.savez_compressed(partial, **cut_fields)
    os.replace(partial, destination)
    print(f"{destination}: {len(rows)} of {steps} steps, {destination.stat().st_size} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--per-domain", type=int, default=25, help="requests kept of each domain")
    arguments = parser.parse_args()
    cut(arguments.source, arguments.destination, arguments.per_domain)
