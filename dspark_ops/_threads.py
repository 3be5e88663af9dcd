"""One torch thread for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_inside: list[int] = []  # per caller that is in: the number to restore, which the first one found


@contextmanager
def one_thread() -> Iterator[None]:
    """For loops over small tensors: torch's threads take longer to wake than the work, most of all on a busy host.

    The number belongs to the process, so with several callers the last one to leave restores it.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            found = _inside.pop()
            if not _inside:
                torch.set_num_threads(found)
