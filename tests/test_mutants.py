"""Bugs planted in the native planner, each of which the test named beside it must notice."""

from __future__ import annotations

import pytest
from workshop import Workshop

from dspark_ops import _sources

PLANNING, SELECT, ORDER = "csrc/cpu/planning.cpp", "csrc/cpu/select.cpp", "csrc/common/order.h"
SCHEDULE, BUDGET = "tests/test_schedule_verify_lens.py::", "tests/test_plan_budget.py::"

MUTANTS = {
    "order: the sort leaves out the lowest digit": (
        SELECT, "for (int d = 0; d < kDigits; ++d) {\n    uint32_t* start", "for (int d = 1; d < kDigits; ++d) {\n    uint32_t* start",
        BUDGET + "test_neighbouring_floats_are_told_apart",
    ),
    "order: the selection takes one candidate too few": (
        SELECT, "above + histogram[bucket] < admitted", "above + histogram[bucket] <= admitted",
        SCHEDULE + "test_equals_definition_at_every_budget",
    ),
    "tie rule: by request before position": (
        PLANNING, "while (k < cap - 1 && k < last && row[k] == at) ++k;", "while (k < cap - 1 && left > 0 && row[k] == at) ++k, --left;",
        SCHEDULE + "test_ties_go_by_position_then_request",
    ),
    "tie rule: one tie too many": (
        PLANNING, "row[k] == at && left > 0", "row[k] == at && left >= 0",
        SCHEDULE + "test_ties_go_by_position_then_request",
    ),
    "floor: mandatory rows are candidates": (
        PLANNING, "for (int32_t k = max64(floor - 1, 0); k < cap - 1 && row[k] >= rules", "for (int32_t k = 0; k < cap - 1 && row[k] >= rules",
        SCHEDULE + "test_mandatory_rows_are_not_candidates",
    ),
    "floor: min_verify_len = 0 drops the root": (
        ORDER, "min_verify_len > 1 ? min_verify_len : 1", "min_verify_len > 0 ? min_verify_len : 0",
        BUDGET + "test_equals_definition",
    ),
    "cap: one row too many": (
        PLANNING, "k < cap - 1 && row[k] >= rules.survival_eps", "k < cap && row[k] >= rules.survival_eps",
        SCHEDULE + "test_no_slot_is_wasted_at_the_cap",
    ),
    "eps: a survival equal to it is left out": (
        PLANNING, "row[k] >= rules.survival_eps", "row[k] > rules.survival_eps",
        SCHEDULE + "test_rows_below_eps_are_never_verified",
    ),
    "fill: past what max_rows allows": (
        PLANNING, "max64(bounded, min64(tier - c.min_rows, most))", "max64(bounded, tier - c.min_rows)",
        BUDGET + "test_equals_definition",
    ),
    "fill: the tier below": (
        PLANNING, "tiers.rows[i] < tier)", "tiers.rows[i] > tier)",
        BUDGET + "test_equals_definition",
    ),
    "comparison: doubles decide alone": (
        PLANNING, "gain > bar * kAbove || ratio_greater(tau, t, best_tau, best_t)", "gain > bar",
        BUDGET + "test_exact_where_doubles_are_not",
    ),
    "comparison: the last of equal ratios wins": (
        ORDER, "return greater96(mul96(tau_a, t_b), mul96(tau_b, t_a));", "return !greater96(mul96(tau_b, t_a), mul96(tau_a, t_b));",
        BUDGET + "test_exact_where_doubles_are_not",
    ),
    "comparison: the product loses its carry": (
        ORDER, "* uint64_t(t) + (low >> 32)", "* uint64_t(t)",
        BUDGET + "test_exact_where_doubles_are_not",
    ),
    "first drop: goes on over a plateau": (
        ORDER, "return t_after > t_before && !greater96(", "return t_after > t_before && greater96(",
        BUDGET + "test_paper_appendix_a",
    ),
    "min gain: not strict": (
        ORDER, "return limb[0][0] > limb[1][0];", "return limb[0][0] >= limb[1][0];",
        BUDGET + "test_min_gain_keeps_the_full_budget",
    ),
    "calibration: the offset is scaled too": (
        "csrc/cpu/prefix_survival.cpp", "return sigmoid(has_offset ? x + in.offset[slot] : x);", "return sigmoid(has_offset && in.scale ? x + in.scale[k] * in.offset[slot] : x);",
        "tests/test_operators.py::test_equals_reference[cpu-prefix_survival]",
    ),
    "survival: multiplied in double": (
        ORDER, "const float p = prefix * confidence;", "const float p = float(double(prefix) * confidence * (1 + 0x1p-23));",
        "tests/test_prefix_survival.py::test_golden",
    ),
    "survival: small products are kept": (
        ORDER, "return p < 7.8886090522101181e-31f ? 0.0f : p;", "return p;",
        "tests/test_prefix_survival.py::test_flush_to_zero_mode_cannot_matter",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    shop = Workshop(tmp_path_factory.mktemp("mutants"))
    shop.build()
    return shop


def test_the_named_tests_pass_unplanted(shop: Workshop) -> None:
    done = shop.run(*sorted({test for *_, test in MUTANTS.values()}))
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_library_of_other_sources_is_known(shop: Workshop) -> None:
    (library,) = (shop.folder / "dspark_ops").glob("_C*.so")
    assert not _sources.is_stale(library)
    for file in ("setup.py", PLANNING, ORDER):
        text = (shop.folder / file).read_text()
        shop.restore(file, text + "\n")
        stale = _sources.is_stale(library)
        shop.restore(file, text)
        assert stale and not _sources.is_stale(library), file


# The ordinary run plants one bug of each kind that needs no rebuild of everything.
QUICK = ("order: the selection", "tie rule: one", "floor: mandatory", "comparison: doubles")
CASES = [m if m.startswith(QUICK) else pytest.param(m, marks=pytest.mark.full) for m in MUTANTS]


@pytest.mark.parametrize("mutant", CASES)
def test_is_caught(shop: Workshop, mutant: str) -> None:
    file, old, new, test = MUTANTS[mutant]
    before = shop.replace(file, old, new)
    try:
        shop.build()
        done = shop.run(test)
    finally:
        shop.restore(file, before)
    assert done.returncode == 1, f"{test} did not notice\n{done.stdout[-2000:]}"
