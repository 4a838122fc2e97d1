"""Turns through LangChain, each of which continues the response before; prints them by way of running.

Arguments: base URL, key, model, what the tool ``get_weather`` says, the questions.
"""

import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def main(base_url: str, api_key: str, model: str, weather: str, *questions: str) -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        return weather

    conversations = {}
    for way, streaming in (("invoke", False), ("stream", True)):
        chat = ChatOpenAI(
            base_url=base_url,
            api_key=api_key,
            model=model,
            store=True,
            streaming=streaming,
            use_previous_response_id=True,
        )
        agent = create_agent(chat, [get_weather])
        messages: list[Any] = []
        answers = []
        for question in questions:
            messages = agent.invoke({"messages": [*messages, ("user", question)]})["messages"]
            answers.append(messages[-1].text)
        conversations[way] = {"answers": answers, "last": messages[-1].response_metadata["id"]}
    print(json.dumps(conversations))


main(*sys.argv[1:])
