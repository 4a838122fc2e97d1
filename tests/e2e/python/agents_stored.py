"""Turns through OpenAI's Agents SDK, each of which continues the response before; prints them by way of running.

Arguments: base URL, key, model, what the tool ``get_weather`` says, the questions.
"""

import asyncio
import json
import sys

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.result import RunResultBase
from openai import AsyncOpenAI


async def run(agent: Agent, question: str, previous: str | None) -> RunResultBase:
    return await Runner.run(agent, question, previous_response_id=previous, auto_previous_response_id=True)


async def run_streamed(agent: Agent, question: str, previous: str | None) -> RunResultBase:
    result = Runner.run_streamed(agent, question, previous_response_id=previous, auto_previous_response_id=True)
    async for _ in result.stream_events():
        pass
    return result


async def main(base_url: str, api_key: str, model: str, weather: str, *questions: str) -> None:
    @function_tool
    def get_weather(city: str) -> str:
        return weather

    # Traces would go to OpenAI.
    set_tracing_disabled(True)
    served = OpenAIResponsesModel(model, openai_client=AsyncOpenAI(base_url=base_url, api_key=api_key))
    agent = Agent("Asker", model=served, tools=[get_weather], model_settings=ModelSettings(store=True))
    conversations = {}
    for way in (run, run_streamed):
        answers, last = [], None
        for question in questions:
            result = await way(agent, question, last)
            last = result.last_response_id
            answers.append(result.final_output)
        conversations[way.__name__] = {"answers": answers, "last": last}
    print(json.dumps(conversations))


asyncio.run(main(*sys.argv[1:]))
