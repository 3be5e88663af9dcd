"""Reading a cost table of whichever kind."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from .additive import AdditiveTable
from .floor import FloorTable
from .table import UNREADABLE, CostTable
from .tier import TierTable

# SGLang's files do not name their kind: their fields tell it. Ours do.
_THEIRS: tuple[type[CostTable], ...] = (FloorTable, AdditiveTable)
_OURS: dict[str, type[CostTable]] = {"tier_table": TierTable}


def _kind(fields: dict[str, msgspec.Raw]) -> type[CostTable]:
    if "kind" in fields:
        try:
            kind = msgspec.json.decode(fields["kind"], type=str)
        except UNREADABLE as error:
            raise ValueError(f"kind: {error}") from error
        if kind not in _OURS:
            raise ValueError(f"kind: expected one of {', '.join(_OURS)}, got {kind!r}")
        return _OURS[kind]
    shared, found = max(((len(fields.keys() & set(t.__struct_fields__)), t) for t in _THEIRS), key=lambda pair: pair[0])
    if not shared:
        known = "; ".join(f"{t.__name__}: {', '.join(t.__struct_fields__)}" for t in _THEIRS)
        known += f"; or kind: {', '.join(_OURS)}"
        raise ValueError(f"expected the fields of one cost table ({known}), got {', '.join(fields) or 'none'}")
    return found


def load_cost_table(path: str | os.PathLike[str]) -> CostTable:
    """The cost table in a JSON file, of whichever kind its fields say.

    Raises ValueError naming the file and the field if it is not exactly such a table, OSError if it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise ValueError(f"{path}: not a JSON object: {error}") from error
    try:
        return _kind(fields).from_json(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
