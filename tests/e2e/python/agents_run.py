"""An agent of OpenAI's Agents SDK with two tools hands over to one that reports; prints each run by way of running.

Arguments: base URL, key, model, the question, what the tools ``get_weather`` and ``get_time`` say.
"""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.result import RunResultBase
from openai import AsyncOpenAI
from pydantic import BaseModel


class Report(BaseModel):
    city: str
    sky: str
    hour: int


async def run(agent: Agent, question: str) -> RunResultBase:
    return await Runner.run(agent, question)


async def run_streamed(agent: Agent, question: str) -> RunResultBase:
    result = Runner.run_streamed(agent, question)
    async for _ in result.stream_events():
        pass
    return result


def summary(result: RunResultBase) -> dict[str, Any]:
    assert isinstance(result.final_output, Report)
    return {
        "calls_by_answer": [
            [item.name for item in response.output if item.type == "function_call"] for response in result.raw_responses
        ],
        "last_agent": result.last_agent.name,
        "report": result.final_output.model_dump(),
    }


async def main(base_url: str, api_key: str, model: str, question: str, weather: str, time: str) -> None:
    @function_tool
    def get_weather(city: str) -> str:
        return weather

    @function_tool
    def get_time(city: str) -> str:
        return time

    # Traces would go to OpenAI.
    set_tracing_disabled(True)
    served = OpenAIResponsesModel(model, openai_client=AsyncOpenAI(base_url=base_url, api_key=api_key))
    reporter = Agent("Reporter", instructions="Report what is known.", model=served, output_type=Report)
    asker = Agent(
        "Asker", instructions="Ask the tools.", model=served, tools=[get_weather, get_time], handoffs=[reporter]
    )
    print(json.dumps({way.__name__: summary(await way(asker, question)) for way in (run, run_streamed)}))


asyncio.run(main(*sys.argv[1:]))
