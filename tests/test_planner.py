"""The planner on one process: what it remembers, when it plans, which graph it takes, what it reports."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from planner_cases import GAMMA, STEEP, rows_of, slots_of, step, table

import dspark_ops
from dspark_ops import Planner, _backends
from dspark_ops.planner import _ring, fingerprint


def test_it_learns_what_to_trim_though_it_starts_with_everything() -> None:
    """Without history a plan verifies all: it must be observed all the same, or there never is a history."""
    planner = Planner(STEEP, gamma=GAMMA, slots=8, lag=2)
    slots, hopeless = torch.arange(8), rows_of(8, 0.01, 0.01, 0.01)
    budgets = []
    for _ in range(4):
        decision, plan = step(planner, slots, hopeless)
        assert plan is not None
        budgets.append(decision.budget)
    assert budgets == [24, 24, 0, 0], "lag 2: the third decision sees the first confidences"
    assert plan.verify_lens.tolist() == [1] * 8


def test_current_confidences_only_rank() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=16)
    slots = torch.arange(16)
    step(planner, slots, rows_of(16, 0.9, 0.2, 0.1))
    current = rows_of(16, 0.5, 0.5, 0.5)
    current[3] = 1.0
    decision, plan = step(planner, slots, current)
    assert plan is not None and 0 < decision.budget < 48
    assert plan.stats[0] == decision.budget and plan.verify_lens[3] == 4


def test_a_new_request_in_a_slot_has_no_past() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=4, bypass=False)
    step(planner, slots_of(2), rows_of(1, 0.01, 0.01, 0.01))
    assert planner.decide(slots_of(2)).predicted_tau < 1.1
    planner.admit([2])
    assert planner.decide(slots_of(2)).predicted_tau == 4.0
    assert planner.generation.tolist() == [1, 1, 2, 1]


def test_lag_0_plans_from_the_step_itself_and_must_say_how() -> None:
    with pytest.raises(ValueError, match="search: must be named with lag 0"):
        Planner(STEEP, gamma=GAMMA, slots=4, lag=0)
    planner = Planner(STEEP, gamma=GAMMA, slots=8, lag=0, search="first_drop")
    slots = torch.arange(8)
    with pytest.raises(ValueError, match="lag: 0 plans from this step's confidences"):
        planner.decide(slots)
    planner.observe(slots, rows_of(8, 0.01, 0.01, 0.01))
    assert planner.decide(slots).budget == 0


@given(
    st.lists(st.floats(0.2, 4.0), min_size=17, max_size=17), st.integers(1, 4), st.integers(0, 300_000),
    st.integers(0, 2**31),
)  # fmt: skip
def test_bypass_leaves_out_only_what_would_trim_nothing(ms: list[float], requests: int, ppm: int, seed: int) -> None:
    cost = table(*((rows, ms[rows]) for rows in range(1, 17)))
    assume(not cost.is_flat)
    history = torch.rand(4, GAMMA, generator=torch.Generator().manual_seed(seed)) * 0.9 + 0.1
    slots = torch.arange(requests)
    decisions = []
    for bypass in (True, False):
        planner = Planner(cost, gamma=GAMMA, slots=4, bypass=bypass, min_gain_ppm=ppm)
        planner.observe(slots, history[:requests])
        decisions.append(planner.decide(slots))
    assert decisions[1].reason == "planned"
    assert decisions[0].budget == decisions[1].budget


def test_a_flat_start_of_a_table_that_learns_does_not_last() -> None:
    cost = dspark_ops.OnlineCost(table((1, 1.0)), tiers=[8, 16, 32], refresh=0)
    with pytest.warns(UserWarning, match="the table is flat"):
        planner = Planner(cost, gamma=GAMMA, slots=8)
    slots = torch.arange(8)
    assert planner.decide(slots).reason == "flat" == planner.verify_all
    cost.observe(32, 0.002, num_reqs=8)
    cost.publish()
    assert planner.decide(slots).reason == "planned" and planner.verify_all is None


@pytest.mark.parametrize("rule", ["maximum", "joint"])
def test_a_table_that_learns_is_asked_anew(rule: Any) -> None:
    """What is kept of a table (its ends, its times at the tiers, its mark) goes with the row it came from."""
    cost = dspark_ops.OnlineCost(table((1, 1.0), (64, 1.001)), tiers=[8, 16, 32], refresh=0)
    planner = Planner(cost, gamma=GAMMA, slots=8, graphs=[(8, 8), (16, 8), (32, 8)], rule=rule, min_gain_ppm=10_000)
    slots = torch.arange(8)
    planner.observe(slots, rows_of(8, 0.3, 0.2, 0.1))
    before = planner.decide(slots), planner.propose(slots)[1]
    for _ in range(200):
        for rows, seconds in ((8, 0.001), (16, 0.008), (32, 0.016)):
            cost.observe(rows, seconds, num_reqs=8)
    assert planner.decide(slots).graph == before[0].graph, "nothing published yet"
    cost.publish()
    after = planner.decide(slots)
    assert (before[0].graph, after.graph) == ((32, 8), (8, 8))
    assert before[0].predicted_ns < 1_100_000 and after.predicted_ns == pytest.approx(1_000_000, rel=0.2)
    if rule == "joint":
        assert planner.propose(slots)[1] != before[1], "the mark by which ranks compare tables"


def test_the_tier_is_filled_with_drafts() -> None:
    """The plan stops at 10 rows, where time goes up, but the graph has 12: two more drafts come for nothing."""
    graphs = [(8, 8), (12, 8), (16, 8), (32, 8)]
    cost = table((1, 1.0), (11, 1.5), (13, 4.0))
    found = {}
    for fill in (True, False):
        planner = Planner(cost, gamma=GAMMA, slots=8, graphs=graphs, fill_tier=fill)
        for confidence in (0.2, 0.2):
            decision, plan = step(planner, torch.arange(8), rows_of(8, confidence, 0.1, 0.1))
        assert plan is not None and decision.graph == (12, 8) and plan.stats[2] == 12
        found[fill] = (decision.local_budget, decision.budget, int(plan.stats[1]))
    assert found == {True: (2, 4, 12), False: (2, 2, 10)}
    planner.force(1)
    assert planner.decide(torch.arange(8)).budget == 1, "a forced budget is not filled"


def test_a_fingerprint_sees_every_part() -> None:
    t = torch.arange(6)
    parts = [[t, 1], [t[::2], 1], [t.int(), 1], [1, t], [t, 2], [t, "1"], [t, None]]
    marks = [fingerprint(p) for p in parts]
    assert len(set(marks)) == len(marks)
    assert fingerprint([t[::2]]) == fingerprint([torch.tensor([0, 2, 4])])


def test_past_the_graphs_it_runs_eager() -> None:
    planner = Planner(None, gamma=GAMMA, slots=8, graphs=[(4, 2), (8, 2)])
    assert planner.decide(slots_of(0, 1)).graph == (8, 2)
    decision = planner.decide(slots_of(0, 1, 2))
    assert (decision.graph, decision.rows) == (None, 12)


def test_forced_budgets() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8)
    slots = torch.arange(8)
    for budget, want in ((5, 5), (100, 24), (0.5, 12), (1.0, 24), (0, 0)):
        planner.force(budget)
        decision = planner.decide(slots)
        assert (decision.reason, decision.budget, decision.trims) == ("forced", want, want < 24)
    planner.force(None)
    assert planner.decide(slots).reason == "planned"
    with pytest.raises(ValueError, match=r"budget: expected a number in \[0, 1\]"):
        planner.force(1.5)


def test_caps_bound_the_plan() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8)
    caps = torch.tensor([4, 2, 1, 0, 9, 4, 4, 4], dtype=torch.int32)
    decision = planner.decide(torch.arange(8), caps=caps)
    assert (decision.full_rows, decision.budget) == (4 + 2 + 1 + 0 + 4 + 12, 23 - 7)
    plan = planner.allocate(decision, rows_of(8, 0.9, 0.9, 0.9), caps=caps)
    assert plan is not None and plan.verify_lens.tolist() == [4, 2, 1, 0, 4, 4, 4, 4]


def test_idle_and_fallback_alone() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8, graphs=[(8, 8)])
    idle = planner.decide()
    assert (idle.reason, idle.graph, idle.trims, idle.idle_lens().tolist()) == ("idle", None, False, [])
    decision = planner.fall_back(slots_of(1, 2))
    assert (decision.reason, decision.rows, decision.budget, decision.trims) == ("fallback", -1, 6, False)
    assert planner.allocate(decision, rows_of(2, 0.1, 0.1, 0.1)) is None


def test_calibrated_logits_are_observed_as_confidences() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=4, bypass=False)
    logits, bias = torch.zeros(2, GAMMA, dtype=torch.bfloat16), torch.full((GAMMA,), 2.0)
    planner.allocate(planner.decide(slots_of(3, 1)), logits=logits, bias=bias)
    c = 1 / (1 + torch.exp(torch.tensor(-2.0)))
    entry = planner._ring.read()
    # sigmoid may differ by 2 ulp.
    assert torch.allclose(entry.confidence[[1, 3]], c) and entry.confidence[[0, 2]].eq(0).all()


def test_a_forced_device_back_end_leaves_the_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8)
    cuda = _backends.get_backend("cuda")
    monkeypatch.setattr(_backends, "_forced", cuda)
    monkeypatch.setattr(_backends, "forced_namespace", cuda.namespace)
    with pytest.raises(RuntimeError, match="serves cuda tensors"):
        dspark_ops.prefix_survival(torch.rand(1, 3))
    assert planner.decide(torch.arange(8)).reason == "planned"
    assert _backends.forced_namespace == cuda.namespace


class Accelerator:
    """Stands for a device module: a copy is over when the test says so."""

    def __init__(self) -> None:
        self.over = True
        self.waits = 0

    def Event(self) -> Any:
        return self

    def current_stream(self, device: torch.device) -> str:
        return str(device)

    def record(self, stream: str) -> None:
        assert stream == "cuda:3"

    def query(self) -> bool:
        return self.over

    def synchronize(self) -> None:
        self.waits += 1


def test_copies_from_a_device_land_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Accelerator()
    monkeypatch.setattr(torch, "get_device_module", lambda _: device)
    pinned = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, pin_memory=False: pinned(*size))
    ring = _ring.LagRing(2, 4, GAMMA, torch.device("cuda:3"))
    slots, first = slots_of(1, 3), rows_of(2, 0.5, 0.5, 0.5)
    ring.write(slots, first, slots_of(1, 1))
    slots.zero_()  # the caller may reuse its tensor
    assert ring.read().generation.tolist() == [0, 0, 0, 0], "the other entry"
    ring.write(slots_of(0), rows_of(1, 0.25, 0.25, 0.25), slots_of(7))
    assert ring.read().generation.tolist() == [0, 1, 0, 1]
    assert ring.read().confidence[:, 0].tolist() == [0, 0.5, 0, 0.5]
    device.over = False
    ring.write(slots_of(2), rows_of(1, 0.1, 0.1, 0.1), slots_of(9))
    assert (ring.read().generation.tolist(), ring.late, device.waits) == ([7, 0, 0, 0], 1, 1)
    for slot in (1, 2, 3, 2):  # nobody reads: a copy is put in place before its buffer takes the next
        ring.write(slots_of(slot), rows_of(1, slot / 4, 0, 0), slots_of(slot))
    assert ring.read().generation.tolist() == [7, 1, 0, 3]
    assert ring.read().confidence[:, 0].tolist() == [0.25, 0.25, 0, 0.75]


def test_statistics() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=8, graphs=[(8, 8), (16, 8), (32, 8)], keep=3)
    slots = torch.arange(8)
    for _ in range(4):
        decision, plan = step(planner, slots, rows_of(8, 0.1, 0.1, 0.1))
        assert plan is not None
        planner.record(decision, rows=int(plan.stats[1]), tokens=9, step_ns=1_100_000)
    assert planner.statistics.summary() == {
        "steps": 3, "requests": 24, "rows": 24, "trimmed_rows": 72, "tokens": 27,
        "tau": {"predicted": 8.0, "actual": 9.0, "bias": pytest.approx(1 / 8)},
        "ns": {"predicted": 1_000_000, "actual": 1_100_000, "bias": pytest.approx(0.1)},
        "reasons": {"planned": 3}, "tiers": {8: 3},
    }  # fmt: skip
    assert Planner(None, gamma=1, slots=1).statistics.summary()["tau"] == {
        "predicted": None,
        "actual": None,
        "bias": None,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gamma": 0}, "gamma: expected an int"),
        ({"slots": 0}, "slots: expected an int"),
        ({"lag": -1}, "lag: expected an int"),
        ({"rule": "mean"}, "rule: expected one of maximum, joint"),
        ({"rule": "joint"}, "rule: 'joint' chooses among graphs"),
        ({"identity": "trust"}, "identity: expected one of check, broadcast"),
        ({"search": "best"}, "search: expected 'global' or 'first_drop'"),
        ({"search": "first_drop", "min_gain_ppm": 5}, "min_gain_ppm: not with"),
        ({"survival_eps": 0.0}, "survival_eps: expected a number"),
        ({"min_verify_len": 5}, r"min_verify_len: expected an int in \[0, 4\]"),
        ({"graphs": [(9, 2)]}, r"graphs: expected slots <= rows <= slots \* 4, got rows 9, slots 2"),
        ({"graphs": [(4, 2), (4, 2)]}, r"graphs: expected different keys"),
    ],
)
def test_refuses_bad_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Planner(STEEP, **{"gamma": GAMMA, "slots": 8} | given)


def test_refuses_bad_steps() -> None:
    planner = Planner(STEEP, gamma=GAMMA, slots=4)
    with pytest.raises(ValueError, match=r"slots: expected values in \[0, 4\), got \[4\]"):
        planner.decide(slots_of(4))
    with pytest.raises(TypeError, match=r"slots: expected dtype torch.int64, got torch.int32"):
        planner.decide(torch.zeros(1, dtype=torch.int32))
    with pytest.raises(ValueError, match="confidence: give exactly one of"):
        planner.allocate(planner.decide(slots_of(0, 1, 2)))
