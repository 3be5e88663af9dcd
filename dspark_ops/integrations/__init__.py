"""Adapters to serving runtimes, imported one by one: `dspark_ops.integrations.sglang`, `.vllm`, `.tensorrt_llm`."""
