"""Every field of a ragged TARGET_VERIFY step of DeepSeek-V4 on Ascend, into buffers of a captured graph."""

import torch

import dspark_ops
from dspark_ops import AscendTable, CompressorTable, StateBlocks
from dspark_ops.integrations.sglang_ascend import target_verify_fields

device = "npu" if hasattr(torch, "npu") and torch.npu.is_available() else "cpu"
slots, width, rows, max_len = 4, 8, 24, 1024  # the graph: 4 requests, 24 rows


def pages(per_request: int) -> torch.Tensor:
    """Page tables that share nothing; page 0 belongs to nobody."""
    return (torch.arange(slots * per_request, dtype=torch.int32, device=device) + 1).view(slots, per_request)


c4 = AscendTable(CompressorTable(4, pages(max_len // 128), 32, pad_slot=0), 2, blocks=StateBlocks(pages(8), 128))
c128 = AscendTable(CompressorTable(128, pages(1), 8, pad_slot=0), 1, blocks=StateBlocks(pages(8), 128))
start = torch.tensor([125, 255, 40, 0], device=device)  # committed tokens; the last request is padding
buffers = None
for lens in ([8, 1, 3], [2, 5, 8]):
    verify_lens = torch.tensor(lens, dtype=torch.int32, device=device)  # from allocate_verify_lens
    buffers = dspark_ops.ascend_verify_metadata(
        verify_lens, start, rows, width, [c4, c128], num_slots=slots, graph=True, out=buffers
    )
    fields = target_verify_fields(buffers)
    print(f"verify {lens}: q {fields['actual_seq_lengths_q'].tolist()}, kv {fields['actual_seq_lengths_kv'].tolist()}")
    print(f"  C4 entries at {[p for p in fields['positions_cmp_padding_c4'].tolist() if p]}", end="")
    print(f", C128 entries at {[p for p in fields['positions_cmp_padding_c128'].tolist() if p]} (those not at 0)")
