"""`AscendVerifyMetadata` under the names of SGLang 0.5.23's Ascend back end for DeepSeek-V4, without importing it."""

from __future__ import annotations

from typing import Any

from ..ascend_metadata import AscendVerifyMetadata

_LOCATIONS = {4: "c4_loc", 128: "c128_loc"}


def target_verify_fields(metadata: AscendVerifyMetadata, ratios: tuple[int, ...] = (4, 128)) -> dict[str, Any]:
    """The fields of the back end's forward metadata that a TARGET_VERIFY step sets, by attribute name.

    A runtime sets them on its own object, or copies them into the buffers of a captured graph:
    ``for name, value in target_verify_fields(m).items(): setattr(forward_metadata, name, value)``. They are the tensors
    of `metadata`, not copies. Names that only hold for one ratio say which; ``..._cpu`` names are there only if host
    lengths were given.

    Args:
        metadata: what `dspark_ops.ascend_verify_metadata` returned for tables of these ratios, in this order.
        ratios: of 4 and 128.
    """
    if len(ratios) != len(metadata.compressor.entries) or not set(ratios) <= _LOCATIONS.keys():
        have = len(metadata.compressor.entries)
        raise ValueError(f"ratios: expected those of the {have} tables of the metadata, each 4 or 128, got {ratios}")
    fields: dict[str, Any] = {
        "actual_seq_lengths_q": metadata.actual_seq_lengths_q,
        "actual_seq_lengths_q_pa": metadata.actual_seq_lengths_q_pa,
        "actual_seq_lengths_kv": metadata.actual_seq_lengths_kv,
        "start_pos": metadata.start_pos,
        "seqused": metadata.seqused,
        "dsv4_max_input_capacity": metadata.max_seqlen_q,
        "dsv4_explicit_state_block_tables": dict(zip(ratios, metadata.state_rows, strict=True)),
    }
    for ratio, entries in zip(ratios, metadata.compressor.entries, strict=True):
        fields[f"positions_cmp_padding_c{ratio}"] = entries.rope_position
        fields[_LOCATIONS[ratio]] = entries.slot
    if metadata.host is not None:
        fields["actual_seq_lengths_q_pa_cpu"] = metadata.host.actual_seq_lengths_q_pa
        fields["seq_lens_cpu_int"] = metadata.host.actual_seq_lengths_kv
    return fields
