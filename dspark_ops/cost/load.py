"""Reading a cost table of whichever kind, from a file, from JSON, or from what JSON holds inside another table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from .table import UNREADABLE, CostTable, Table

# SGLang's files do not name their kind: their fields tell it. Ours do.
_THEIRS: list[type[CostTable]] = []
_OURS: dict[str, type[CostTable]] = {}


def known(kind: type[Table]) -> type[Table]:
    """Let this kind of table be read."""
    tag = kind.__struct_config__.tag
    if isinstance(tag, str):
        _OURS[tag] = kind
    else:
        _THEIRS.append(kind)
    return kind


def _kind_of(fields: dict[str, Any]) -> type[CostTable]:
    if "kind" in fields:
        kind = fields["kind"]
        if not isinstance(kind, str) or kind not in _OURS:
            raise ValueError(f"kind: expected one of {', '.join(_OURS)}, got {kind!r}")
        return _OURS[kind]
    shared, found = max(((len(fields.keys() & set(t.__struct_fields__)), t) for t in _THEIRS), key=lambda pair: pair[0])
    if not shared:
        choices = "; ".join(f"{t.__name__}: {', '.join(t.__struct_fields__)}" for t in _THEIRS)
        choices += f"; or kind: {', '.join(_OURS)}"
        raise ValueError(f"expected the fields of one cost table ({choices}), got {', '.join(fields) or 'none'}")
    return found


def inner_table(name: str, value: object) -> CostTable:
    """A table that is a field of another one: a table, or the object that JSON holds for it."""
    if isinstance(value, dict):
        try:
            return msgspec.convert(value, _kind_of(value))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    if not isinstance(value, CostTable):
        raise TypeError(f"{name}: expected a cost table, got {type(value).__name__}")
    return value


def parse_cost_table(text: str | bytes) -> CostTable:
    """The cost table that is JSON in `text`, of whichever kind its fields say; ValueError naming the field if none."""
    try:
        raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        fields = raw | {"kind": msgspec.json.decode(raw["kind"])} if "kind" in raw else raw
    except UNREADABLE as error:
        raise ValueError(f"not a JSON object: {error}") from error
    return _kind_of(fields).from_json(text)


def load_cost_table(path: str | os.PathLike[str]) -> CostTable:
    """The cost table in a JSON file, of whichever kind its fields say.

    Raises ValueError naming the file and the field if it is not exactly such a table, OSError if it cannot be read.
    """
    try:
        return parse_cost_table(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
