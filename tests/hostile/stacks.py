"""The stack under attack."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from stack.local import SCRIPTED, SCRIPTED_BY_CONTRACT, LocalStack
from stack.paths import TOKENIZER

DRAIN = 3.0
"""Seconds that a stopping worker lets its streams run."""
CONTEXT = 131_072
_TEMPLATE = """
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string -%}{{ message.content }}
{%- else -%}
{%- for part in message.content -%}{{ "<image>" if part.type == "image" else part.text }}{%- endfor -%}
{%- endif -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""
"""A chat template that takes images, which that of the stack's models does not."""


def besieged(run_dir: Path, triton_address: str | None = None) -> LocalStack:
    """Two workers whose models have room for what an attack asks, and see images.

    Triton is their own, unless there is one at ``triton_address``.
    """
    models = [SCRIPTED, SCRIPTED_BY_CONTRACT["ensemble"]]
    seeing = replace(SCRIPTED_BY_CONTRACT["vllm"], tokenizer=_seeing_tokenizer(run_dir / "tokenizer"))
    roomy = [replace(model, context_length=CONTEXT) for model in (*models, seeing)]
    return LocalStack(run_dir, models=roomy, triton_address=triton_address, sidecar_settings={"drain": DRAIN})


def _seeing_tokenizer(directory: Path) -> Path:
    """The stack's tokenizer with the template."""
    shutil.copytree(TOKENIZER, directory, dirs_exist_ok=True)
    (directory / "chat_template.jinja").unlink(missing_ok=True)
    file = directory / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "chat_template": _TEMPLATE}))
    return directory
