"""The staircase table: ceil to the tier, growth past the last one, groups, and its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from damage import check_damaged

from dspark_ops import StepCost, TierGroup, TierTable, load_cost_table, plan_budget
from dspark_ops.cost import CostTable

MS = 1e-3
SMALL = TierGroup(4, [4, 8, 16], [1 * MS, 2 * MS, 4 * MS], [20, 24], [6 * MS, 8 * MS])
LARGE = TierGroup(16, [16, 32], [5 * MS, 9 * MS])
TABLE = TierTable([SMALL, LARGE], gamma=7)


def ms(table: CostTable, max_rows: int, num_reqs: int = 1) -> list[float]:
    return [ns / 1e6 for ns in table.row(max_rows, num_reqs=num_reqs).tolist()]


def test_staircase_and_its_own_growth_by_hand() -> None:
    steps = [1.0] * 5 + [2.0] * 4 + [4.0] * 8
    # The first sample's slope leads back to 17 rows: 6 - 3 * 0.5.
    eager = [4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0]
    assert ms(TABLE, 26) == steps + eager
    for max_rows in (0, 3, 4, 5, 16, 17, 20, 24):
        assert ms(TABLE, max_rows) == (steps + eager)[: max_rows + 1]


def test_ceil_never_floor() -> None:
    row = TABLE.row(32, num_reqs=16)
    for tier, seconds in zip(LARGE.tiers, LARGE.tier_seconds, strict=True):
        assert row[tier] == row[tier - 1] == round(seconds * 1e9)
        assert tier == 32 or row[tier + 1] > row[tier]


def test_groups_have_room_for_the_requests() -> None:
    assert [TABLE.group_of(n) for n in (0, 1, 4, 5, 16, 17, 999)] == [0, 0, 0, 1, 1, 1, 1]
    assert TABLE.row(20, num_reqs=5) is TABLE.row(20, num_reqs=16)
    assert TABLE.row(20, num_reqs=5) is not TABLE.row(20, num_reqs=4)
    assert TABLE.base(5, 1000) == 0
    assert TABLE.tiers == (4, 8, 16, 32)
    assert isinstance(TABLE, StepCost)


@pytest.mark.parametrize(
    ("group", "last"),
    [
        (TierGroup(1, [2, 4], [1 * MS, 2 * MS]), [2.0, 2.5, 3.0]),  # the last two tiers' slope
        (TierGroup(1, [4], [2 * MS]), [2.0, 2.5, 3.0]),  # one tier: in proportion to rows
        (TierGroup(1, [2, 4], [2 * MS, 2 * MS]), [2.0, 2.5, 3.0]),  # flat tiers too
        (TierGroup(1, [3], [1 * MS], [4], [2 * MS]), [2.0, 2.5, 3.0]),  # one eager sample
        (TierGroup(1, [3], [1 * MS], [2, 4], [3 * MS, 2 * MS]), [2.0, 2.5, 3.0]),  # noise made them fall
        (TierGroup(1, [], [], [2, 4], [1 * MS, 2 * MS]), [2.0, 2.5, 3.0]),  # no graph at all
        (TierGroup(1, [3], [5 * MS], [4, 5], [2 * MS, 2.5 * MS]), [2.0, 2.5, 3.0]),
    ],
)
def test_never_flat_past_the_last_sample(group: TierGroup, last: list[float]) -> None:
    row = ms(TierTable([group]), 6)
    assert row[4:] == last
    assert all(row[i + 1] > row[i] for i in range(4, 6))


def test_eager_is_not_cheaper_than_the_last_tier() -> None:
    """The slope of the samples leads below the tier: the line starts at the tier's own time."""
    row = ms(TierTable([TierGroup(1, [4], [2 * MS], [9, 10], [3 * MS, 6 * MS])]), 10)
    assert row[4:6] == [2.0, 2.0] and row[6:10] == [2.25, 2.5, 2.75, 3.0]


def test_eager_samples_below_the_last_tier_do_not_lead_below_it() -> None:
    """A step past the tier that nobody measured does not become a bargain by a cheap eager step before it."""
    assert ms(TierTable([TierGroup(1, [4], [4 * MS], [3], [1 * MS])]), 6)[4:] == [4.0, 4.0, 4.333333]
    row = ms(TierTable([TierGroup(1, [4], [4 * MS], [2, 8], [1 * MS, 7 * MS])]), 8)
    assert row[4:] == [4.0, 4.0, 5.0, 6.0, 7.0]


def test_no_graphs_is_a_line_through_the_samples() -> None:
    table = TierTable([TierGroup(2, [], [], [2, 4, 8], [1 * MS, 2 * MS, 2 * MS])])
    assert ms(table, 10) == [1, 1, 1, 1.5, 2, 2, 2, 2, 2, 2.25, 2.5]
    assert table.tiers == ()


def test_a_very_long_line_stays_in_int32() -> None:
    row = TierTable([TierGroup(1, [4], [2.0])]).row(1000)
    assert row.dtype is torch.int32 and row[-1] == 2**31 - 1 and (row > 0).all()


def test_flat_is_said() -> None:
    assert TierTable([TierGroup(1, [4, 8], [MS, MS]), TierGroup(9, [16], [2 * MS])]).is_flat
    assert not TierTable([TierGroup(1, [4, 8], [MS, MS]), TierGroup(9, [16, 32], [2 * MS, 3 * MS])]).is_flat
    assert not TierTable([TierGroup(1, [4], [MS], [5], [2 * MS])]).is_flat


def test_a_plan_stops_at_the_cliff() -> None:
    """63 rows: two more are worth it up to the tier at 64, and not past it."""
    table = TierTable([TierGroup(63, [64, 96], [10 * MS, 20 * MS])])
    survival = torch.full((63, 1), 0.9)
    assert int(plan_budget(survival, table, search="global")[1]) == 64


def test_saves_and_loads(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "t.json")
    loaded = load_cost_table(tmp_path / "t.json")
    assert loaded == TABLE and loaded.fingerprint == TABLE.fingerprint
    assert json.loads((tmp_path / "t.json").read_text())["kind"] == "tier_table"
    assert check_damaged(load_cost_table, tmp_path / "t.json", 200) > 100


def changed(**fields: object) -> str:
    return json.dumps(json.loads(TABLE.to_json()) | fields)


def group(**fields: object) -> str:
    first = json.loads(TABLE.to_json())["groups"][0] | fields
    return changed(groups=[first])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed(kind="stairs"), "kind: expected one of .*tier_table.* got 'stairs'"),
        (changed(kind=3), "kind: expected one of .* got 3"),
        (changed(version=2), "version: expected 1.* got 2"),
        (changed(version=True), "version"),
        (changed(extra=1), "unknown field `extra`"),
        (changed(groups=[]), "groups: expected at least one group"),
        (changed(groups=json.loads(TABLE.to_json())["groups"][::-1]), "groups.num_reqs: expected strictly increasing"),
        (changed(gamma=0), "gamma: expected an int in"),
        (group(num_reqs=-1), r"num_reqs: expected an int in .* got -1 - at `\$.groups\[0\]`"),
        (group(tiers=[4, 4, 16]), "tiers: expected strictly increasing"),
        (group(tiers=[4, 8]), "tier_seconds: expected 2 numbers, one per tiers, got 3"),
        (group(tiers=[], tier_seconds=[], eager_rows=[], eager_seconds=[]), "tiers: expected at least one tier or"),
        (group(tier_seconds=[1, 2, 0]), r"tier_seconds\[2\]: expected seconds in \(0, 2.147483647\], got 0"),
        (group(tier_seconds=[1, 2, 3]), r"tier_seconds\[2\]: expected seconds in"),
        (group(eager_seconds=[1e-12, -1]), r"eager_seconds\[1\]: expected seconds in"),
        (group(eager_rows=[20.5, 24]), "Expected `int`, got `float`"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(ValueError, match=says) as error:
        load_cost_table(tmp_path / "t.json")
    assert str(error.value).startswith(f"{tmp_path / 't.json'}: ")


def test_bad_values_in_python() -> None:
    with pytest.raises(TypeError, match=r"groups\[1\]: expected a TierGroup, got str"):
        TierTable([SMALL, "b"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="tiers: expected integers"):
        TierGroup(1, [1.5], [1.0])  # type: ignore[list-item]
