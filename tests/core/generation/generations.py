"""Scripted generations of each tool-call format, and what they consist of."""

from __future__ import annotations

from tests.core.generation.families import FAMILIES
from tests.core.generation.segments_kit import Found, call, cut, reasoning, text

Generations = dict[str, tuple[str, list[Found]]]

PARIS = '{"city": "Paris", "days": 2}'
WEATHER = f'{{"name": "get_weather", "arguments": {PARIS}}}'
NOW = '{"name": "now", "arguments": {}}'
UNKNOWN = '{"name": "rm", "arguments": {"path": "/"}}'

HERMES: Generations = {
    "text only": ("Just text, with <b>tags</b> & {braces}.", [text("Just text, with <b>tags</b> & {braces}.")]),
    "one call": (f"<tool_call>\n{WEATHER}\n</tool_call>", [call("get_weather", PARIS)]),
    "two calls in a row": (
        f"<tool_call>\n{WEATHER}\n</tool_call>\n<tool_call>\n{NOW}\n</tool_call>\n",
        [call("get_weather", PARIS), call("now", "{}")],
    ),
    "text around calls": (
        f"\n\nI'll look.\n<tool_call>{NOW}</tool_call>\n\nDone.",
        [text("I'll look.\n"), call("now", "{}"), text("Done.")],
    ),
    "no arguments": ('<tool_call>{"name": "now"}</tool_call>', [call("now", "{}")]),
    "arguments are null": ('<tool_call>{"name": "now", "arguments": null}</tool_call>', [call("now", "{}")]),
    "arguments before the name": (
        f'<tool_call>{{"arguments": {PARIS}, "name": "get_weather"}}</tool_call>',
        [call("get_weather", PARIS)],
    ),
    "arguments encoded twice": (
        r'<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}</tool_call>',
        [call("get_weather", '{"city": "Paris"}')],
    ),
    "arguments are no object": (
        '<tool_call>{"name": "get_weather", "arguments": [1]}</tool_call>',
        [text('<tool_call>{"name": "get_weather", "arguments": [1]}</tool_call>')],
    ),
    "arguments as a string of no object": (
        '<tool_call>{"name": "get_weather", "arguments": "[1]"}</tool_call>',
        [text('<tool_call>{"name": "get_weather", "arguments": "[1]"}</tool_call>')],
    ),
    "any arguments of a function without parameters": (
        '<tool_call>{"name": "now", "arguments": [1]}</tool_call>'
        '<tool_call>{"name": "now", "arguments": none}</tool_call>'
        '<tool_call>{"arguments": {"a": 1}, "name": "now"}</tool_call>',
        [call("now", "{}"), call("now", "{}"), call("now", "{}")],
    ),
    "members that say nothing": (
        '<tool_call>{"type": "function", "id": [1], "name": "now", "arguments": {}, "why": {"a": null}}</tool_call>',
        [call("now", "{}")],
    ),
    "a line break inside a string": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "a\nb"}}</tool_call>',
        [call("get_weather", '{"city": "a\\nb"}')],
    ),
    "the end marker inside a string": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "</tool_call>"}}</tool_call>',
        [call("get_weather", '{"city": "</tool_call>"}')],
    ),
    "without the closing tag": (f"<tool_call>{NOW} and on", [call("now", "{}"), text("and on")]),
    "without the closing brace": (
        f'<tool_call>{{"name": "get_weather", "arguments": {PARIS}\n</tool_call>ok',
        [call("get_weather", PARIS), text("ok")],
    ),
    "an unknown function": (f"<tool_call>{UNKNOWN}</tool_call>", [text(f"<tool_call>{UNKNOWN}</tool_call>")]),
    "an unknown function, then a known one": (
        f"<tool_call>{UNKNOWN}</tool_call><tool_call>{NOW}</tool_call>",
        [text(f"<tool_call>{UNKNOWN}</tool_call>"), call("now", "{}")],
    ),
    "a marker in text": ("Write <tool_call> first.", [text("Write <tool_call> first.")]),
    "a marker before a marker": (f"<tool_<tool_call>{NOW}", [text("<tool_"), call("now", "{}")]),
    "broken before it opened": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": oops}}</tool_call>',
        [text('<tool_call>{"name": "get_weather", "arguments": {"city": oops}}</tool_call>')],
    ),
    "broken after it opened": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "a", "at": {"x": [1, {"y": oops}}}}</tool_call>ok',
        [call("get_weather", '{"city": "a", "at": {"x": [1]}}'), text("oops}}}}ok")],
    ),
    "cut in a string": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Par',
        [cut("get_weather", '{"city": "Par')],
    ),
    "cut in a constant": (
        '<tool_call>{"name": "get_weather", "arguments": {"metric": tr',
        [cut("get_weather", '{"metric": ')],
    ),
    "cut in an escape": (
        r'<tool_call>{"name": "get_weather", "arguments": {"city": "\u00e',
        [cut("get_weather", '{"city": "')],
    ),
    "cut in the closing tag": (f"<tool_call>{NOW}</tool_ca", [call("now", "{}")]),
    "cut before it opened": ('<tool_call>{"name": "get_w', []),
}

QWEN_XML: Generations = {
    "text only": ("a < b and <c>", [text("a < b and <c>")]),
    "types of the schema": (
        '<tool_call>\n<function=get_weather>\n<parameter=city>\nNew "York"\nNY\n</parameter>\n<parameter=days>\n2\n'
        "</parameter>\n<parameter=metric>\nTrue\n</parameter>\n<parameter=note>\nnull\n</parameter>\n"
        '<parameter=at>\n{"x": 1.5}\n</parameter>\n</function>\n</tool_call>',
        [
            call(
                "get_weather",
                '{"city": "New \\"York\\"\\nNY", "days": 2, "metric": true, "note": null, "at": {"x": 1.5}}',
            )
        ],
    ),
    "values that do not fit their type": (
        "<tool_call><function=get_weather><parameter=days>\ntwo\n</parameter><parameter=city>5</parameter>"
        "<parameter=note>null and void</parameter></function></tool_call>",
        [call("get_weather", '{"days": "two", "city": "5", "note": "null and void"}')],
    ),
    "two calls and text": (
        "Both.\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n"
        "</tool_call>\nDone.",
        [text("Both.\n"), call("now", "{}"), call("now", "{}"), text("Done.")],
    ),
    "without the outer tag": ("<function=now>\n</function>", [call("now", "{}")]),
    "without the end of a parameter": (
        "<tool_call><function=get_weather><parameter=city>\nParis\n<parameter=days>\n2\n</function></tool_call>",
        [call("get_weather", '{"city": "Paris", "days": 2}')],
    ),
    "tags inside a value": (
        "<tool_call><function=get_weather><parameter=city>\n<a></b><tool_call><function=x>\n</parameter></function>"
        "</tool_call>",
        [call("get_weather", '{"city": "<a></b><tool_call><function=x>"}')],
    ),
    "only the template's line breaks go": (
        "<tool_call><function=get_weather><parameter=city>\n\n a \n\n</parameter></function></tool_call>",
        [call("get_weather", '{"city": "\\n a \\n"}')],
    ),
    "an empty value": (
        "<tool_call><function=get_weather><parameter=city>\n</parameter></function></tool_call>",
        [call("get_weather", '{"city": ""}')],
    ),
    "an unknown function": (
        "<tool_call>\n<function=rm>\n</function>\n</tool_call>",
        [text("<tool_call>\n<function=rm>\n</function>\n</tool_call>")],
    ),
    "a marker in text": ("Write <tool_call> or <function=x.", [text("Write <tool_call> or <function=x.")]),
    "anything for a function without parameters": (
        "<tool_call><function=now>nothing</function></tool_call>",
        [call("now", "{}")],
    ),
    "broken before it opened": (
        "<tool_call><function=get_weather>nothing</function></tool_call>",
        [text("<tool_call><function=get_weather>nothing</function></tool_call>")],
    ),
    "broken after it opened": (
        "<tool_call><function=get_weather><parameter=city>\na\n</parameter>\nand</function></tool_call>",
        [call("get_weather", '{"city": "a"}'), text("and")],
    ),
    "broken in a parameter's tag": (
        "<tool_call><function=get_weather><parameter=a\n>1",
        [text("<tool_call><function=get_weather><parameter=a\n>1")],
    ),
    "cut in a string": (
        "<tool_call><function=get_weather><parameter=city>\nPar",
        [cut("get_weather", '{"city": "Par')],
    ),
    "cut in a number": (
        "<tool_call><function=get_weather><parameter=days>\n1",
        [cut("get_weather", '{"days": ')],
    ),
    "cut in a tag": ("<tool_call><function=now>\n</func", [cut("now", "{")]),
}

LLAMA = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
LLAMA_JSON: Generations = {
    "text only": ("It is {cold}.", [text("It is {cold}.")]),
    "a bare call": (f"\n{LLAMA}", [call("get_weather", '{"city": "Paris"}')]),
    "a marked call": (f"<|python_tag|>{LLAMA}", [call("get_weather", '{"city": "Paris"}')]),
    "several calls": (
        f"<|python_tag|>{LLAMA}; {NOW};<|python_tag|>{LLAMA}\n{NOW}",
        [
            call("get_weather", '{"city": "Paris"}'),
            call("now", "{}"),
            call("get_weather", '{"city": "Paris"}'),
            call("now", "{}"),
        ],
    ),
    "a type beside the name": ('{"type": "function", "name": "now"}', [call("now", "{}")]),
    "text before a marked call": (f"Well.<|python_tag|>{NOW}", [text("Well."), call("now", "{}")]),
    "text after a call": (f"{NOW}; done", [call("now", "{}"), text("; done")]),
    "a separator and no more": (f"{NOW};", [call("now", "{}")]),
    "JSON that is no call": ('{"ok": 1, "name": "now"}', [text('{"ok": 1, "name": "now"}')]),
    "an unknown function": (UNKNOWN, [text(UNKNOWN)]),
    "a built-in tool": (
        '<|python_tag|>brave_search.call(query="x")',
        [text('brave_search.call(query="x")')],
    ),
    "cut in the arguments": ('{"name": "get_weather", "parameters": {"a', [cut("get_weather", "{")]),
    "cut before it opened": ('{"name": "no', [text('{"name": "no')]),
}

PYTHONIC: Generations = {
    "text only": ("[1] is a footnote, [a](b) a link.", [text("[1] is a footnote, [a](b) a link.")]),
    "one call": ('[get_weather(city="Paris", days=2)]', [call("get_weather", PARIS)]),
    "two calls": ("[now(), get_weather(days=-1.5e3)]", [call("now", "{}"), call("get_weather", '{"days": -1.5e3}')]),
    "marked": ("Well. <|python_start|>[now()]<|python_end|> So.", [text("Well. "), call("now", "{}"), text("So.")]),
    "values of Python": (
        """[get_weather(metric=True, note=None, at={'x': [1, False], "y": {}}, city='say "hi"\\'s \\x41\\n')]""",
        [
            call(
                "get_weather",
                """{"metric": true, "note": null, "at": {"x": [1, false], "y": {}}, "city": "say \\"hi\\"'s A\\n"}""",
            )
        ],
    ),
    "characters by number and unknown escapes": (
        r"[get_weather(city='\u00e9\U0001F600\d\U99999999\ud83d')]",
        [call("get_weather", r'{"city": "\u00e9\ud83d\ude00\\d\\U99999999\ud83d"}')],
    ),
    "a comma after the last argument": ("[get_weather(days=1,)]", [call("get_weather", '{"days": 1}')]),
    "an unknown function": ("[rm(path='/')]", [text("[rm(path='/')]")]),
    "an argument without a name": ("[get_weather(1)]", [text("[get_weather(1)]")]),
    "any argument of a function without parameters": ("[now(1, a=b)]", [call("now", "{}")]),
    "broken before it opened": ("[get_weather(city=b)]", [text("[get_weather(city=b)]")]),
    "broken after it opened": (
        "[get_weather(days=1, city=b)]",
        [call("get_weather", '{"days": 1}'), text("b)]")],
    ),
    "cut in a string": ('[get_weather(city="Par', [cut("get_weather", '{"city": "Par')]),
    "cut in a constant": ("[get_weather(metric=Tr", [cut("get_weather", '{"metric": ')]),
    "cut between calls": ("[now(), ", [call("now", "{}")]),
    "cut before it opened": ("[get_wea", [text("[get_wea")]),
}

MISTRAL: Generations = {
    "text only": ("[TOOL] is text.", [text("[TOOL] is text.")]),
    "a list": (f"[TOOL_CALLS][{WEATHER}, {NOW}]", [call("get_weather", PARIS), call("now", "{}")]),
    "a list with space": (f"[TOOL_CALLS] [ {NOW} ,\n{NOW} ]\nOk", [call("now", "{}"), call("now", "{}"), text("Ok")]),
    "names and arguments": (
        f"Hm.[TOOL_CALLS]get_weather[ARGS]{PARIS}[TOOL_CALLS]now[ARGS]{{}}",
        [text("Hm."), call("get_weather", PARIS), call("now", "{}")],
    ),
    "with an id": ("[TOOL_CALLS]now[CALL_ID]a1B2c3D4e[ARGS]{}", [call("now", "{}")]),
    "without the marker of the arguments": ("[TOOL_CALLS]now{}", [call("now", "{}")]),
    "an empty list": ("[TOOL_CALLS][]", [text("[]")]),
    "an unknown function": ("[TOOL_CALLS]rm[ARGS]{}", [text("rm{}")]),
    "an unknown function in a list": (f"[TOOL_CALLS][{UNKNOWN}]", [text(f"[{UNKNOWN}]")]),
    "broken between calls": (f"[TOOL_CALLS][{NOW}, oops]", [call("now", "{}"), text(", oops]")]),
    "broken before it opened": ('[TOOL_CALLS]get_weather[ARGS]{"a" 1}', [text('get_weather{"a" 1}')]),
    "cut between calls": (f"[TOOL_CALLS][{NOW}, ", [call("now", "{}")]),
    "cut in the arguments": ("[TOOL_CALLS]get_weather[ARGS]{", [cut("get_weather", "{")]),
}

_BEGIN, _SEP, _END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
_CALLS, _CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_FENCED = f"{_BEGIN}function{_SEP}get_weather\n```json\n{PARIS}\n```{_END}"
DEEPSEEK: Generations = {
    "text only": ("a <｜tool b", [text("a <｜tool b")]),
    "V3": (f"{_CALLS}{_FENCED}{_CALLS_END}", [call("get_weather", PARIS)]),
    "V3, two calls": (
        f"Ok.{_CALLS}{_FENCED}\n{_FENCED}{_CALLS_END}",
        [text("Ok."), call("get_weather", PARIS), call("get_weather", PARIS)],
    ),
    "V3.1": (
        f"{_CALLS}{_BEGIN}get_weather{_SEP}{PARIS}{_END}{_BEGIN}now{_SEP}{{}}{_END}{_CALLS_END}",
        [call("get_weather", PARIS), call("now", "{}")],
    ),
    "an unknown function": (
        f"{_CALLS}{_BEGIN}rm{_SEP}{{}}{_END}{_CALLS_END}",
        [text("rm{}")],
    ),
    "broken before it opened": (f"{_CALLS} no", [text("no")]),
    "broken in the arguments": (f"{_CALLS}{_BEGIN}get_weather{_SEP}{{1}}", [text("get_weather{1}")]),
    "cut in the arguments": (
        f"{_CALLS}{_BEGIN}function{_SEP}get_weather\n```json\n" + '{"a": "b',
        [cut("get_weather", '{"a": "b')],
    ),
    "cut in the end": (f"{_CALLS}{_FENCED}"[:-5], [call("get_weather", PARIS)]),
}

_TO_WEATHER = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"days": 1}'
HARMONY: Generations = {
    "text only": ("No markup at all.", [text("No markup at all.")]),
    "final": ("<|channel|>final<|message|>Hi.<|return|>", [text("Hi.")]),
    "analysis, then final": (
        "<|channel|>analysis<|message|>\nHm. \n<|end|><|start|>assistant<|channel|>final<|message|>Hi.",
        [reasoning("Hm."), text("Hi.")],
    ),
    "analysis, then a call": (
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{_TO_WEATHER}<|call|>",
        [reasoning("Hm."), call("get_weather", '{"days": 1}')],
    ),
    "commentary without a recipient": (
        f"<|channel|>commentary<|message|>I'll look.<|end|><|start|>assistant{_TO_WEATHER}<|call|>",
        [text("I'll look."), call("get_weather", '{"days": 1}')],
    ),
    "two messages of one kind": (
        "<|channel|>commentary<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>Two.<|return|>",
        [text("One.\n\nTwo.")],
    ),
    "two thoughts": (
        "<|channel|>analysis<|message|>One.\n<|end|><|start|>assistant<|channel|>analysis<|message|> Two.",
        [reasoning("One.\n\nTwo.")],
    ),
    "the recipient before the channel": (
        "<|start|>assistant to=functions.now<|channel|>commentary json<|message|><|call|>",
        [call("now", "{}")],
    ),
    "two calls": (
        f"{_TO_WEATHER}<|call|><|start|>assistant{_TO_WEATHER}",
        [call("get_weather", '{"days": 1}'), call("get_weather", '{"days": 1}')],
    ),
    "a message that does not end": (
        "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Hi.",
        [reasoning("Hm."), text("Hi.")],
    ),
    "an unknown function": (
        "<|channel|>commentary to=functions.rm<|message|>{}<|call|>",
        [text("{}")],
    ),
    "broken before it opened": (
        "<|channel|>commentary to=functions.get_weather<|message|>{x}<|call|>",
        [text("{x}")],
    ),
    "a header that is none": ("<|channel|>a\nb", [text("a\nb")]),
    "cut in a header": ("<|channel|>fin", []),
    "cut in the reasoning": ("<|channel|>analysis<|message|>Hm, ", [reasoning("Hm,")]),
    "cut in the arguments": (_TO_WEATHER[:-2], [cut("get_weather", '{"days": ')]),
}

FORCED: Generations = {
    "one call": (WEATHER, [call("get_weather", PARIS)]),
    "with space": (f"\n {NOW}\n", [call("now", "{}")]),
    "a list": (f"[{WEATHER},\n {NOW}]", [call("get_weather", PARIS), call("now", "{}")]),
    "what follows": (f"{NOW} Done.", [call("now", "{}"), text("Done.")]),
    "not a call": ('{"answer": 1}', [text('{"answer": 1}')]),
    "cut in a list": (f"[{NOW}, ", [call("now", "{}")]),
    "cut in the arguments": (WEATHER[:-8], [cut("get_weather", '{"city": "Paris", ')]),
}

GENERATIONS: dict[str, Generations] = {
    "hermes": HERMES,
    "qwen_xml": QWEN_XML,
    "llama_json": LLAMA_JSON,
    "pythonic": PYTHONIC,
    "mistral": MISTRAL,
    "deepseek": DEEPSEEK,
    "harmony": HARMONY,
    "forced": FORCED,
} | FAMILIES
"""By the format's name."""
