"""Two turns through Microsoft's Agent Framework, in one session that it keeps; prints the answers by way of asking.

Arguments: base URL, key, model, the two questions.
"""

import asyncio
import json
import sys

from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatClient


async def run(agent: Agent, question: str, session: AgentSession) -> str:
    return (await agent.run(question, session=session)).text


async def run_streamed(agent: Agent, question: str, session: AgentSession) -> str:
    updates = agent.run(question, session=session, stream=True)
    async for _ in updates:
        pass
    return (await updates.get_final_response()).text


async def main(base_url: str, api_key: str, model: str, first: str, second: str) -> None:
    client = OpenAIChatClient(model=model, base_url=base_url, api_key=api_key)
    agent = Agent(client, "Be brief.", default_options={"store": False})
    answers = {}
    for way in (run, run_streamed):
        session = agent.create_session()
        answers[way.__name__] = [await way(agent, question, session) for question in (first, second)]
    print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
