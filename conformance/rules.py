"""The rules of the Responses protocol as clients rely on them: a name and one sentence each.

Sources: OpenAI's streaming reference, the Open Responses specification, and what the SDKs raise on when it is missing.
Names are stable, so that reports can be compared and filtered.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """What has to hold. Breaking a ``warning`` rule breaks some clients only, or only behind a proxy."""

    statement: str
    warning: bool = False


RULES: dict[str, Rule] = {
    # The HTTP answer
    "http-status": Rule("The HTTP status is the one that the request deserves."),
    "http-complete": Rule("Every request gets an answer, and its body ends as HTTP announced."),
    "content-type": Rule("Streams are `text/event-stream`, everything else is `application/json`, both in UTF-8."),
    "request-id": Rule("Every answer has an `x-request-id` header.", warning=True),
    "error-body": Rule("An error body has `error` with `message`, `type` and `code` as texts, and `param`."),
    "metadata-echo": Rule("`metadata` comes back as it was sent."),
    "output-limit": Rule("`max_output_tokens` is kept, and named as the reason where it cut the answer."),
    "answer-failed": Rule("A stream that has begun ends with an answer, not with `response.failed` or `error`."),
    "demanded-call": Rule("A completed answer to `tool_choice` `required` or a function's name has a call."),
    "single-call": Rule("With `parallel_tool_calls: false` an answer has one call at most."),
    "known-tool": Rule("A call names one of the request's tools."),
    "strict-arguments": Rule("The arguments fit the tool's `parameters` where the response says `strict: true`."),
    "structured-output": Rule("With a `json_schema` format the text of a completed answer is JSON that fits it."),
    "control-markers": Rule("No text, reasoning or call holds a control marker such as `<tool_call>` or `<|im_end|>`."),
    # Stored responses
    "stored-as-made": Rule("A stored response is told again as it was when it was made."),
    "input-items": Rule("Lists of input items have OpenAI's form; their pages join to all items, whose ids differ."),
    "continues": Rule("`previous_response_id` comes back as it was sent."),
    "deletion": Rule("A deletion tells the `id`, and `deleted: true`."),
    # Server-sent events
    "sse-fields": Rule("An event is one `event:` line, one `data:` line and a blank line, in this order."),
    "sse-event-name": Rule("The `event:` line names the `type` in the data."),
    "sse-json": Rule("The data is one JSON object with a `type`."),
    "sse-utf-8": Rule("The stream is valid UTF-8."),
    "sse-comment": Rule("Comments stand between events, each with a blank line of its own."),
    "sse-whole-end": Rule("The stream ends after a whole event."),
    "sse-chunks": Rule("Each chunk of the HTTP body holds whole events.", warning=True),
    "sse-buffered": Rule("Deltas come as they are made, not all at once when the answer is complete."),
    "sse-done-marker": Rule("The stream ends without `data: [DONE]`.", warning=True),
    "sse-line-separators": Rule("U+0085, U+2028 and U+2029 are escaped: some readers break lines there.", warning=True),
    # The stream
    "known-event": Rule("Every event type is one of OpenAI's: clients throw on others."),
    "event-fields": Rule("Every event has the members of its type, each of the right kind."),
    "sequence-number": Rule("`sequence_number` counts all events from 0, without a gap."),
    "stream-start": Rule("A stream starts with `response.created` and `response.in_progress`, each once."),
    "one-terminal": Rule(
        "A stream has one end: `response.completed`, `response.incomplete`, `response.failed` or `error`; "
        "of these only the last two may come together."
    ),
    "after-terminal": Rule("Nothing follows the end."),
    "response-id": Rule("The response has the same id in all events."),
    "response-unchanged": Rule("The response keeps its `created_at` and `model` in all events."),
    "response-status": Rule("The response's `status` is the one that the event or the HTTP status tells."),
    "stray-error": Rule("Only an `error` event has a member `error`: clients raise on it."),
    "error-event": Rule("An `error` event tells `code`, `message` and `param` flat, and again with `type` in `error`."),
    # The items of a stream
    "output-index": Rule("`output_index` counts the items from 0, and is the same in all events of an item."),
    "item-id": Rule("Every item has an id of its own, the same in all its events."),
    "item-open": Rule("The events of an item come between its `output_item.added` and its `output_item.done`."),
    "item-done": Rule("Every item is done before the next one is added, and before the response ends well."),
    "starts-empty": Rule("A response, an item and a part are empty where they begin."),
    "item-unchanged": Rule("An item keeps its `type`, `role`, `name` and `call_id` until it is done."),
    "content-index": Rule("`content_index` and `summary_index` count the parts of an item from 0."),
    "part-order": Rule("Parts run added, deltas, text done, part done; arguments run deltas, done."),
    "part-type": Rule("Parts and deltas fit the item and the part they belong to."),
    "empty-delta": Rule("No delta is empty.", warning=True),
    "done-equals-deltas": Rule("The text, refusal or arguments of a done event are its deltas joined."),
    "part-equals-text": Rule("The part in `content_part.done` holds the text of its done event."),
    "item-equals-parts": Rule("The item in `output_item.done` holds its parts or arguments as they were streamed."),
    "final-equals-streamed": Rule("The final `output` is the items of the stream, in their order."),
    # The response object
    "response-shape": Rule("A response has `id`, `object`, `created_at`, `model`, `status` and `output`."),
    "response-members": Rule(
        "A response has the other members that OpenAI's schema requires, null where they are unset."
    ),
    "completed-at": Rule("`completed_at` is a time in a completed response, and null in any other."),
    "incomplete-details": Rule("An incomplete response tells a `reason` in `incomplete_details`, others have null."),
    "response-error": Rule("A failed response tells `code` and `message` in `error`, others have null."),
    "answer-not-empty": Rule("A completed response has an item: without one, agents ask again until their limit."),
    "item-shape": Rule("Every item has the members of its type, ids and names not empty."),
    "part-shape": Rule("Every part of a message or of reasoning has the members of its type."),
    "item-status": Rule(
        "An item is `in_progress` when added, `completed` or `incomplete` at the end; in a completed response "
        "`completed`."
    ),
    "incomplete-last": Rule("Only the last item of a response can be incomplete."),
    "call-id": Rule("Every call has a `call_id` of its own."),
    "arguments-json": Rule("The arguments of a completed function call are a JSON object."),
    "usage-shape": Rule("An answer has `usage` with `input_tokens`, `output_tokens` and `total_tokens`."),
    "usage-counted": Rule("The tokens of an answer are counted: `usage` is not all zeros."),
    "usage-total": Rule("`total_tokens` is the sum of `input_tokens` and `output_tokens`."),
    "usage-details": Rule(
        "`usage` has both details objects; cached tokens are part of the input, reasoning tokens of the output."
    ),
}


class Violation(NamedTuple):
    """One place where a rule does not hold.

    ``rule`` is a key of :data:`RULES`; ``event_index`` counts the events of a stream from 0 and is ``None`` where no
    event is meant.
    """

    rule: str
    message: str
    event_index: int | None = None

    @property
    def warning(self) -> bool:
        """Whether the rule is one to be warned about only."""
        return RULES[self.rule].warning
