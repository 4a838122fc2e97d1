"""Small models' worth of tokenizers and chat templates, made for tests."""

from functools import cache

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

SPECIAL = ("<|end|>", "<|start|>", "<|pad|>")
SENTENCES = [
    "The quick brown fox jumps over the lazy dog, again and again.",
    "A tokenizer learns pairs of bytes that stand beside each other often.",
    'def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))  # {"a": 1}',
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "敏捷的棕色狐狸跳过懒狗。 😀 👩‍👩‍👧 🇪🇺",
]

PLAIN = """
{%- for message in messages -%}
<|start|>{{ message.role }}
{{ message.content }}<|end|>
{% endfor -%}
<|start|>assistant
"""
"""Takes any turn with text, knows neither tools nor reasoning."""

FIRST_SYSTEM_ONLY = (
    """
{%- if not messages | selectattr('role', 'equalto', 'user') | list %}{{ raise_exception('no user') }}{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('system must be first') }}{% endif -%}
{%- endfor -%}
"""
    + PLAIN
)
"""Raises on a late system message and on a conversation without a user turn."""

ALTERNATING = (
    """
{%- for message in messages -%}
{%- if message.role == 'system' %}{{ raise_exception('no system') }}{% endif -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('must alternate') }}{% endif -%}
{%- endfor -%}
"""
    + PLAIN
)
"""Raises on any system message, and unless user and assistant alternate."""

TOOLS = """
{%- if reasoning_effort %}<|start|>effort {{ reasoning_effort }}<|end|>
{% endif -%}
{%- if tools %}<|start|>tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|end|>
{% endif -%}
{%- for message in messages -%}
<|start|>{{ message.role }}
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>
{% endif -%}
{%- if message.content is string %}{{ message.content }}{% else -%}
{%- for part in message.content %}{{ '<image>' if part.type == 'image' else part.text }}{% endfor -%}
{%- endif -%}
{%- for call in message.tool_calls or [] %}
<call id={{ call.id }}>{{ call.function.name }}{{ call.function.arguments | tojson }}</call>
{%- endfor %}<|end|>
{% endfor -%}
<|start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"""
"""Takes everything: tools, reasoning, images, a thinking switch, a grade of effort."""

CALLS_BY_ID = TOOLS.replace("{{ call.function.name }}", "")
"""As ``TOOLS``, but of a call it writes the id and not the name, as Kimi K2's template does."""

STRICT_CALLS = (
    """
{%- for message in messages -%}
{%- if message.tool_calls and message.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif -%}
{%- for call in message.tool_calls or [] if call.id | length != 9 %}{{ raise_exception('id') }}{% endfor -%}
{%- if message.role == 'user' and not loop.first and messages[loop.index0 - 1].role == 'tool' -%}
{{ raise_exception('answer first') }}
{%- endif -%}
{%- endfor -%}
"""
    + TOOLS
)
"""As ``TOOLS``, but one call in a turn, ids of nine characters, and an answer between a result and a user turn."""


@cache
def byte_level() -> tokenizers.Tokenizer:
    """A byte-level BPE vocabulary like those of current models, with special tokens and two ordinary added ones."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=list(SPECIAL))
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ("<think>", "</think>", "<b>", "naïve™")])
    return tokenizer


@cache
def byte_fallback() -> tokenizers.Tokenizer:
    """A vocabulary of pieces with ▁ for spaces, where characters outside it become bytes."""
    pieces = ["<unk>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefghijklmnopqrstuvwxyz,."]
    tokenizer = tokenizers.Tokenizer(
        models.BPE({piece: index for index, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer
