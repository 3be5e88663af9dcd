"""Calibration files: SGLang's JSON unchanged, ours beside it; what does not fit is refused, and never half written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from damage import check_damaged

import dspark_ops
from dspark_ops.calibration import (
    AffineCalibration,
    Calibration,
    OffsetRule,
    StsCalibration,
    identity,
    load_calibration,
)

# As SGLang 0.5.23 writes it (msgspec, fields in this order, defaults left out).
SGLANG = '{"temperatures":[1.5,0.75],"dataset":"run","num_samples":400,"ece_before":[0.1,0.2],"ece_after":[0.05,0.1]}'
AFFINE = AffineCalibration(
    scale=[1.25, 0.0], bias=[-0.5, 1.0], acceptance="sampled", offset=OffsetRule(0.05, 0.99), num_samples=7
)


def test_sglangs_file_is_read_and_written_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "sts.json"
    path.write_text(SGLANG)
    calibration = load_calibration(path, gamma=2, acceptance="greedy")
    assert isinstance(calibration, StsCalibration)
    calibration.save(path)
    assert path.read_text() == SGLANG


def test_an_sts_of_sampled_outcomes_says_so_and_keeps_sglangs_fields(tmp_path: Path) -> None:
    calibration = StsCalibration(temperatures=[2.0, 1.0], acceptance="sampled")
    assert json.loads(calibration.to_json()) == {"temperatures": [2.0, 1.0], "acceptance": "sampled"}
    assert StsCalibration.from_json(calibration.to_json()) == calibration


@pytest.mark.parametrize("calibration", [AFFINE, identity(3, "sampled"), StsCalibration.from_json(SGLANG)])
def test_round_trip(tmp_path: Path, calibration: Calibration) -> None:
    calibration.save(tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json", calibration.gamma, calibration.acceptance) == calibration


def test_operands_are_what_the_operators_take() -> None:
    logits = torch.tensor([[0.3, -1.0], [2.0, 0.5]])
    offset = torch.tensor([0.25, -0.5])
    step_ns = torch.arange(1, 8, dtype=torch.int32)
    for calibration in (AFFINE, StsCalibration.from_json(SGLANG)):
        scale, bias = calibration.scale_bias()
        plan = dspark_ops.allocate_verify_lens(
            step_ns=step_ns, logits=logits, offset=offset, search="global", **calibration.operands()
        )
        want = torch.sigmoid(torch.tensor(scale) * logits + torch.tensor(bias or [0.0, 0.0]) + offset[:, None])
        assert plan.confidence is not None
        torch.testing.assert_close(plan.confidence, want, rtol=1e-6, atol=0)
    assert AFFINE.operands() is AFFINE.operands("cpu")


def test_the_offset_rule_is_the_operators() -> None:
    assert AFFINE.offset_rule is not None
    offset, confidence = torch.tensor([0.5]), torch.tensor([[0.5, 0.25]])
    AFFINE.offset_rule.update(offset, confidence, torch.tensor([1], dtype=torch.int32), torch.tensor([3]).int())
    assert offset.item() == pytest.approx(0.99 * 0.5 + 0.05 * ((1 - 0.5) + (0 - 0.25)))


def test_identity() -> None:
    assert identity(3, "greedy").is_identity
    assert not StsCalibration(temperatures=[1.0, 1.1]).is_identity
    assert not AFFINE.is_identity
    still = AffineCalibration(scale=[1.0], bias=[0.0], acceptance="greedy", offset=OffsetRule(0.1))
    assert not still.is_identity, "its offset will move"


@pytest.mark.parametrize("calibration", [AFFINE, StsCalibration(temperatures=[1.0, 2.0], acceptance="sampled")])
def test_another_gamma_is_refused(tmp_path: Path, calibration: Calibration) -> None:
    """Reported fault: a γ override met a calibration of the checkpoint's γ."""
    calibration.save(tmp_path / "c.json")
    with pytest.raises(ValueError, match=r"c.json: calibration: expected one fitted for γ = 7, got one for γ = 2"):
        load_calibration(tmp_path / "c.json", gamma=7)
    with pytest.raises(ValueError, match="scale: expected shape"):  # and the operator itself goes by the tensor
        dspark_ops.prefix_survival(logits=torch.zeros(1, 7), **calibration.operands())


def test_another_acceptance_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sts.json").write_text(SGLANG)
    with pytest.raises(ValueError, match="expected one fitted to sampled acceptance, got one fitted to greedy"):
        load_calibration(tmp_path / "sts.json", acceptance="sampled")
    with pytest.raises(ValueError, match="acceptance: expected one of greedy, sampled, got 'both'"):
        load_calibration(tmp_path / "sts.json", acceptance="both")


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"temperatures":[]}', "temperatures: expected at least one"),
        ('{"temperatures":[1.0,0.0]}', r"temperatures\[1\]: expected a number > 0"),
        ('{"temperatures":[1e-9]}', "temperatures: expected numbers >= 1e-06"),
        ('{"temperatures":[1e400]}', "temperatures"),
        ('{"temperatures":[1.0],"ece_after":[0.1,0.2]}', "ece_after: expected 1 numbers or none, got 2"),
        ('{"temperatures":[1.0],"acceptance":"maybe"}', "acceptance: expected one of"),
        ('{"temperatures":[1.0],"temperature":2.0}', "unknown field"),
        ('{"scale":[1.0],"bias":[0.0]}', "acceptance"),
        ('{"scale":[1.0],"bias":[0.0,1.0],"acceptance":"greedy"}', "bias: expected as many numbers as scale"),
        ('{"scale":[-1.0],"bias":[0.0],"acceptance":"greedy"}', r"scale\[0\]: expected a number >= 0"),
        ('{"scale":[1.0],"bias":[0.0],"acceptance":"greedy","offset":{"eta":-1.0}}', "eta: expected a number in"),
        ('{"scale":[1.0],"bias":[0.0],"acceptance":"greedy","offset":{"eta":0.1,"decay":1.5}}', "decay"),
        ('{"gamma":7}', "expected the field temperatures or scale, got gamma"),
        ("[]", "c.json"),
        ("", "c.json"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_calibration(path)
    assert str(path) in str(error.value)


def test_a_number_too_large_for_a_float_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"temperatures\[0\]: expected a number > 0"):
        StsCalibration(temperatures=[10**400])


def test_a_failed_write_leaves_the_good_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.json"
    AFFINE.save(path)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        identity(2, "greedy").save(path)
    assert load_calibration(path) == AFFINE and list(tmp_path.iterdir()) == [path]


def test_a_truncated_file_never_loads(tmp_path: Path) -> None:
    path, text = tmp_path / "c.json", AFFINE.to_json()
    for end in range(len(text)):
        path.write_text(text[:end])
        with pytest.raises(ValueError):
            load_calibration(path)


def test_a_damaged_file_is_refused_by_name_or_still_valid(tmp_path: Path) -> None:
    AFFINE.save(tmp_path / "c.json")
    assert check_damaged(load_calibration, tmp_path / "c.json", 300) > 150
