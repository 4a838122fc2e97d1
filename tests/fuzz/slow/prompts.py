"""Requests as a worker prepares them: read, checked, rendered by a chat template and tokenized."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from sidecar.exchange.asks import Facts
from sidecar.exchange.catalog import ServedModel
from sidecar.exchange.events import RequestComplete
from sidecar.exchange.plan import make_plan
from sidecar.prompts.chat_model import ChatModel
from sidecar.prompts.renderer import PromptRenderer
from sidecar.prompts.tokenizer import Tokenizer
from sidecar.responses.errors import ApiError
from sidecar.surfaces import SURFACES
from tests.core import kit
from tests.core.goldens.models import END, TEMPLATES, model
from tests.fuzz.slow.search import Target

SECONDS = 0.05
SECONDS_PER_BYTE = 5e-6
CONTEXT = 1_000_000
_VOCABULARY = 2_000
_TEXTS = [
    *("a", "1", " ", "\n", "\t", "\\", '"', "é", "\u0301", "敏捷", "😀", "\u200d", "\ufdd0", "\x00", "\x1c", "<", "<|"),
    *(
        "<|im_start|>",
        END,
        "<think>",
        "</think>",
        "<tool_call>",
        "{{ x }}",
        "{%",
        "'s",
        "ab12",
        "The quick brown fox. ",
    ),
]
_ITEMS: list[Any] = [
    {"role": "user", "content": "Hi."},
    {"role": "system", "content": "Be kind."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": [1, {"b": "x"}]}'},
    {"type": "function_call_output", "call_id": "c", "output": "x"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
]
_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
_TOOL = {"type": "function", "name": "f", "description": "d", "parameters": _SCHEMA}

Body = dict[str, Any]


@cache
def served() -> ServedModel:
    """A model with a vocabulary of merges, which take more time than single bytes, and a template that takes all."""
    vocabulary = tokenizers.Tokenizer(models.BPE())
    vocabulary.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=_VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    vocabulary.train_from_iterator(TEMPLATES.values(), trainer)
    vocabulary.add_special_tokens(["<|im_start|>", END])
    vocabulary.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
    ids = vocabulary.encode(END, add_special_tokens=False).ids
    tokenizer = Tokenizer(vocabulary, template_source=TEMPLATES["native"], eos_token=END, eos_ids=tuple(ids))
    known = model("native", "token_level")
    settings = known.settings.model_copy(update={"context_length": CONTEXT})
    return replace(known, settings=settings, renderer=PromptRenderer(ChatModel.of(tokenizer)))


def _places(value: Any) -> Iterator[Any]:
    """Each object and list in ``value``, itself first."""
    if isinstance(value, dict | list):
        yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from _places(member)


class Prompts(Target[Body]):
    """Bodies of up to 200 KB."""

    most_bytes = 200_000

    def seeds(self) -> Sequence[Body]:
        """A text, a conversation, tools."""
        base = {"model": "chat", "input": "Hi."}
        return [
            base,
            {**base, "input": _ITEMS},
            {**base, "input": _ITEMS[:1], "tools": [_TOOL]},
            {**base, "tools": [{**_TOOL, "strict": True}], "tool_choice": "required", "instructions": "x"},
            {**base, "text": {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA}}},
        ]

    def changed(self, old: Body, other: Body, chance: random.Random) -> Body:
        """``old`` with texts, items and members repeated, lengthened, or taken from ``other``."""
        new = copy.deepcopy(old)
        place = chance.choice(list(_places(new)))
        if isinstance(place, list):
            self._change_list(place, chance)
        elif place:
            key = chance.choice(list(place))
            self._change_member(place, key, other, chance)
        return new

    def _change_list(self, place: list[Any], chance: random.Random) -> None:
        match chance.randrange(4):
            case 0:
                place += copy.deepcopy(place)
            case 1:
                place.append(copy.deepcopy(chance.choice(_ITEMS)))
            case 2 if place:
                # Names of functions must differ.
                twin = copy.deepcopy(chance.choice(place))
                if isinstance(twin, dict) and "parameters" in twin:
                    twin["name"] = f"f{chance.randrange(10**6)}"
                place.append(twin)
            case _ if place:
                del place[chance.randrange(len(place))]

    def _change_member(self, place: Body, key: str, other: Body, chance: random.Random) -> None:
        value = place[key]
        match chance.randrange(5):
            case 0 | 1 if isinstance(value, str) and key not in {"type", "role", "model"}:
                text = chance.choice(_TEXTS) * chance.choice((1, 10, 1000))
                place[key] = chance.choice((value + text, text + value, text, value * 2, value * 4))
            case 2:
                givers = [giver for giver in _places(other) if isinstance(giver, dict) and key in giver]
                if givers:
                    place[key] = copy.deepcopy(chance.choice(givers)[key])
            case 3 if isinstance(value, dict):
                value |= {f"k{chance.randrange(10**6)}": copy.deepcopy(member) for member in value.values()}
            case 4 if isinstance(value, str) and key == "content":
                place[key] = [{"type": "input_text", "text": value}]

    def text(self, input: Body) -> str:
        """The body as JSON."""
        return json.dumps(input, ensure_ascii=False)

    def size(self, input: Body) -> int:
        """The bytes of the body."""
        return len(json.dumps(input, ensure_ascii=False).encode())

    def share(self, input: Body) -> float:
        """By CPU time, of all threads."""
        body = json.dumps(input, ensure_ascii=False).encode()
        headers = {**kit.CREATE, "content-type": "application/json"}
        event = RequestComplete(headers, body, len(body), 100.0, 1_800_000_000.5, 100.0)
        facts = Facts(SURFACES["node"], kit.catalog(served()), event, bytes(range(18)))
        before = time.process_time()
        with suppress(ApiError):
            make_plan(facts)
        took = time.process_time() - before
        return took / (SECONDS + SECONDS_PER_BYTE * len(body))
