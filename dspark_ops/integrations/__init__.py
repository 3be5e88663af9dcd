"""Adapters to serving runtimes, imported one by one: `dspark_ops.integrations.sglang`, `.sglang_ascend`, `.vllm`,
`.tensorrt_llm`."""
