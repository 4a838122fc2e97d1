"""An agent of pydantic-ai with two tools; prints each run by way of running.

Arguments: base URL, key, model, the question, what the tools ``get_weather`` and ``get_time`` say.
"""

import asyncio
import json
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


def summary(messages: list[ModelMessage], answer: str) -> dict[str, Any]:
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return {
        "calls_by_answer": [
            [part.tool_name for part in answer.parts if isinstance(part, ToolCallPart)] for answer in answers
        ],
        "answer": answer,
    }


async def run(agent: Agent, question: str) -> dict[str, Any]:
    result = await agent.run(question)
    return summary(result.all_messages(), result.output)


async def iterate_streamed(agent: Agent, question: str) -> dict[str, Any]:
    async with agent.iter(question) as steps:
        async for step in steps:
            if Agent.is_model_request_node(step):
                async with step.stream(steps.ctx) as answer:
                    async for _ in answer:
                        pass
    return summary(steps.result.all_messages(), steps.result.output)


async def main(base_url: str, api_key: str, model: str, question: str, weather: str, time: str) -> None:
    served = OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=base_url, api_key=api_key))
    agent = Agent(served, instructions="Ask the tools.")

    @agent.tool_plain
    def get_weather(city: str) -> str:
        return weather

    @agent.tool_plain
    def get_time(city: str) -> str:
        return time

    print(json.dumps({way.__name__: await way(agent, question) for way in (run, iterate_streamed)}))


asyncio.run(main(*sys.argv[1:]))
