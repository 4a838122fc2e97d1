"""An agent of LangChain with two tools; prints each run by way of running.

Arguments: base URL, key, model, the question, what the tools ``get_weather`` and ``get_time`` say.
"""

import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def summary(messages: list[AnyMessage]) -> dict[str, Any]:
    answers = [message for message in messages if isinstance(message, AIMessage)]
    return {
        "calls_by_answer": [[call["name"] for call in answer.tool_calls] for answer in answers],
        "answer": messages[-1].text,
    }


def main(base_url: str, api_key: str, model: str, question: str, weather: str, time: str) -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return weather

    @tool
    def get_time(city: str) -> str:
        """The time in a city."""
        return time

    runs = {}
    for way, streaming in (("invoke", False), ("stream", True)):
        chat = ChatOpenAI(base_url=base_url, api_key=api_key, model=model, use_responses_api=True, streaming=streaming)
        agent = create_agent(chat, [get_weather, get_time], system_prompt="Ask the tools.")
        runs[way] = summary(agent.invoke({"messages": [("user", question)]})["messages"])
    print(json.dumps(runs))


main(*sys.argv[1:])
