"""Loading traces: what is read, and what is refused with which words."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_trace
from damage import check_damaged

from dspark_ops.trace import Trace

EXAMPLES = Path(__file__).parents[1] / "examples/traces"
Fields = dict[str, np.ndarray]


def test_loads_the_example_trace() -> None:
    trace = Trace.load(EXAMPLES / "greedy_small.npz")
    assert trace.gamma == 7
    assert len(trace.request_starts) == 75
    assert np.bincount(trace.domain[trace.request_starts]).tolist() == [25, 25, 25]


def test_loads_what_was_written(tmp_path: Path) -> None:
    fields = tiny_trace.arrays([[2, 0], [1], [0, 2, 1]])
    trace = Trace.load(tiny_trace.save(tmp_path / "t.npz", fields))
    assert trace.request_starts.tolist() == [0, 2, 3]
    for name, values in fields.items():
        assert np.array_equal(getattr(trace, name), values)


def test_a_request_may_commit_less_at_its_last_step(tmp_path: Path) -> None:
    fields = tiny_trace.arrays([[2, 0], [1], [0, 2, 2]])
    fields["commit_len"][5] = 1
    assert Trace.load(tiny_trace.save(tmp_path / "t.npz", fields)).commit_len[5] == 1


def put(name: str, index: int, value: float) -> Callable[[Fields], object]:
    return lambda f: f[name].reshape(-1).__setitem__(index, value)


def replace(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Callable[[Fields], object]:
    return lambda f: f.__setitem__(name, make(f[name]))


BAD_TRACES = {
    "missing field": (lambda f: f.pop("z"), "z: the field is missing"),
    "wrong dtype": (replace("z", lambda a: a.astype(np.float64)), "z: expected float32, got float64"),
    "float tokens": (replace("draft_tokens", lambda a: a * 1.0), "draft_tokens: expected a signed integer dtype"),
    "wrong gamma": (replace("z_refit", lambda a: a[:, :1]), r"z_refit: expected shape \[6, 2\], got \[6, 1\]"),
    "wrong width": (replace("target_argmax", lambda a: a[:, :2]), r"target_argmax: expected shape \[6, 3\]"),
    "wrong steps": (replace("bonus_token", lambda a: a[1:]), r"bonus_token: expected shape \[6\], got \[5\]"),
    "flat drafts": (replace("draft_tokens", np.ravel), r"draft_tokens: expected shape \[S, γ\]"),
    "no steps": (replace("draft_tokens", lambda a: a[:0]), r"draft_tokens: .* not empty"),
    "NaN": (put("z", 1, np.nan), "z: expected finite values .* got nan"),
    "infinite": (put("z_refit", 1, np.inf), "z_refit: expected finite values .* got inf"),
    "correct_len over gamma": (put("correct_len", 0, 3), r"correct_len: expected .* \[0, 2\], got 3"),
    "negative token": (put("target_argmax", 0, -1), "target_argmax: expected .* got -1"),
    "domain without a name": (put("domain", 0, 1), r"domain: expected .* \[0, 0\], got 1"),
    "probability over 1": (put("soft_accept", 0, 1.5), "soft_accept: expected .* got 1.5"),
    "names are numbers": (replace("domain_names", lambda a: np.array([1])), "domain_names: expected strings"),
    "pickled": (replace("domain_names", lambda a: np.array([{}], object)), "without pickled objects"),
    "step jumps": (put("step", 1, 5), "step: expected the rows of each request together"),
    "request returns": (lambda f: (put("request_id", 5, 0)(f), put("step", 5, 0)(f)), "step: expected the rows"),
    "prefix jumps": (put("prefix_len", 1, 99), "prefix_len: expected the previous"),
    "prefix ignores what was accepted": (
        lambda f: (put("correct_len", 0, 1)(f), put("commit_len", 0, 2)(f)),
        r"prefix_len: expected the previous step's prefix_len \+ correct_len \+ 1",
    ),
    "commits too much": (put("commit_len", 2, 3), r"commit_len: expected correct_len \+ 1, or less at a"),
    "commits less before the end": (put("commit_len", 0, 2), r"commit_len: expected correct_len \+ 1, or less at a"),
    "anchor is not the bonus": (put("anchor_token", 1, 99), "anchor_token: expected the previous step's bonus_token"),
    "bonus is not the anchor": (put("bonus_token", 0, 99), "anchor_token: expected the previous step's bonus_token"),
}


@pytest.mark.parametrize("change, message", BAD_TRACES.values(), ids=BAD_TRACES)
def test_refuses_a_bad_trace(tmp_path: Path, change: Callable[[Fields], object], message: str) -> None:
    fields = tiny_trace.arrays([[2, 0], [1], [0, 2, 1]])
    change(fields)
    path = tiny_trace.save(tmp_path / "bad.npz", fields)
    with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
        Trace.load(path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_refuses_a_file_that_is_no_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected an \.npz archive"):
        Trace.load(path)


def test_refuses_a_single_array_and_a_damaged_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match="a single array"):
        Trace.load(tmp_path / "one.npy")
    whole = (EXAMPLES / "greedy_small.npz").read_bytes()
    middle = len(whole) // 2
    (tmp_path / "damaged.npz").write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    with pytest.raises(ValueError, match=r"damaged\.npz: \w+: expected an array without pickled objects in"):
        Trace.load(tmp_path / "damaged.npz")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_damaged_files_are_value_errors(tmp_path: Path, write: Callable[..., None]) -> None:
    path = tmp_path / "t.npz"
    write(path, **tiny_trace.arrays([[2, 0], [1], [0, 2, 1]]))
    assert check_damaged(Trace.load, path, 250) > 100


HEADERS = {
    "unbalanced": "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 2), ",
    "huge": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**30}, 2), }}",
    "too large for memory": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**17},), }}",
    "nested": "(" * 5000,
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_refuses_an_array_with_a_damaged_header(tmp_path: Path, header: str) -> None:
    """The checksum of a member is looked at last, so numpy parses what stands there."""
    path = tiny_trace.save(tmp_path / "t.npz", tiny_trace.arrays([[2, 0], [1], [0, 2, 1]]))
    text = header.encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(48)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (members | {"z.npy": member}).items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=f"^{path}: z: expected an array without pickled objects in an .npz archive"):
        Trace.load(path)


@pytest.mark.parametrize(("place", "value"), [(6, b"\xff"), (8, b"\xff\xff"), (10, b"\x63\x00")])
def test_refuses_a_member_that_zipfile_cannot_read(tmp_path: Path, place: int, value: bytes) -> None:
    """Too new a version, encryption and an unknown compression: zipfile has other errors than BadZipFile for these."""
    path = tiny_trace.save(tmp_path / "t.npz", tiny_trace.arrays([[2, 0], [1], [0, 2, 1]]))
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + place : entry + place + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"^{path}: "):
        Trace.load(path)


def test_a_missing_file_stays_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "t.npz")
