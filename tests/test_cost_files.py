"""Files of cost tables: they round-trip, and a damaged one never loads and never replaces a good one."""

from __future__ import annotations

import builtins
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspark_ops import AdditiveTable, ContextTable, FloorTable, OnlineCost, TierGroup, TierTable, load_cost_table
from dspark_ops.cost import CorrectedTable, CostTable, parse_cost_table

times = st.floats(1e-6, 1.0)
probes = st.lists(st.integers(1, 4096), min_size=1, max_size=4, unique=True).map(sorted)


@st.composite
def curves(draw: st.DrawFn, values: Any = times) -> tuple[list[int], list[float]]:
    rows = draw(probes)
    return rows, draw(st.lists(values, min_size=len(rows), max_size=len(rows)))


@st.composite
def plain_tables(draw: st.DrawFn) -> CostTable:
    """A table of any kind that holds no other."""
    kind = draw(st.sampled_from(["floor", "additive", "tier"]))
    rows, seconds = draw(curves())
    if kind == "floor":
        return FloorTable(rows, [1 / t for t in seconds], draw(st.integers(rows[-1], 2**31 - 1)))
    if kind == "additive":
        return AdditiveTable(0.1, *draw(curves(st.floats(-0.04, 0.5))), *draw(curves(st.floats(-0.04, 0.5))))
    eager = draw(st.one_of(st.just(([], [])), curves()))
    groups = [TierGroup(bs, rows, seconds, *eager) for bs in draw(probes)[:3]]
    return TierTable(groups, draw(st.one_of(st.none(), st.integers(1, 15))))


@st.composite
def tables(draw: st.DrawFn) -> CostTable:
    table = draw(plain_tables())
    if draw(st.booleans()):
        table = ContextTable(table, draw(st.floats(0, 1e-12)), draw(st.integers(0, 100)))
    if draw(st.booleans()):
        cost = OnlineCost(table, None if table.tiers else [8, 64])
        cost.observe(5, draw(times))
        table = cost.publish()
    return table


@settings(max_examples=30, deadline=None)
@given(table=tables())
def test_round_trip(table: CostTable) -> None:
    text = table.to_json()
    again = parse_cost_table(text)
    assert again == table and type(again) is type(table)
    assert again.to_json() == text and again.fingerprint == table.fingerprint
    spaced = json.dumps(json.loads(text), indent=3, sort_keys=True)
    assert parse_cost_table(spaced).fingerprint == table.fingerprint, "the layout of a file does not matter"


@settings(max_examples=30, deadline=None)
@given(table=tables(), data=st.data())
def test_a_truncated_file_never_loads(table: CostTable, data: st.DataObject) -> None:
    text = table.to_json()
    with pytest.raises(ValueError, match=r"\w"):
        parse_cost_table(text[: data.draw(st.integers(0, len(text) - 1))])


@settings(max_examples=60, deadline=None)
@given(table=tables(), data=st.data())
def test_a_damaged_file_of_ours_never_gives_another_table(table: CostTable, data: st.DataObject) -> None:
    """SGLang's form has no room for a digest: a digit of it may change unseen. Ours has."""
    if isinstance(table, FloorTable | AdditiveTable):
        return
    damaged = bytearray(table.to_json().encode())
    for _ in range(data.draw(st.integers(1, 3))):
        digit = st.sampled_from(b"0123456789")
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.one_of(st.integers(0, 255), digit))
    try:
        loaded = parse_cost_table(bytes(damaged))
    except ValueError:
        return
    assert loaded == table


def test_a_changed_digit_is_seen_and_an_edit_can_be_made() -> None:
    text = TierTable([TierGroup(1, [8], [0.25])]).to_json()
    with pytest.raises(ValueError, match="sha256: the content was changed or damaged"):
        parse_cost_table(text.replace("0.25", "0.35"))
    fields = json.loads(text.replace("0.25", "0.35"))
    del fields["sha256"]
    assert parse_cost_table(json.dumps(fields)) == TierTable([TierGroup(1, [8], [0.35])])


class Full(io.BytesIO):
    """A disk that is full after so many bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        super().write(data[: self.room])
        raise OSError("no space left")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), room=st.integers(0, 500))
def test_a_failed_save_leaves_the_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: CostTable, room: int
) -> None:
    path = tmp_path / "t.json"
    good = TierTable([TierGroup(1, [8], [0.25])])
    good.save(path)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", lambda *args, **kwargs: Full(room))
        with pytest.raises(OSError, match="no space left"):
            table.save(path)
    assert load_cost_table(path) == good and os.listdir(tmp_path) == ["t.json"]


def test_fingerprints_tell_content_and_kind() -> None:
    """Fault 3 of facts/peers.md: ranks that loaded different tables. They compare 64 hex digits first."""
    group = TierGroup(4, [8, 16], [0.001, 0.002])
    table = TierTable([group])
    others = [
        TierTable([TierGroup(4, [8, 16], [0.001, 0.0020000000000000005])]),
        TierTable([TierGroup(5, [8, 16], [0.001, 0.002])]),
        TierTable([TierGroup(4, [8], [0.001], [16], [0.002])]),
        TierTable([group], gamma=7),
        ContextTable(table, 0.0, 0),
        CorrectedTable(table, 1.0, table),
        FloorTable([8, 16], [1000.0, 500.0], 16),
        FloorTable([8, 16], [1000.0, 500.0], 17),
        AdditiveTable(0.001, [1], [0.0], [8, 16], [0.0, 0.001]),
    ]
    prints = [one.fingerprint for one in (table, *others)]
    assert len(set(prints)) == len(prints) and all(len(p) == 64 and int(p, 16) for p in prints)
    assert TierTable((TierGroup(4, (8, 16), (0.001, 0.002)),)).fingerprint == table.fingerprint
    zero, minus = (AdditiveTable(0.1, [1], [z], [1], [0.0]) for z in (0.0, -0.0))
    assert zero == minus and zero.fingerprint == minus.fingerprint


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seconds_per_token": -1.0}, r"seconds_per_token: expected seconds in \[0, 1\], got -1.0"),
        ({"seconds_per_token": "1"}, "seconds_per_token|Expected `float`"),
        ({"context_per_request": -1}, "context_per_request: expected an int in"),
        ({"seconds_per_token": 0.01, "context_per_request": 100}, "expected less than the whole step, got 10"),
        ({"table": 3}, "table: expected a cost table, got int"),
        ({"table": {"kind": "stairs"}}, "table: kind: expected one of"),
        ({"table": {"kind": "tier_table", "groups": []}}, "table: groups: expected at least one group"),
        ({"version": 2}, "version: expected 1, the one this package reads, got 2"),
    ],
)
def test_a_bad_context_table_names_the_field(change: dict[str, object], says: str) -> None:
    fields = json.loads(ContextTable(TierTable([TierGroup(1, [8], [0.25])]), 1e-6, 100).to_json())
    del fields["sha256"]
    with pytest.raises(ValueError, match=says):
        parse_cost_table(json.dumps(fields | change))


def test_context_term_by_hand() -> None:
    inner = AdditiveTable(0.001, [1, 3], [0.0, 0.002], [1, 8], [0.0, 0.001])
    table = ContextTable(inner, 1e-6, 100)
    assert table.base(2) == inner.base(2) == 2_000_000
    assert table.base(2, 200) == 2_000_000, "the context that it was measured at"
    assert table.base(2, 1200) == 3_000_000 and table.base(2, 0) == 1_800_000
    assert table.row(8) is inner.row(8) and table.is_flat == inner.is_flat
    assert table.base(2, 1 << 40) == 2_000_000 + 2 * (2**31 - 1), "more than any step, and no overflow"
    with pytest.raises(ValueError, match="context_tokens: expected an int in"):
        table.base(2, -1)
    with pytest.raises(TypeError, match="table: expected a table without a context term"):
        ContextTable(table, 0.0, 0)
