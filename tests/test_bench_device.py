"""The prepared GPU run, on a CPU: all of it but the graphs, so that it works the first time someone has a GPU."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import dspark_ops

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
import aot_rows
import device as bench


def backend() -> str:
    return "cpu" if "cpu" in dspark_ops.available_backends("cpu") else "reference"


def small(file: Path | None = None, limit: float = 60.0) -> Any:
    return bench.Run("cpu", [backend()], [(3, 2)], limit, samples=2, file=file)


def no_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise bench.rival.Unavailable("not in this test")

    monkeypatch.setattr(bench.rival, "load", load)


def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bench.equality
    monkeypatch.setattr(bench, "equality", lambda r, seconds: whole(r, seconds, seeds=3))


def test_whole_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_rival(monkeypatch)
    few_seeds(monkeypatch)
    file = tmp_path / "out" / "device.json"
    assert bench.measure(small(file))
    result = json.loads(file.read_text())
    assert set(result) == {"machine", "replay", "equality", "latency", "bandwidth", "rival", "verdict"}
    lines = list(bench.device_cases.CASES)
    assert [e["op"] for e in result["replay"]] == [e["op"] for e in result["latency"]] == lines
    assert {e["op"] for e in result["equality"]} == {bench.device_cases.stem_of(n) for n in lines} | set(
        bench._registry.stems()
    )
    assert all(e["cases"] == 3 for e in result["equality"])
    assert all(set(e["warm_us"]) == set(e["cold_us"]) == {"p20", "p50", "p80"} for e in result["latency"])
    assert result["rival"] == [{"unavailable": "not in this test"}]
    assert result["verdict"] == [{"equal": True, "wrong": []}]


def test_every_operator_has_a_line() -> None:
    lines = {bench.device_cases.stem_of(n) for n in bench.device_cases.CASES}
    assert lines == set(bench._registry.stems())


@pytest.mark.parametrize(("batch", "gamma"), [(1, 1), (8, 7), (256, 15)])
def test_lines_pass_the_operators_checks_and_keep_their_shapes(batch: int, gamma: int) -> None:
    for name in bench.device_cases.CASES:
        first, second = (bench.device_cases.make(name, batch, gamma, seed) for seed in (1, 2))
        for a, b in zip(first, second, strict=True):
            assert a.shape == b.shape if isinstance(a, torch.Tensor) else a == b
        getattr(torch.ops.dspark, bench.device_cases.stem_of(name)).default(*first)


def test_calls_to_compile_ahead_of_time_pass_the_operators_checks() -> None:
    for stem in aot_rows.CALLS.keys() - {"verify_metadata"}:  # which is no operator, and checks for itself
        for _, args in aot_rows.CALLS[stem]():
            bench._registry._schemas[stem][1](*args)


def test_a_wrong_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    no_rival(monkeypatch)
    few_seeds(monkeypatch)
    honest = bench.call_of

    def broken(name: str, stem: str, args: Any) -> Any:
        if stem == "state_rows":
            raise RuntimeError("does not compile")
        return (lambda: None) if stem == "pad_to_bucket" else honest(name, stem, args)

    monkeypatch.setattr(bench, "call_of", broken)
    r = small()
    assert not bench.measure(r)
    wrong = [f"{backend()} {stem}" for stem in ("pad_to_bucket", "state_rows")]
    assert sorted(set(r.result["verdict"][0]["wrong"])) == wrong
    failed = [e for e in r.result["latency"] if "error" in e]
    assert [e["which"][0] for e in failed] == ["state_rows"] and len(r.result["latency"]) > 10
    (replayed,) = (e for e in r.result["replay"] if e["op"] == "pad_to_bucket")
    assert "padded" in replayed["difference"]


def test_time_limit_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    no_rival(monkeypatch)
    r = small(limit=0.0)
    assert bench.measure(r)
    assert "rest of latency" in r.result["left_out"]
    assert len(r.result["latency"]) == 1
    assert all(e["cases"] == 1 for e in r.result["equality"])


def test_rotation() -> None:
    rotation = bench.timing.rotation
    l2 = 50 << 20
    tiny = rotation(1000, l2)
    assert (tiny.sets, tiny.flush_bytes) == (64, 2 * l2)
    large = rotation(64 << 20, l2)
    assert (large.sets, large.flush_bytes) == (64, 0)  # the 63 other sets are more than the cache twice over
    huge = rotation(3 << 30, l2)
    assert (huge.sets, huge.flush_bytes) == (2, 0)
    assert rotation(0, l2).flush_bytes == 2 * l2
    for size in (1, 1 << 10, 1 << 20, 1 << 24, 1 << 28):
        turn = rotation(size, l2)
        assert (turn.sets - 1) * size + turn.flush_bytes >= 2 * l2


def test_cold_takes_the_flush_off(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = bench.timing
    monkeypatch.setattr(timing, "sample", lambda calls, device, samples: [100.0 + 7.0 * (len(calls) - 1)] * samples)
    assert timing.cold([lambda: None] * 10, 1 << 16, "cpu", 3) == {"p20": 7.0, "p50": 7.0, "p80": 7.0}


def test_percentiles() -> None:
    assert bench.timing.percentiles([5, 1, 2, 4, 3]) == {"p20": 1, "p50": 3, "p80": 4}


def pretend(dspark: Any) -> SimpleNamespace:
    """SGLang's functions, with the reference in their place."""

    def layout(**kw: Any) -> Any:
        return dspark.ragged_layout(kw["verify_lens"], kw["padded_total"])

    def ids(**kw: Any) -> Any:
        lens, rows = kw["layout"].verify_lens, kw["layout"].graph_num_tokens
        roots = kw["draft_block_ids"][:, 0]
        return dspark.ragged_layout(lens, rows, root_tokens=roots, draft_tokens=kw["draft_tokens"]).verify_ids

    def scatter(**kw: Any) -> Any:
        cu = dspark.ragged_layout(kw["layout"].verify_lens, 0).cu_seqlens
        return dspark.scatter_to_strided(kw["compact"], cu, kw["verify_num_draft_tokens"])

    def tokens(**kw: Any) -> Any:
        whole = torch.cat([kw["draft_tokens"], torch.zeros_like(kw["bonus"])[:, None]], 1)
        return whole.scatter(1, kw["correct_len"].long()[:, None], kw["bonus"][:, None])

    def cap(correct_len: Any, verify_lens: Any) -> Any:
        correct = torch.minimum(correct_len, verify_lens - 1)
        return correct, correct_len - correct

    def finish(**kw: Any) -> Any:
        commit = kw["correct_len"] + 1
        new = kw["prefix_lens"] + commit
        return SimpleNamespace(cap_trim_lens=kw["cap_trim_lens"], commit_lens=commit, new_seq_lens=new)

    return SimpleNamespace(
        DSparkScheduleConfig=lambda gamma: None,
        SpsAdditiveCostTable=SimpleNamespace(from_json=lambda text: None),
        compute_sort_survival=lambda c: c.cumprod(1),
        compute_verify_token_budget=lambda **kw: SimpleNamespace(budget=2),
        schedule_verify_lens_topk_triton=lambda confidence, budget, cfg: (
            dspark.allocate_verify_lens(confidence, budget=budget).verify_lens
        ),
        build_qo_indptr_triton=lambda verify_lens: SimpleNamespace(
            qo_indptr=dspark.ragged_layout(verify_lens, 0).cu_seqlens
        ),
        compact_row_index_triton=lambda **kw: (None, layout(**kw).row_offset, None),
        compact_verify_ids_triton=ids,
        pad_verify_lens_to_bucket_triton=lambda **kw: (
            dspark.pad_to_bucket(kw["verify_lens"], kw["graph_num_tokens"], kw["padded_bs"]).padded
        ),
        scatter_compact_to_strided_triton=scatter,
        cap_correct_len_triton=cap,
        finalize_accept_lens_triton=finish,
        build_out_tokens_triton=tokens,
    )


def test_rival_pairs() -> None:
    s = pretend(dspark_ops)
    records = list(bench.against_rival(small(), 5, 3, backend(), s))
    assert [e.get("error") for e in records] == [None] * 7
    assert all(e["ours_us"]["p50"] >= 0 and e["rival_us"]["p50"] >= 0 for e in records)
    s.cap_correct_len_triton = lambda correct_len, verify_lens: (correct_len, correct_len - correct_len)
    errors = [e["what"] for e in bench.against_rival(small(), 5, 3, backend(), s) if "error" in e]
    assert errors == ["finish acceptance"]


def test_pack_rival(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = [f"{name.replace('.', '/')}.py" for name in bench.rival.REAL]
    with zipfile.ZipFile(tmp_path / "big.whl", "w") as wheel:
        for path in [*paths, "sglang/other.py"]:
            wheel.writestr(path, path)
    monkeypatch.setenv("DSPARK_RIVAL_WHEEL", str(tmp_path / "big.whl"))
    assert bench.main(["--pack-rival", str(tmp_path / "a" / "small.whl")]) == 0
    with zipfile.ZipFile(tmp_path / "a" / "small.whl") as small_wheel:
        assert sorted(small_wheel.namelist()) == sorted(paths)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([]) == 2
    assert "needs a GPU" in capsys.readouterr().err
