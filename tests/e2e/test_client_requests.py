"""Every form of request that real clients send is answered, or refused with the one error that tells why."""

from __future__ import annotations

import pytest

from stack.local import SCRIPTED, LocalStack
from tests.core.sse import parse
from tests.e2e.client import Client, error_of
from tests.e2e.requests import agents_python, ai_sdk, codex, langchain_python, litellm, openai_node, openai_python
from tests.e2e.requests.form import Form

CLIENTS = (openai_python, openai_node, agents_python, langchain_python, litellm, ai_sdk, codex)
FORMS = [
    pytest.param(client.HEADERS, form, id=f"{client.__name__.rpartition('.')[2]}: {name}")
    for client in CLIENTS
    for name, form in client.FORMS.items()
]


@pytest.mark.parametrize(("headers", "form"), FORMS)
async def test_a_clients_request_is_answered_or_refused(stack: LocalStack, headers: dict[str, str], form: Form) -> None:
    async with Client(stack) as client:
        answer = await client.ask({"model": SCRIPTED.name, **form.body}, **headers)
    if form.refused:
        error = error_of(answer)
        assert (answer.status_code, error["code"], error["param"]) == (400, *form.refused)
        return
    assert answer.status_code == 200, answer.text
    response = parse(answer.content)[-1].data["response"] if form.body.get("stream") else answer.json()
    assert response["status"] == "completed"
    assert response["output"]
