"""An endpoint's stored responses, sound but for what a test changes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, unquote

from conformance import Answer
from tests.core.conformance.answers import DOCUMENT, answer, refused
from tests.core.conformance.streams import Json


class Shelf:
    """What is stored, by id: the response and the items that it was made from."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Json, list[Json]]] = {}
        self._made = 0

    def create(self, asked: Json, answered: Answer) -> Answer:
        """What becomes of the answer to a request that may be stored, or continue another."""
        if not asked.get("store") or (answered.status, answered.headers) != (200, DOCUMENT):
            return answered
        previous = asked.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            return refused(404, "not_found", "previous_response_id")
        self._made += 1
        id = f"resp_{self._made}"
        made = {**json.loads(answered.body), "id": id, "store": True, "previous_response_id": previous}
        items = [*self._heard(previous), self.item(id, asked["input"])]
        self.kept[id] = (made, items)
        return self.told(made)

    def look(self, method: str, path: str) -> Answer:
        """The answer to a request about one."""
        path, _, query = path.partition("?")
        id, *rest = unquote(path).split("/")
        if id not in self.kept:
            return refused(404, "not_found")
        made, items = self.kept[id]
        if method == "DELETE":
            return self.delete(id)
        return self.listed(items, query) if rest else self.told(made)

    def told(self, made: Json) -> Answer:
        return document(made)

    def delete(self, id: str) -> Answer:
        del self.kept[id]
        return document({"id": id, "object": "response", "deleted": True})

    def item(self, id: str, text: str) -> Json:
        content = [{"type": "input_text", "text": text}]
        return {"type": "message", "id": f"{id}_input", "role": "user", "content": content}

    def listed(self, items: list[Json], query: str) -> Answer:
        given = {name: values[0] for name, values in parse_qs(query).items()}
        items = items if given.get("order") == "asc" else items[::-1]
        if "after" in given:
            items = items[[item["id"] for item in items].index(given["after"]) + 1 :]
        limit = int(given.get("limit", 20))
        return self.page(items[:limit], more=len(items) > limit)

    def page(self, items: list[Json], *, more: bool) -> Answer:
        ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]}
        return document({"object": "list", "data": items, **ends, "has_more": more})

    def _heard(self, id: str | None) -> list[Json]:
        if id is None:
            return []
        made, items = self.kept[id]
        return [*items, *({**item, "id": f"{id}_output"} for item in made["output"])]


def document(value: Any) -> Answer:
    return answer(200, DOCUMENT, json.dumps(value).encode())
