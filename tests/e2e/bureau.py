"""What tests say on the bureau surface: the scripted model by its slug, and OpenAI's SDK with a key of theirs."""

from __future__ import annotations

from typing import Any

from openai import OpenAI

from stack.local import LocalStack
from tests.e2e.client import script

SLUG = "local/scripted"


def make_client(stack: LocalStack, key: str) -> Any:
    """An SDK that tries once; untyped, because tests send what its types do not know."""
    return OpenAI(base_url=stack.bureau_url, api_key=key, max_retries=0)


def said(*steps: Any, **body: Any) -> dict[str, Any]:
    """A request for which the scripted model plays ``steps``."""
    return script(*steps, **{"model": SLUG, **body})
