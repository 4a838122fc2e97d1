"""Two turns through LangChain, the second with the first one's message; prints the answers by way of asking.

Arguments: base URL, key, model, the two questions.
"""

import json
import sys
from functools import reduce
from operator import add

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI


def invoke(chat: ChatOpenAI, messages: list[BaseMessage]) -> AIMessage:
    return chat.invoke(messages)


def stream(chat: ChatOpenAI, messages: list[BaseMessage]) -> AIMessage:
    return reduce(add, chat.stream(messages))


def main(base_url: str, api_key: str, model: str, first: str, second: str) -> None:
    chat = ChatOpenAI(base_url=base_url, api_key=api_key, model=model, use_responses_api=True)
    answers = {}
    for way in (invoke, stream):
        messages: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage(first)]
        answer = way(chat, messages)
        following = way(chat, [*messages, answer, HumanMessage(second)])
        answers[way.__name__] = [answer.text, following.text]
    print(json.dumps(answers))


main(*sys.argv[1:])
