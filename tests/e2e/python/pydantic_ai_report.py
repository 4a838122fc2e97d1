"""An answer of a pydantic model through pydantic-ai, by a call that is demanded and by a schema; prints both.

Arguments: base URL, key, model, the question.
"""

import asyncio
import json
import sys
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Report(BaseModel):
    city: Literal["Paris", "Rome"]
    sunny: bool


async def main(base_url: str, api_key: str, model: str, question: str) -> None:
    served = OpenAIResponsesModel(model, provider=OpenAIProvider(base_url=base_url, api_key=api_key))
    reports = {}
    for way in (ToolOutput, NativeOutput):
        agent = Agent(served, output_type=way(Report), model_settings={"temperature": 0}, retries=0)
        reports[way.__name__] = (await agent.run(question)).output.model_dump()
    print(json.dumps(reports))


asyncio.run(main(*sys.argv[1:]))
