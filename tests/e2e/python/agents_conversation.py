"""Two turns through OpenAI's Agents SDK, the second with the first one's items; prints the answers by way of asking.

Arguments: base URL, key, model, the two questions.
"""

import asyncio
import json
import sys

from agents import Agent, OpenAIResponsesModel, Runner, TResponseInputItem, set_tracing_disabled
from agents.result import RunResultBase
from openai import AsyncOpenAI


async def run(agent: Agent, conversation: list[TResponseInputItem]) -> RunResultBase:
    return await Runner.run(agent, conversation)


async def run_streamed(agent: Agent, conversation: list[TResponseInputItem]) -> RunResultBase:
    result = Runner.run_streamed(agent, conversation)
    async for _ in result.stream_events():
        pass
    return result


async def main(base_url: str, api_key: str, model: str, first: str, second: str) -> None:
    # Traces would go to OpenAI.
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base_url, api_key=api_key)
    agent = Agent("Assistant", instructions="Be brief.", model=OpenAIResponsesModel(model, openai_client=client))
    answers = {}
    for way in (run, run_streamed):
        answer = await way(agent, [{"role": "user", "content": first}])
        following = await way(agent, [*answer.to_input_list(), {"role": "user", "content": second}])
        answers[way.__name__] = [answer.final_output, following.final_output]
    print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
