"""What every table shares (`CostTable`): its JSON file, its cached rows, its fingerprint."""

from __future__ import annotations

import hashlib
import os
from typing import Any, TypeVar

import msgspec
import torch
from torch import Tensor

from .. import _checks
from .._files import write_atomic
from .step_cost import Device

Table = TypeVar("Table", bound="CostTable")

_DIGEST = "sha256"  # the fingerprint, in a file
# What msgspec raises for text that is not the JSON asked for: the last one, for what is nested too deeply.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class CostTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A cost model that is a JSON file: its fields are the file's fields."""

    def _set(self, **fields: Any) -> None:
        """Store validated fields of a frozen table, in __post_init__ only."""
        for name, value in fields.items():
            msgspec.structs.force_setattr(self, name, value)

    def _build_row(self, max_rows: int, group: int) -> Tensor:
        raise NotImplementedError

    def group_of(self, num_reqs: int) -> int:
        """Index of the row that holds for so many requests; a table that has only one row says 0."""
        return 0

    def row(self, max_rows: int, device: Device = "cpu", num_reqs: int = 1) -> Tensor:
        """Token-side cost in ns by rows, int32 [max_rows + 1].

        Cached per (max_rows, group of num_reqs, device): never write to it.
        """
        cache: dict[tuple[int, int, torch.device], Tensor] = self.__dict__.setdefault("_rows", {})
        key = (max_rows, self.group_of(num_reqs), torch.device(device))
        found = cache.get(key)
        if found is None:
            _checks.integer("max_rows", max_rows, 0, _checks.MAX_VERIFY_ROWS)
            found = cache[key] = self._build_row(max_rows, key[1]).to(key[2])
        return found

    def base(self, num_reqs: int, context_tokens: int | None = None) -> int:
        """0: everything is in the row."""
        _checks.integer("num_reqs", num_reqs, 0)
        return 0

    @property
    def is_flat(self) -> bool:
        """Whether T is the same for any number of rows. A planner then always verifies everything."""
        raise NotImplementedError

    @property
    def request_probes(self) -> tuple[int, ...]:
        """The numbers of requests for which the table has a time of its own; 1 if it does not tell them apart."""
        return (1,)

    @property
    def tiers(self) -> tuple[int, ...]:
        """The captured tiers that the table knows, ascending; empty if none."""
        return ()

    @property
    def gamma(self) -> int | None:
        """γ that the table was measured for; None if it does not say. The operators refuse any other γ."""
        return None

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the kind and the content: equal tables have equal ones, however their files are laid out.

        Ranks compare it before they plan: two tables of one machine are two schedules, and a hang.
        """
        cache = self.__dict__
        if "_fingerprint" not in cache:
            content = type(self).__name__.encode() + b"\n" + msgspec.json.encode(self)
            cache["_fingerprint"] = hashlib.sha256(content).hexdigest()
        return cache["_fingerprint"]

    def to_json(self) -> str:
        """The table as one line of JSON: SGLang's kinds as SGLang writes them, ours with their fingerprint."""
        text = msgspec.json.encode(self).decode()
        if self.__struct_config__.tag is None:
            return text
        return f'{text[:-1]},"{_DIGEST}":"{self.fingerprint}"}}'

    @classmethod
    def from_json(cls: type[Table], text: str | bytes) -> Table:
        """The table in `text`; ValueError naming the field for anything that is not exactly such a table.

        A kind of ours is also refused if its content is not what its fingerprint says; a file without one is taken.
        """
        try:
            if cls.__struct_config__.tag is None:
                return msgspec.json.decode(text, type=cls)
            fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
            digest = msgspec.json.decode(fields.pop(_DIGEST)) if _DIGEST in fields else None
            table = msgspec.json.decode(msgspec.json.encode(fields), type=cls)
        except UNREADABLE as error:
            raise ValueError(f"not a {cls.__name__}: {error}") from error
        if digest is not None and digest != table.fingerprint:
            raise ValueError(f"{_DIGEST}: the content was changed or damaged (take this field out after an edit)")
        return table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file in one step: on failure an older file stays whole."""
        write_atomic(path, self.to_json())
