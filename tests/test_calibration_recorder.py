"""The recorder: SGLang's shards and one field more; what would spoil a fit is refused (reported fault 10)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dspark_ops.calibration import (
    AffineCalibration,
    OffsetRule,
    Samples,
    StsCalibration,
    StsRecorder,
    fit_sts,
    identity,
    load_shards,
)

Z = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
CORRECT = torch.tensor([3, 1], dtype=torch.int32)


def record(stem: Path, acceptance: str = "greedy", calls: int = 1) -> list[Path]:
    with StsRecorder(stem, 3, acceptance) as recorder:
        for _ in range(calls):
            recorder.record(Z, CORRECT)
    return sorted(stem.parent.glob(f"{stem.name}.*.pt"))


def test_a_shard_is_sglangs_and_says_the_event(tmp_path: Path) -> None:
    (path,) = record(tmp_path / "deep" / "run")
    shard = torch.load(path, weights_only=True)
    assert torch.equal(shard["logits"], Z) and shard["logits"].dtype == torch.float32
    assert shard["prefix_mask"].tolist() == [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    assert shard["acceptance"] == "greedy" and "request" not in shard


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    with StsRecorder(tmp_path / "run", 3, "sampled", flush_every=2) as recorder:
        for step in range(5):
            recorder.record(Z.double() + step, CORRECT, torch.tensor([4, 4]), torch.tensor([10, 11]))
    paths = sorted(tmp_path.iterdir())
    assert [p.name for p in paths] == ["run.00000.pt", "run.00001.pt", "run.00002.pt"]
    samples = load_shards(paths)
    assert (len(samples), samples.gamma, samples.acceptance) == (10, 3, "sampled")
    assert samples.correct_len.tolist() == [3, 1] * 5
    assert [r.tolist() for r in samples.requests()] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert samples.logits[9].tolist() == (Z[1] + 4).tolist()


def test_a_restart_goes_on_after_the_shards_that_are_there(tmp_path: Path) -> None:
    record(tmp_path / "run")
    (tmp_path / "run.extra.pt").write_text("not a shard of it")
    assert [p.name for p in record(tmp_path / "run")][:2] == ["run.00000.pt", "run.00001.pt"]


def test_inactive_requests_are_left_out(tmp_path: Path) -> None:
    with StsRecorder(tmp_path / "run", 3, "greedy") as recorder:
        recorder.record(Z, CORRECT, torch.tensor([0, 4]))
        recorder.record(Z, CORRECT, torch.tensor([0, 0]))
    assert load_shards([tmp_path / "run.00000.pt"]).correct_len.tolist() == [1]


@pytest.mark.parametrize("length", [1, 3])
def test_a_trimmed_step_is_refused(tmp_path: Path, length: int) -> None:
    recorder = StsRecorder(tmp_path / "run", 3, "greedy")
    with pytest.raises(ValueError, match=rf"verify_lens\[1\]: expected 4 .* or 0, got {length}: a trimmed step"):
        recorder.record(Z, torch.tensor([3, 0]), torch.tensor([4, length]))
    recorder.flush()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "calibration",
    [
        StsCalibration(temperatures=[1.0, 1.0, 1.5]),
        AffineCalibration(scale=[1.0] * 3, bias=[0.0, 0.1, 0.0], acceptance="greedy"),
        AffineCalibration(scale=[1.0] * 3, bias=[0.0] * 3, acceptance="greedy", offset=OffsetRule(0.1)),
    ],
)
def test_recording_under_a_calibration_is_refused(tmp_path: Path, calibration: StsCalibration) -> None:
    with pytest.raises(ValueError, match="calibration: expected none, or the identity, while recording"):
        StsRecorder(tmp_path / "run", 3, "greedy", calibration=calibration)
    StsRecorder(tmp_path / "run", 3, "greedy", calibration=identity(3, "greedy"))


def test_another_gamma_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"logits: expected shape \[B, 3\] \(γ of this recorder\), got \[2, 2\]"):
        StsRecorder(tmp_path / "run", 3, "greedy").record(Z[:, :2], CORRECT)
    with pytest.raises(ValueError, match="expected one fitted for γ = 3, got one for γ = 2"):
        StsRecorder(tmp_path / "run", 3, "greedy", calibration=identity(2, "greedy"))


def test_request_ids_in_every_call_or_in_none(tmp_path: Path) -> None:
    recorder = StsRecorder(tmp_path / "run", 3, "greedy")
    recorder.record(Z, CORRECT)
    with pytest.raises(ValueError, match="request_ids: expected in every call or in none"):
        recorder.record(Z, CORRECT, request_ids=torch.tensor([1, 2]))


def test_request_ids_in_every_shard_or_in_none(tmp_path: Path) -> None:
    recorder = StsRecorder(tmp_path / "run", 3, "greedy", flush_every=1)
    recorder.record(Z, CORRECT, request_ids=torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="request_ids: expected in every call or in none"):
        recorder.record(Z, CORRECT)


def test_shards_of_different_events_do_not_mix(tmp_path: Path) -> None:
    paths = record(tmp_path / "a", "greedy") + record(tmp_path / "b", "sampled")
    with pytest.raises(ValueError, match=r"b.00000.pt: .*greedy and sampled acceptance are different events"):
        load_shards(paths)
    with pytest.raises(ValueError, match=r"b.00000.pt: acceptance: expected greedy, got sampled"):
        load_shards(paths, "greedy")


def test_sglangs_shard_needs_the_event_named(tmp_path: Path) -> None:
    path = tmp_path / "sglang.0.pt"
    torch.save({"logits": Z, "prefix_mask": (torch.arange(3) < CORRECT[:, None]).float()}, path)
    with pytest.raises(ValueError, match="the file does not say which event it holds"):
        load_shards([path])
    samples = load_shards([path], "greedy")
    assert samples.acceptance == "greedy" and samples.correct_len.tolist() == [3, 1]
    assert fit_sts(samples).num_samples == 2


@pytest.mark.parametrize(
    "content, message",
    [
        (b"not a shard", "expected a shard written by torch.save"),
        ({"logits": Z}, "expected a dict with the tensors logits and prefix_mask"),
        ({"logits": Z, "prefix_mask": torch.ones(2, 2)}, r"prefix_mask: expected shape \[2, 3\]"),
        ({"logits": Z, "prefix_mask": torch.tensor([[0.0, 1, 0]] * 2)}, "prefix_mask: expected rows of ones"),
        ({"logits": Z, "prefix_mask": torch.full((2, 3), 0.5)}, "prefix_mask: expected rows of ones"),
        ({"logits": Z, "prefix_mask": torch.ones(2, 3), "request": [1, 2]}, "request: expected a tensor, got list"),
        ({"logits": Z, "prefix_mask": torch.ones(2, 3), "request": torch.ones(3).long()}, "request: expected integers"),
        ({"logits": Z.to_sparse(), "prefix_mask": torch.ones(2, 3)}, "logits: expected a dense tensor of real numbers"),
        ({"logits": Z, "prefix_mask": torch.ones(2, 3).to_sparse()}, "prefix_mask: expected a dense tensor"),
        ({"logits": Z + 0j, "prefix_mask": torch.ones(2, 3)}, "logits: expected a dense tensor of real numbers"),
        ({"logits": Z * torch.nan, "prefix_mask": torch.ones(2, 3)}, "logits: expected finite"),
    ],
)
def test_a_bad_shard_is_refused_by_name(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "bad.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(ValueError, match=message) as error:
        load_shards([path], "greedy")
    assert str(path) in str(error.value)


def test_a_truncated_shard_never_loads(tmp_path: Path) -> None:
    (path,) = record(tmp_path / "run", calls=3)
    whole = path.read_bytes()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="expected a shard"):
            load_shards([path])


def test_a_failed_write_leaves_no_half_of_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    recorder = StsRecorder(tmp_path / "run", 3, "greedy")
    recorder.record(Z, CORRECT)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="disk full"):
            recorder.flush()
    assert not list(tmp_path.iterdir())
    recorder.flush()  # what was held is not lost
    assert len(load_shards(sorted(tmp_path.iterdir()))) == 2


def test_samples_of_a_recorder_equal_those_of_the_steps(tmp_path: Path) -> None:
    (path,) = record(tmp_path / "run", calls=2)
    want = Samples(torch.cat([Z, Z]), torch.cat([CORRECT, CORRECT]).long(), "greedy")
    got = load_shards([path])
    assert torch.equal(got.logits, want.logits) and torch.equal(got.outcome, want.outcome)
