"""One prepared run on a GPU, under 8 minutes: equality with the reference, graph replay, latency, bandwidth, the rival.

    python bench/device.py [--json FILE] [--limit SECONDS] [--backends triton,cuda] [--sizes 8x7,64x7,...]
    python bench/device.py --pack-rival build/rival.whl     here, where the wheel is; then there:
    DSPARK_RIVAL_WHEEL=build/rival.whl python bench/device.py

Everything is printed and written as JSON ($OUT/device.json where $OUT is set) as it comes, so that a run that is cut
short leaves what it had. A section that the time limit does not reach is named under `left_out`. The exit status is 1
if any result differed from the reference.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import device_cases
import device_rival
import device_timing as timing
import rival
import torch

import dspark_ops
from dspark_ops import _backends, _registry
from dspark_ops.testing import Mismatch, case, run, written
from dspark_ops.testing.compare import assert_same, confidence_form

SIZES = [(b, g) for b in (8, 64, 256, 1024) for g in (7, 15)]


@dataclass
class Run:
    """What is measured on, for how long, and what has come out."""

    device: str
    backends: list[str]
    sizes: list[tuple[int, int]]
    limit: float
    samples: int = 30
    file: Path | None = None
    result: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    saved: float = 0.0

    def left(self) -> float:
        """Seconds until the limit."""
        return self.limit - (time.monotonic() - self.started)

    def put(self, section: str, record: Any) -> None:
        """Print a record, keep it, and now and then write all there is."""
        self.result.setdefault(section, []).append(record)
        print(section, json.dumps(record), flush=True)
        if time.monotonic() - self.saved > 10:
            self.save()

    def save(self) -> None:
        """Write all there is."""
        self.saved = time.monotonic()
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.result, indent=1) + "\n")


def l2_bytes(device: str) -> int:
    """Size of the device's L2 cache; a small stand-in on a CPU."""
    return 1 << 16 if device == "cpu" else int(torch.cuda.get_device_properties(0).L2_cache_size)


def facts(r: Run) -> dict[str, Any]:
    """What the figures depend on."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    found: dict[str, Any] = {
        "python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
        "hip": torch.version.hip, "dspark_ops": dspark_ops.__version__, "commit": commit.stdout.strip(),
        "backends": r.backends,
    }  # fmt: skip
    if _backends.has_triton():
        import triton

        found["triton"] = triton.__version__
    if r.device != "cpu":
        p = torch.cuda.get_device_properties(0)
        found |= {"gpu": p.name, "capability": f"{p.major}.{p.minor}", "processors": p.multi_processor_count}
        found |= {"memory_GiB": round(p.total_memory / 2**30, 1), "l2_MiB": round(l2_bytes(r.device) / 2**20, 1)}
    return found


def call_of(backend: str, stem: str, args: device_cases.Args) -> timing.Call:
    """The operator of one back end, its arguments bound."""
    op = getattr(getattr(torch.ops, _backends.get_backend(backend).namespace), stem).default
    return lambda: op(*args)


def differences(stem: str, args: device_cases.Args, want: device_cases.Args) -> str | None:
    """The first output that is not the reference's, or None."""
    try:
        for i, name in written(stem):
            if isinstance(want[i], torch.Tensor):
                assert_same(stem, name, args[i].cpu(), want[i])
    except Mismatch as mismatch:
        return str(mismatch)
    return None


def equality(r: Run, seconds: float, seeds: int = 200) -> list[dict[str, Any]]:
    """The tests' random cases on the device, all operators in turn, as many as the time allows."""
    end = time.monotonic() + min(seconds, r.left())
    records = {
        (b, s): {"backend": b, "op": s, "cases": 0, "differences": [], "errors": []}
        for b in r.backends
        for s in _registry.stems()
    }
    for seed in range(seeds):
        for (backend, stem), record in records.items():
            if time.monotonic() > end and seed:
                return list(records.values())
            cpu = case(stem, seed)
            args = device_cases.to_device(cpu, r.device)
            try:
                # A sigmoid may differ by 2 ulp; the reference then goes on from the confidences that this back end has.
                known = device_cases.to_device(confidence_form(stem, args, backend), "cpu")
                call_of(backend, stem, args)()
                found = differences(stem, args, run(stem, known, "reference"))
            except Exception as error:  # a kernel that does not compile must not hide the other operators
                record["errors"].append(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
                continue
            record["cases"] += 1
            if found:
                record["differences"].append(f"seed {seed}: {found}")
    return list(records.values())


def replay(r: Run, batch: int, gamma: int, backend: str) -> Iterator[dict[str, Any]]:
    """Capture each operator once, replay it on other inputs: the result must be the reference's for those."""
    for name in device_cases.CASES:
        stem = device_cases.stem_of(name)
        static = device_cases.to_device(device_cases.make(name, batch, gamma, 1), r.device)
        record: dict[str, Any] = {"backend": backend, "op": name, "B": batch, "gamma": gamma, "difference": None}
        try:
            call = call_of(backend, stem, static)
            again = call if r.device == "cpu" else timing.capture([call]).replay
            for seed in (2, 3):
                fresh = device_cases.make(name, batch, gamma, seed)
                for a, b in zip(static, fresh, strict=True):
                    if isinstance(a, torch.Tensor):
                        a.copy_(b)
                again()
                record["difference"] = record["difference"] or differences(stem, static, run(stem, fresh, "reference"))
        except Exception as error:
            record["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        yield record


def attempt(measured: Callable[..., dict[str, Any]], r: Run, *which: Any) -> dict[str, Any]:
    """One record; an error becomes one too, for it must not cost the records that follow."""
    try:
        return measured(r, *which)
    except Exception as error:
        return {"which": [str(w) for w in which], "error": f"{type(error).__name__}: {str(error)[:300]}"}


def latency(r: Run, name: str, batch: int, gamma: int, backend: str) -> dict[str, Any]:
    """Microseconds of one operator at one size, warm and cold, and of the host to issue it."""
    stem = device_cases.stem_of(name)
    first = device_cases.make(name, batch, gamma, 1)
    size = device_cases.bytes_of(first)
    turn = timing.rotation(size, l2_bytes(r.device))
    sets = [device_cases.to_device(first, r.device)]
    sets += [device_cases.to_device(sets[0], r.device) for _ in range(turn.sets - 1)]
    calls = [call_of(backend, stem, args) for args in sets]
    return {
        "backend": backend, "op": name, "B": batch, "gamma": gamma, "bytes": size, "sets": turn.sets,
        "flush_bytes": turn.flush_bytes, "warm_us": timing.warm(calls[0], r.device, r.samples),
        "cold_us": timing.cold(calls, turn.flush_bytes, r.device, r.samples),
        "host_us": timing.host(calls[0], r.device),
    }  # fmt: skip


def bandwidth(r: Run, columns: int, batch: int, width: int, backend: str) -> dict[str, Any]:
    """Scatter of rows that half the requests fill, beside a copy of as many bytes as the result has."""
    lens = torch.tensor([width, width // 2] * (batch // 2), dtype=torch.int32)
    cu = torch.cat([torch.zeros(1, dtype=torch.int32), lens.cumsum(0, dtype=torch.int32)]).to(r.device)
    compact = torch.ones(int(lens.sum()), columns, dtype=torch.bfloat16, device=r.device)
    out = torch.empty(batch * width, columns, dtype=torch.bfloat16, device=r.device)
    other = torch.zeros_like(out)
    moved = {"scatter": compact.nbytes + out.nbytes, "copy_": 2 * out.nbytes}
    calls = {
        "scatter": call_of(backend, "scatter_to_strided", (compact, cu, width, 0, out)),
        "copy_": lambda: other.copy_(out),
    }
    record: dict[str, Any] = {"backend": backend, "D": columns, "B": batch, "N": width}
    for name, call in calls.items():
        us = timing.percentiles([t / 4 for t in timing.sample([call] * 4, r.device, r.samples)])["p50"]
        record[name] = {"bytes": moved[name], "p50_us": us, "GB_per_s": round(moved[name] / max(us, 1e-3) / 1e3, 1)}
    record["of_copy"] = round(record["scatter"]["GB_per_s"] / max(record["copy_"]["GB_per_s"], 1e-9), 3)
    return record


def against_rival(r: Run, batch: int, gamma: int, backend: str, s: Any) -> Iterator[dict[str, Any]]:
    """Our operators and SGLang's functions by graph replay, after a check that they agree, and by the host's clock."""
    with dspark_ops.use_backend(backend):
        for pair in device_rival.pairs(batch, gamma, r.device, s):
            record: dict[str, Any] = {"backend": backend, "what": pair.what, "B": batch, "gamma": gamma}
            try:
                pair.check()
                for name, call in (("ours", pair.ours), ("rival", pair.rival)):
                    record[f"{name}_us"] = timing.warm(call, r.device, r.samples, repeat=16)
                    record[f"{name}_host_us"] = timing.host(call, r.device, repeat=30)
                record["ratio"] = round(record["rival_us"]["p50"] / max(record["ours_us"]["p50"], 1e-3), 2)
            except Exception as error:
                record["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            yield record
        ours, theirs = device_rival.host_plan(batch, gamma, r.device, s)
        record = {"backend": backend, "what": "whole decision, wall clock", "B": batch, "gamma": gamma}
        for name, call in (("ours", ours), ("rival", theirs)):
            call()
            record[f"{name}_us"] = timing.percentiles([timing._wall([call]) for _ in range(r.samples)])
        yield record


def sections(r: Run) -> Iterator[tuple[str, Any]]:
    """All sections in order of weight; a generator, so that the time limit can stop between any two records."""
    for backend in r.backends:
        yield "replay", replay(r, 64, 7, backend)
    yield "equality", iter(equality(r, r.limit * 0.35))
    for backend in r.backends:
        yield "latency", (attempt(latency, r, n, b, g, backend) for b, g in r.sizes for n in device_cases.CASES)
        shapes = [(4096, 2048, 8), (151_936, 64, 8)] if r.device != "cpu" else [(64, 4, 8)]
        yield "bandwidth", (attempt(bandwidth, r, *shape, backend) for shape in shapes)
    try:
        s = rival.load()
    except (rival.Unavailable, OSError) as reason:
        yield "rival", iter([{"unavailable": str(reason)}])
        return
    for backend in r.backends:
        yield "rival", (x for b, g in r.sizes for x in against_rival(r, b, g, backend, s))


def measure(r: Run) -> bool:
    """Run every section; whether all results were the reference's."""
    r.put("machine", facts(r))
    for section, records in sections(r):
        try:
            for record in records:
                r.put(section, record)
                if r.left() < 0:
                    r.put("left_out", f"rest of {section}")
                    break
        except Exception as error:
            r.put("left_out", f"rest of {section}: {type(error).__name__}: {str(error)[:300]}")
    wrong = [e for e in r.result["equality"] if e["differences"] or e["errors"] or not e["cases"]]
    wrong += [e for e in r.result["replay"] if e["difference"] or "error" in e]
    r.put("verdict", {"equal": not wrong, "wrong": [f"{e['backend']} {e['op']}" for e in wrong]})
    r.save()
    return not wrong


def main(argv: list[str] | None = None) -> int:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path(os.environ.get("OUT", ".")) / "device.json")
    parser.add_argument("--limit", type=float, default=420, help="seconds for the whole run")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--backends", help="comma-separated; default: all that serve the device but the reference")
    parser.add_argument("--sizes", default=",".join(f"{b}x{g}" for b, g in SIZES), help="comma-separated B x gamma")
    parser.add_argument("--pack-rival", type=Path, metavar="FILE", help="only write the rival's files to an archive")
    options = parser.parse_args(argv)
    if options.pack_rival:
        device_rival.pack(options.pack_rival)
        return 0
    if not torch.cuda.is_available():
        print("bench/device.py needs a GPU, and torch sees none here; bench/run.py measures the CPU.", file=sys.stderr)
        return 2
    usable = [b for b in dspark_ops.available_backends("cuda") if b != "reference"]
    backends = options.backends.split(",") if options.backends else usable
    sizes = [tuple(int(n) for n in size.split("x")) for size in options.sizes.split(",")]
    if missing := sorted(set(backends) - set(usable)):
        print(f"--backends: expected some of {', '.join(usable)}, got {', '.join(missing)}", file=sys.stderr)
        return 2
    r = Run("cuda", backends, sizes, options.limit, options.samples, options.json)  # type: ignore[arg-type]
    return 0 if measure(r) else 1


if __name__ == "__main__":
    sys.exit(main())
