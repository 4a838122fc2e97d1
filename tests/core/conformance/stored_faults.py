"""Shelves of stored responses with one fault planted in each, beside the request and the one rule that find it."""

from __future__ import annotations

from conformance import Answer, NoAnswerError
from tests.core.conformance.answers import DOCUMENT, answer
from tests.core.conformance.shelf import Shelf, document
from tests.core.conformance.streams import Json


class Forgets(Shelf):
    """Tells a response with something left out."""

    def look(self, method: str, path: str) -> Answer:
        told = super().look(method, path)
        if method == "GET" and "/" not in path and told.status == 200:
            made, _ = self.kept[path]
            return document({**made, "output": []})
        return told


class NoJson(Shelf):
    """Does not tell JSON."""

    def look(self, method: str, path: str) -> Answer:
        told = super().look(method, path)
        return answer(200, DOCUMENT, b"{") if told.status == 200 else told


class Unlisted(Shelf):
    """Lists items in another form."""

    def page(self, items: list[Json], *, more: bool) -> Answer:
        return document({"data": items, "has_more": more})


class OtherEnds(Shelf):
    """Names others as the ends of a page."""

    def page(self, items: list[Json], *, more: bool) -> Answer:
        return document({"object": "list", "data": items, "first_id": "x", "last_id": "x", "has_more": more})


class TooMany(Shelf):
    """Does not keep to the limit of a page."""

    def listed(self, items: list[Json], query: str) -> Answer:
        return super().listed(items, query.replace("limit=1", "limit=2"))


class Twins(Shelf):
    """Gives all that was said one id."""

    pages = 0

    def item(self, id: str, text: str) -> Json:
        return {**super().item(id, text), "id": "same"}

    def listed(self, items: list[Json], query: str) -> Answer:
        # A page follows the one before, or they would not end.
        at, self.pages = self.pages % len(items), self.pages + 1
        return self.page(items[at : at + 1], more=at + 1 < len(items))


class NoEarlier(Shelf):
    """Lists a turn's own input alone."""

    def listed(self, items: list[Json], query: str) -> Answer:
        return super().listed(items[-1:], query)


class OtherPrevious(Shelf):
    """Tells another response than the one that is continued."""

    def told(self, made: Json) -> Answer:
        previous = made["previous_response_id"]
        return super().told({**made, "previous_response_id": previous and "resp_x"})


class SaysLess(Shelf):
    """Does not say what it has deleted."""

    def delete(self, id: str) -> Answer:
        super().delete(id)
        return document({"deleted": True})


class Keeps(Shelf):
    """Deletes nothing."""

    def delete(self, id: str) -> Answer:
        return document({"id": id, "object": "response", "deleted": True})


class Silent(Shelf):
    """Says nothing about a response."""

    def look(self, method: str, path: str) -> Answer:
        raise NoAnswerError("no answer")


LOOKED_AT = ["a stored response", "its input items", "the input items of that turn, one by one", "its deletion"]
LISTS = LOOKED_AT[1:3]

# Each fault, the rule that finds it, and where.
STORED_FAULTS: list[tuple[type[Shelf], dict[str, list[str]]]] = [
    (Forgets, {"stored-as-made": LOOKED_AT[:1]}),
    (NoJson, {"stored-as-made": LOOKED_AT[:1], "input-items": LISTS, "deletion": LOOKED_AT[3:]}),
    (Unlisted, {"input-items": LISTS}),
    (OtherEnds, {"input-items": LISTS}),
    (TooMany, {"input-items": LISTS[1:]}),
    (Twins, {"input-items": LISTS[1:]}),
    (NoEarlier, {"input-items": LISTS[1:]}),
    (OtherPrevious, {"continues": ["a turn that continues it"]}),
    (SaysLess, {"deletion": LOOKED_AT[3:]}),
    (Keeps, {"http-status": ["a deleted response", "a turn that continues a deleted response"]}),
    (
        Silent,
        {
            "http-complete": [*LOOKED_AT, "a deleted response"],
            # It is not deleted either.
            "http-status": ["a turn that continues a deleted response"],
        },
    ),
]
