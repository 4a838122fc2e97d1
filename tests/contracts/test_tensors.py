"""Both models have the tensors of TensorRT-LLM's ``tensorrt_llm`` model, no more and no fewer."""

from __future__ import annotations

import pytest
from tritonclient.grpc import service_pb2

from tests.contracts.triton_client import TritonClient

# Names by type and shape without the batch dimension, from inflight_batcher_llm/tensorrt_llm/config.pbtxt.
INPUTS = {
    (
        "INT32",
        -1,
    ): """input_ids draft_input_ids decoder_input_ids retention_token_range_starts
        retention_token_range_ends retention_token_range_priorities retention_token_range_durations_ms""",
    ("INT32", 1): """encoder_output_lengths input_lengths request_output_len num_return_sequences decoder_input_lengths
        end_id pad_id beam_width runtime_top_k runtime_top_p_reset_ids min_tokens prompt_vocab_size
        retention_decode_priority retention_decode_duration_ms lookahead_window_size lookahead_ngram_size
        lookahead_verification_set_size""",
    ("INT32", 2, -1): "stop_words_list bad_words_list",
    ("INT32", -1, 3): "lora_config",
    ("INT64", 1): "mrope_position_deltas",
    ("UINT64", 1): "seed lora_task_id",
    ("UINT64", -1): "prompt_table_extra_ids",
    ("UINT8", -1): "context_phase_params",
    ("FP16", -1, -1): "encoder_input_features prompt_embedding_table lora_weights",
    ("FP32", -1, -1): "draft_logits",
    ("FP32", -1): "embedding_bias mrope_rotary_cos_sin",
    (
        "FP32",
        1,
    ): """draft_acceptance_threshold temperature runtime_top_p runtime_top_p_min runtime_top_p_decay
        len_penalty repetition_penalty beam_search_diversity_rate presence_penalty frequency_penalty""",
    ("BOOL", 1): """early_stopping return_log_probs return_context_logits return_generation_logits return_perf_metrics
        return_num_input_tokens return_num_output_tokens exclude_input_in_output stop streaming
        skip_cross_attn_blocks""",
    ("BOOL", -1, -1): "cross_attention_mask",
    ("BYTES", 1): "guided_decoding_guide_type guided_decoding_guide",
}
OUTPUTS = {
    ("INT32", -1, -1): "output_ids",
    ("INT32", -1): "sequence_length",
    ("INT32", 1): """batch_index sequence_index kv_cache_alloc_new_blocks kv_cache_reused_blocks
        kv_cache_alloc_total_blocks total_accepted_draft_tokens total_draft_tokens num_input_tokens
        num_output_tokens""",
    ("INT64", 1): "arrival_time_ns first_scheduled_time_ns first_token_time_ns last_token_time_ns",
    ("UINT8", -1): "context_phase_params",
    ("FP32", -1): "cum_log_probs",
    ("FP32", -1, -1): "output_log_probs context_logits",
    ("FP32", -1, -1, -1): "generation_logits",
    ("FP32", 1): "acceptance_rate",
}


def by_name(table: dict[tuple[str | int, ...], str]) -> dict[str, tuple[object, ...]]:
    return {name: (data_type, -1, *dims) for (data_type, *dims), names in table.items() for name in names.split()}


@pytest.mark.parametrize("model", ["smollm2", "scripted"])
async def test_tensors_are_those_of_tensorrt_llm(client: TritonClient, model: str) -> None:
    metadata = await client.stub.ModelMetadata(service_pb2.ModelMetadataRequest(name=model))
    assert {t.name: (t.datatype, *t.shape) for t in metadata.inputs} == by_name(INPUTS)
    assert {t.name: (t.datatype, *t.shape) for t in metadata.outputs} == by_name(OUTPUTS)


@pytest.mark.parametrize("model", ["smollm2", "scripted"])
async def test_streams_are_decoupled_and_batched(client: TritonClient, model: str) -> None:
    config = (await client.stub.ModelConfig(service_pb2.ModelConfigRequest(name=model))).config
    assert config.model_transaction_policy.decoupled
    assert config.max_batch_size > 0
    assert {t.name for t in config.input if not t.optional} == {"input_lengths", "request_output_len"}
