"""Planners of several processes (gloo): one tier for all data-parallel ranks, one plan for all tensor-parallel ones."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import rank_worker
from torch.multiprocessing import start_processes

Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What every rank found, by rank: all scenarios in one start of four processes, forked from one that has torch."""
    folder: Path = tmp_path_factory.mktemp("ranks")
    multiprocessing.set_forkserver_preload(["torch", "torch.distributed", "dspark_ops"])
    start_processes(rank_worker.main, (str(folder),), nprocs=rank_worker.WORLD, start_method="forkserver")
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(rank_worker.WORLD)]


@pytest.mark.parametrize("rule", ["maximum", "joint"])
def test_all_ranks_choose_the_same_tier_in_every_step(found: Found, rule: str) -> None:
    steps = list(zip(*(ranks[rule] for ranks in found), strict=True))
    assert len(steps) == rank_worker.STEPS
    graphs = set()
    for i, ranks in enumerate(steps):
        assert len({(r["rows"], tuple(r["graph"] or ())) for r in ranks}) == 1, f"step {i}"
        falls_back = i % 10 == 7 or not any(r["requests"] for r in ranks)
        assert {r["reason"] == "fallback" for r in ranks} == {falls_back}
        if falls_back:
            assert all(r["rows"] == -1 and r["graph"] is None and not r["trims"] for r in ranks)
            continue
        rows, slots = ranks[0]["graph"]
        graphs.add((rows, slots))
        assert max(r["requests"] for r in ranks) <= slots
        assert all(r["verified"] <= rows for r in ranks if r["trims"])
        assert ranks[rank_worker.IDLE]["idle_lens"] == [1] * slots
    assert len(graphs) > 6, "the loads hardly differ: nothing was tested"


def test_the_maximum_rule_takes_the_largest_local_plan(found: Found) -> None:
    rows_of = {slots: [r for r, s in rank_worker.GRAPHS if s == slots] for _, slots in rank_worker.GRAPHS}
    for ranks in zip(*(ranks["maximum"] for ranks in found), strict=True):
        if ranks[0]["graph"] is not None:
            rows, slots = ranks[0]["graph"]
            most = max(r["own_rows"] for r in ranks)
            assert ranks[0]["rows"] == most
            assert slots == min(s for s in rows_of if s >= max(r["requests"] for r in ranks))
            assert rows == min(r for r in rows_of[slots] if r >= most)


def test_the_rules_do_differ(found: Found) -> None:
    pairs = list(zip(found[0]["maximum"], found[0]["joint"], strict=True))
    assert sum(a["graph"] != b["graph"] for a, b in pairs) > 20


def test_equal_tensor_parallel_ranks_go_on(found: Found) -> None:
    for a, b in ((found[0], found[1]), (found[2], found[3])):
        assert a["same"]["error"] is None and len(a["same"]["lens"]) == 20
        assert a["same"] == b["same"]


def test_the_fingerprint_catches_a_drift_on_both_ranks(found: Found) -> None:
    for ranks in found:
        step, message = ranks["drift"]["error"]
        assert step <= rank_worker.LAG + 1, "seen once it is used"
        assert "decision: ranks differ" in message


def test_broadcast_gives_identical_plans_under_the_same_drift(found: Found) -> None:
    for a, b in ((found[0], found[1]), (found[2], found[3])):
        assert a["broadcast"]["error"] is None and len(a["broadcast"]["lens"]) == 20
        assert a["broadcast"] == b["broadcast"]
        assert a["broadcast"] == a["same"], "the first rank's own plans"


def test_fault_2_ranks_that_drift_apart(found: Found) -> None:
    """Unprotected they take lengths 3 and 4: the fault is here, and what is done about it."""
    assert [ranks["fault_2_alone"]["lens"][-1] for ranks in found] == [[3], [4], [3], [4]]
    assert all("ranks differ" in ranks["fault_2_check"]["error"] for ranks in found)
    assert len({json.dumps(ranks["fault_2_broadcast"]) for ranks in found}) == 1
    assert found[0]["fault_2_broadcast"] == {"lens": [[4], [3], [3]], "error": None}


def test_fault_3_different_tables_are_refused_before_the_first_step(found: Found) -> None:
    assert all("ranks [1] have another cost table" in ranks["tables_tp"] for ranks in found)
    assert all("ranks [1] have another cost table" in ranks["tables_dp"] for ranks in found)
