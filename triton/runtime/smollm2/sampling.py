"""A request's sampling inputs as parameters of the engine."""

from typing import Any

from flavours.inputs import Inputs, Rejected

from .grammar import grammar

# Inputs that ask for something this model does not have.
_UNSUPPORTED = (
    "encoder_input_features",
    "decoder_input_ids",
    "draft_input_ids",
    "draft_logits",
    "prompt_embedding_table",
    "cross_attention_mask",
    "mrope_rotary_cos_sin",
    "lora_task_id",
    "lora_weights",
    "context_phase_params",
    "runtime_top_p_min",
    "runtime_top_p_decay",
    "lookahead_window_size",
)
# Inputs that may be sent as long as they ask for nothing.
_HARMLESS_UP_TO = {
    "beam_width": 1,
    "num_return_sequences": 1,
    "min_tokens": 1,
    "return_context_logits": False,
    "return_generation_logits": False,
}


def parameters(inputs: Inputs) -> dict[str, Any]:
    """The engine's parameters for sampling, penalties, biases and grammar.

    As with TensorRT-LLM, decoding is greedy unless ``runtime_top_k`` or ``runtime_top_p`` is above 0, whatever the
    temperature.

    Raises:
        Rejected: an input asks for something that this model does not do.
    """
    _refuse_unsupported(inputs)
    chosen = _sampling(inputs)
    for ours, theirs in (
        ("repetition_penalty", "repeat_penalty"),
        ("presence_penalty", "presence_penalty"),
        ("frequency_penalty", "frequency_penalty"),
        ("seed", "seed"),
    ):
        if (value := inputs.scalar(ours)) is not None:
            chosen[theirs] = value
    if "seed" in chosen:
        # The engine's seeds have 32 bits, the highest of which is a request for a random one.
        chosen["seed"] %= 2**32 - 1
    chosen["logit_bias"] = _biases(inputs)
    if (kind := inputs.scalar("guided_decoding_guide_type")) is not None:
        chosen["grammar"] = grammar(kind, inputs.scalar("guided_decoding_guide"))
    return chosen


def _refuse_unsupported(inputs: Inputs) -> None:
    asked = [name for name in _UNSUPPORTED if inputs.array(name) is not None]
    asked += [name for name, most in _HARMLESS_UP_TO.items() if inputs.scalar(name, most) > most]
    if asked:
        raise Rejected(f"{asked[0]} is not supported by this model")


def _sampling(inputs: Inputs) -> dict[str, Any]:
    top_k, top_p = inputs.scalar("runtime_top_k", 0), inputs.scalar("runtime_top_p", 0.0)
    if top_k <= 0 and top_p <= 0:
        return {"temperature": 0.0}
    return {
        "temperature": inputs.scalar("temperature", 1.0),
        "top_k": top_k,
        "top_p": top_p if top_p > 0 else 1.0,
        "min_p": 0.0,
    }


def _biases(inputs: Inputs) -> list[list[Any]]:
    """What is added to the logits, by id: ``embedding_bias``, and minus infinity for bad words."""
    biases: list[list[Any]] = [[id_, bias] for id_, bias in enumerate(inputs.array("embedding_bias") or []) if bias]
    for word in inputs.word_list("bad_words_list"):
        if len(word) != 1:
            raise Rejected("bad_words_list with words of several tokens is not supported by this model")
        biases.append([word[0], False])
    return biases
