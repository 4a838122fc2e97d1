"""The contract of Triton's vLLM backend: text in and text out, sampling as one JSON object.

Tensors and behaviour follow ``vllm_backend``. Responses carry the new text, whole characters only.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from llguidance import LLMatcher

from .contract import Delta, Writer, counts
from .inputs import Inputs, Rejected, Values, prompt, renamed, word_rows
from .tensors import BOOL, BYTES, FP32, UINT32, Tensor, required
from .vocabulary import TextStream, Vocabulary

_DEFAULT_MAX_TOKENS = 16

INPUTS = (
    required("text_input", BYTES),
    Tensor("image", BYTES, (-1,)),
    Tensor("stream", BOOL),
    Tensor("sampling_parameters", BYTES),
    Tensor("exclude_input_in_output", BOOL),
    Tensor("return_finish_reason", BOOL),
    Tensor("return_cumulative_logprob", BOOL),
    Tensor("return_logprobs", BOOL),
    Tensor("return_num_input_tokens", BOOL),
    Tensor("return_num_output_tokens", BOOL),
    Tensor("embedding_request", BYTES),
)

OUTPUTS = (
    Tensor("text_output", BYTES, (-1,)),
    Tensor("finish_reason", BYTES, (-1,)),
    Tensor("cumulative_logprob", FP32, (-1,)),
    Tensor("logprobs", BYTES, (-1,)),
    Tensor("num_input_tokens", UINT32),
    Tensor("num_output_tokens", UINT32, (-1,)),
)

_SAMPLING = {
    "max_tokens": "request_output_len",
    "temperature": "temperature",
    "top_p": "runtime_top_p",
    "top_k": "runtime_top_k",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
}
_OTHERS = ("stop_token_ids", "skip_special_tokens", "structured_outputs", "guided_decoding")
_HANDED_ON = {"stream": "streaming", "exclude_input_in_output": "exclude_input_in_output"} | {
    name: name for name in ("return_finish_reason", "return_num_input_tokens", "return_num_output_tokens")
}
_GUIDE_TYPES = {"json": "json_schema", "regex": "regex", "grammar": "ebnf_grammar"}


class Vllm:
    """Tokenizes requests, detokenizes responses, tells counts and the reason of the end."""

    inputs = INPUTS
    outputs = OUTPUTS
    finish_with_data = True

    def __init__(self, vocabulary: Vocabulary, parameters: Mapping[str, str]) -> None:
        self._vocabulary = vocabulary
        # Releases before 25.11 have another name for it.
        self._guide_parameter = parameters.get("guide_parameter", "structured_outputs")

    def read(self, values: Values) -> Values:
        """A request as token-level inputs, with vLLM's defaults."""
        inputs = Inputs(values)
        streaming = inputs.scalar("stream", False)
        if streaming and not inputs.scalar("exclude_input_in_output", True):
            raise Rejected("When streaming, `exclude_input_in_output` = False is not allowed.")
        sampling = json.loads(inputs.scalar("sampling_parameters", "{}"))
        if unknown := [name for name in sampling if name not in (*_SAMPLING, *_OTHERS)]:
            # vLLM's own error for it says less.
            raise Rejected(f"{unknown[0]} is not supported by this model")
        return {
            "request_output_len": [_DEFAULT_MAX_TOKENS],
            "runtime_top_p": [1.0],
            "end_id": [self._vocabulary.end_id],
            "stop_words_list": word_rows([[id_] for id_ in sampling.get("stop_token_ids", [])]),
            **prompt(self._vocabulary.encode_prompt(inputs.required("text_input"))),
            **renamed(values, _HANDED_ON),
            **{_SAMPLING[name]: [value] for name, value in sampling.items() if name in _SAMPLING},
            "skip_special_tokens": [sampling.get("skip_special_tokens", True)],
            **_greedy(sampling),
            **self._guide(sampling),
        }

    def writer(self, inputs: Inputs) -> Writer:
        """What writes the responses to one request."""
        special = not inputs.required("skip_special_tokens")
        return VllmWriter(inputs, TextStream(self._vocabulary, special))

    def _guide(self, sampling: dict[str, Any]) -> Values:
        asked = sampling.keys() & {"structured_outputs", "guided_decoding"}
        if not asked:
            return {}
        if asked != {self._guide_parameter}:
            raise Rejected(f"Unexpected keyword argument '{min(asked)}'")
        (kind, guide), *_ = json.loads(sampling[self._guide_parameter]).items()
        if kind == "json_object":
            return {"guided_decoding_guide_type": [b"json"]}
        if kind == "structural_tag":
            tags = _tags(guide, self._vocabulary.end_id)
            return {"guided_decoding_guide_type": [b"ebnf_grammar"], "guided_decoding_guide": [tags.encode()]}
        if kind not in _GUIDE_TYPES:
            raise Rejected(f"{kind} is not supported by this model")
        text = guide if isinstance(guide, str) else json.dumps(guide)
        return {
            "guided_decoding_guide_type": [_GUIDE_TYPES[kind].encode()],
            "guided_decoding_guide": [text.encode()],
        }


def _tags(text: str, end_id: int) -> str:
    """A structural tag as a grammar of the engine: free text around the structures, then the token that ends it."""
    tag = json.loads(text)
    (trigger,) = tag["triggers"]
    # Its first line tells the engine whose grammar it is.
    rules = ["%llguidance {}", f"start: (TEXT? structure)* TEXT? <[{end_id}]>?"]
    rules.append(rf"TEXT: /(.|\n)+/ & ~/(.|\n)*{re.escape(trigger)}(.|\n)*/")
    rules.append("structure: " + " | ".join(f"structure{index}" for index in range(len(tag["structures"]))))
    for index, structure in enumerate(tag["structures"]):
        begin, end = json.dumps(structure["begin"]), json.dumps(structure["end"])
        # Without free white space: a small model that may write line breaks writes little else.
        schema = json.dumps({"x-guidance": {"whitespace_flexible": False}, **structure["schema"]})
        rules.append(f"structure{index}: {begin} arguments{index} {end}\narguments{index}: %json {schema}")
    grammar = "\n".join(rules)
    if error := LLMatcher.validate_grammar(grammar):
        raise Rejected(f"The guide cannot be compiled: {error}")
    return grammar


class VllmWriter:
    """The new text, and what was asked for beside it."""

    def __init__(self, inputs: Inputs, stream: TextStream) -> None:
        self._inputs = inputs
        self._stream = stream
        stop_ids = [id_ for word in inputs.word_list("stop_words_list") for id_ in word]
        self._end_ids = {inputs.required("end_id"), *stop_ids}

    def outputs(self, delta: Delta) -> dict[str, Any]:
        """Tensors without a batch dimension. The token that ends an answer has no text."""
        ids = [id_ for id_ in delta.ids if id_ not in self._end_ids]
        text = self._stream.feed(ids, ended=delta.finish is not None)
        outputs: dict[str, Any] = {name: [value] for name, value in counts(self._inputs, delta).items()}
        if self._inputs.scalar("return_finish_reason", False):
            # The backend writes None as text while the answer goes on.
            outputs["finish_reason"] = [str(delta.finish).encode()]
        return {"text_output": [text.encode()], **outputs}


def _greedy(sampling: dict[str, Any]) -> Values:
    """vLLM is greedy at temperature 0, the engine when only one token may be chosen."""
    return {"runtime_top_k": [1], "temperature": [1.0]} if sampling.get("temperature") == 0 else {}
