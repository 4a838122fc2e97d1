"""Clients get answers of a type of their own, for which the real chat model is guided by the type's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import openai
import pydantic
import pytest

from stack.local import SMOLLM2, LocalStack
from tests.e2e.drivers import run_node, run_python

QUESTION = "Is it sunny in Paris today?"


class Report(pydantic.BaseModel, extra="forbid"):
    city: Literal["Paris", "Rome"]
    sunny: bool


@pytest.mark.parametrize(
    ("run", "program", "ways"),
    [
        (run_node, "openai_report.mjs", {"parse", "stream"}),
        (run_python, "pydantic_ai_report.py", {"ToolOutput", "NativeOutput"}),
    ],
)
def test_a_client_gets_its_type(stack: LocalStack, run: Callable[..., Any], program: str, ways: set[str]) -> None:
    reports = run(program, stack, SMOLLM2.name, QUESTION)
    assert reports.keys() == ways
    for report in reports.values():
        Report.model_validate(report)


@pytest.mark.parametrize("way", ["parse", "stream"])
def test_openai_python_gets_its_type(stack: LocalStack, way: str) -> None:
    responses = openai.OpenAI(base_url=stack.url, api_key=stack.api_key).responses
    request: dict[str, Any] = {"model": SMOLLM2.name, "input": QUESTION, "text_format": Report, "temperature": 0}
    if way == "stream":
        with responses.stream(**request) as stream:
            answer = stream.get_final_response()
    else:
        answer = responses.parse(**request)
    assert isinstance(answer.output_parsed, Report)
