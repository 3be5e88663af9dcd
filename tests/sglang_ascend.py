"""SGLang 0.5.23's Ascend back end for DeepSeek-V4, its own classes read from its wheel, on a small world on the CPU.

Only the classes and functions named here are executed, without their imports (torch_npu is not needed to compute
metadata). The wheel is DSPARK_RIVAL_WHEEL, or the one that `bench/run.py` keeps in the user's cache: none is fetched.
"""

from __future__ import annotations
import __future__

import ast
import os
import zipfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import torch

NPU = "sglang/srt/hardware_backend/npu"
FILES = {
    "sglang/srt/mem_cache/deepseek_v4_compress_state.py": {"CompressStatePool"},
    f"{NPU}/dsv4/dsv4_memory_pool.py": {"NPUCompressStatePool"},
    f"{NPU}/dsv4/dsv4_common_hooks.py": {"maybe_build_dsv4_verify_bundle"},
    f"{NPU}/attention/ascend_dsv4_backend.py": {
        "_build_explicit_state_block_table", "CompressorAscendBackendMixin", "DeepseekV4AscendAttnBackend",
    },
}  # fmt: skip
PAGE, C128_PAGE, WINDOW_PAGE, CONTEXT = 128, 4, 128, 1024
RINGS = {4: 16, 128: 256}
DUMMY = {4: 4095, 128: 8191}


def wheel() -> Path | None:
    given = os.environ.get("DSPARK_RIVAL_WHEEL")
    if given:
        return Path(given) if Path(given).is_file() else None
    cache_dir = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return next(iter(sorted((cache_dir / "dspark_ops" / "sglang-0.5.23").glob("*.whl"))), None)


class _Parent:
    """In place of the classes that the back end extends: what they would have set up is set up here."""

    def init_forward_metadata(self, forward_batch: Any) -> None:
        self.forward_metadata = SimpleNamespace(
            actual_seq_lengths_kv=None, seq_lens_cpu_int=forward_batch.seq_lens_cpu.int(), block_tables_swa=None,
            block_tables=None,
        )  # fmt: skip


class _Indexer:
    pass


@cache
def rival() -> SimpleNamespace:
    """The named classes and functions."""
    found = wheel()
    assert found is not None
    names: dict[str, Any] = {"torch": torch, "SimpleNamespace": SimpleNamespace, "is_npu_arch35": lambda: False}
    names |= {"AscendAttnBackend": _Parent, "C4IndexerAscendBackendMixin": _Indexer, "contextmanager": contextmanager}
    with zipfile.ZipFile(found) as archive:
        for file, wanted in FILES.items():
            tree = ast.parse(archive.read(file))
            tree.body = [n for n in tree.body if getattr(n, "name", None) in wanted]
            assert len(tree.body) == len(wanted), f"{file}: {wanted} expected"
            code = compile(tree, file, "exec", flags=__future__.annotations.compiler_flag)
            exec(code, names)
    return SimpleNamespace(**names)


def _mode(idle: bool = False) -> SimpleNamespace:
    no = ("decode", "extend_without_speculative", "draft_extend_v2")
    answers = {f"is_{name}": lambda: False for name in no}
    return SimpleNamespace(
        **answers, is_target_verify=lambda: not idle, is_idle=lambda: idle, is_extend=lambda: not idle
    )


class World:
    """Requests in slots with pages of their own, and the back end that serves them; no draft worker, no kernels."""

    def __init__(self, rng: Random, slots: int, width: int) -> None:
        self.width = width
        pages = torch.tensor(rng.sample(range(1, 4000), slots * (CONTEXT // PAGE))).reshape(slots, -1)
        self.req_to_token = (pages[:, :, None] * PAGE + torch.arange(PAGE)).reshape(slots, CONTEXT).int()
        self.full_to_swa = torch.arange(4000 * PAGE) % (200 * WINDOW_PAGE)
        self.full_to_swa[:PAGE] = -1
        sidecar = torch.tensor(rng.sample(range(1, 999), slots * 4)).reshape(slots, 4).int()
        self.pool = SimpleNamespace(req_to_c128_sidecar=sidecar, c128_page_size=C128_PAGE)
        self.kv_pool = SimpleNamespace(translate_loc_from_full_to_swa=lambda loc: self.full_to_swa[loc])
        self.states = {r: self._state(r) for r in (4, 128)}

    def _state(self, ratio: int) -> Any:
        state = object.__new__(rival().NPUCompressStatePool)
        state.ring_size, state.swa_page_size, state.dummy_state_loc = RINGS[ratio], WINDOW_PAGE, DUMMY[ratio]
        return state

    def backend(self) -> Any:
        made = object.__new__(rival().DeepseekV4AscendAttnBackend)
        made.__dict__ |= {
            "_dsv4_compress_ratios": [4, 128], "_dsv4_unique_compress_ratios": [4, 128], "_dsv4_has_c4": True,
            "_dsv4_has_c128": True, "_is_dspark_algorithm": True, "_is_eagle_algorithm": False,
            "_is_dspark_draft_worker": False, "_dsv4_graph_tokens_per_req": self.width, "page_size": PAGE,
            "_dsv4_sliding_window_size": 128, "_graph_table_high_water": {}, "_dsv4_state_pools_by_ratio": self.states,
            "token_to_kv_pool": self.kv_pool, "req_to_token": self.req_to_token, "req_to_token_pool": self.pool,
            "device": torch.device("cpu"), "_kernel_metadata_from_parts": lambda **parts: {},
        }  # fmt: skip
        return made

    def batch(self, slot: list[int], start: list[int], padding: int = 0, idle: bool = False) -> SimpleNamespace:
        """A forward batch with `padding` requests behind the real ones."""
        n, real = self.width, len(slot)
        live = torch.tensor(start, dtype=torch.int64)
        positions = (live[:, None] + torch.arange(n)).reshape(-1)
        where = self.req_to_token[torch.tensor(slot, dtype=torch.int64).repeat_interleave(n), positions]
        b = SimpleNamespace(
            req_pool_indices=torch.tensor(slot + [0] * padding), req_pool_indices_cpu=torch.tensor(slot),
            seq_lens=torch.tensor(start + [0] * padding), batch_size=real + padding, num_padding=padding,
            seq_lens_cpu=torch.tensor([s + n for s in start] + [1] * padding), out_cache_loc=where,
            positions=torch.cat([positions, torch.zeros(padding * n, dtype=torch.int64)]),
            spec_info=SimpleNamespace(draft_token_num=n, live_seq_lens_cpu=live), forward_mode=_mode(),
            actual_forward_mode=_mode(idle), req_to_token_pool=self.pool, spec_algorithm=None,
            out_cache_loc_dsv4=SimpleNamespace(), token_to_kv_pool_allocator=self.kv_pool,
        )  # fmt: skip
        b.out_cache_loc_dsv4 = rival().maybe_build_dsv4_verify_bundle(b, n, live_seq_lens_cpu=live)
        return b

    def eager(self, batch: Any) -> SimpleNamespace:
        """Its metadata, and the state tables that a layer would build."""
        made = self.backend()
        made.init_forward_metadata(batch)
        fm = made.forward_metadata
        for ratio in (4, 128):
            fm.dsv4_explicit_state_block_tables[ratio] = rival()._build_explicit_state_block_table(
                compress_ratio=ratio, coff=2 if ratio == 4 else 1, state_pool=self.states[ratio],
                token_to_kv_pool=self.kv_pool, req_to_token=self.req_to_token, start_pos=fm.start_pos,
                req_pool_indices=batch.req_pool_indices, cu_seqlens=fm.actual_seq_lengths_q_pa, seqused=fm.seqused,
                max_input_capacity=fm.dsv4_max_input_capacity,
            )  # fmt: skip
        return fm

    def replay(self, made: Any, batch: Any) -> SimpleNamespace:
        """Its graph buffers, refreshed for a batch; captured first if `made` has none for this size."""
        slots, graph = batch.batch_size, getattr(made, "graph_metadata", None)
        if graph is None:
            pages = torch.zeros(slots, CONTEXT // PAGE, dtype=torch.int32)
            graph = {k: pages.clone() - 1 for k in ("swa_page_table", "c4_page_table", "c128_page_table")}
            graph |= {f"kernel_metadata_{k}": torch.zeros(1) for k in ("c1a", "c4a", "c128a", "li_quant")}
            graph["c4_topk_indices"] = torch.zeros(slots * self.width, 1)
            graph[slots] = SimpleNamespace(block_tables=pages, block_tables_swa=None)
            made.graph_metadata = graph
            made._init_dsv4_graph_metadata(slots, batch.forward_mode)
        made.forward_metadata = graph[slots]
        made._apply_dsv4_graph_metadata(batch)
        return made.forward_metadata
