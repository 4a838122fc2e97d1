"""Scripted generations of further model families, and what they consist of.

Each has an ordinary call, two calls, one without arguments, text around calls, and slips that the family is known for.
"""

from __future__ import annotations

import json

from tests.core.generation.segments_kit import Found, call, cut, text

PARIS = '{"city": "Paris", "days": 2}'
WEATHER = f'{{"name": "get_weather", "arguments": {PARIS}}}'
NOW = '{"name": "now", "arguments": {}}'
_PARIS = call("get_weather", PARIS)
_NOW = call("now", "{}")

Generations = dict[str, tuple[str, list[Found]]]


def listed(begin: str, end: str, *, between: str = ", ") -> Generations:
    """Generations of a format that writes a list of JSON objects between markers."""
    return {
        "text only": ("Two [links](x) and {braces}.", [text("Two [links](x) and {braces}.")]),
        "one call": (f"{begin}[{WEATHER}]{end}", [_PARIS]),
        "two calls": (f"{begin}[{WEATHER}{between}{NOW}]{end}", [_PARIS, _NOW]),
        "two lists": (f"{begin}[{WEATHER}]{end}\n{begin}[{NOW}]{end}", [_PARIS, _NOW]),
        "text around": (f"Wait.\n{begin}\n[\n  {NOW}\n]\n{end}\nDone.", [text("Wait.\n"), _NOW, text("Done.")]),
        "no arguments": (f'{begin}[{{"name": "now"}}]{end}', [_NOW]),
        "without the list": (f"{begin}{WEATHER}{end}", [_PARIS]),
        "objects in lines": (f"{begin}\n{WEATHER}\n{NOW}\n{end}", [_PARIS, _NOW]),
        "arguments in a string": (
            rf'{begin}[{{"name": "get_weather", "arguments": "{{\"days\": 1}}"}}]{end}',
            [call("get_weather", '{"days": 1}')],
        ),
        "cut in the arguments": (
            f'{begin}[{{"name": "get_weather", "arguments": {{"city": "b',
            [cut("get_weather", '{"city": "b')],
        ),
        "cut between calls": (f"{begin}[{NOW}, ", [_NOW]),
    }


_SECTION, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _ARGUMENTS, _CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_TO_WEATHER = f"{_CALL}functions.get_weather:0{_ARGUMENTS}{PARIS}{_CALL_END}"
_TO_NOW = f"{_CALL}functions.now:1{_ARGUMENTS}{{}}{_CALL_END}"
KIMI_K2: Generations = {
    "text only": ("a <|tool b", [text("a <|tool b")]),
    "one call": (f"{_SECTION}{_TO_WEATHER}{_SECTION_END}", [_PARIS]),
    "two calls": (f"{_SECTION}{_TO_WEATHER}{_TO_NOW}{_SECTION_END}", [_PARIS, _NOW]),
    "text around": (f"Ok. {_SECTION}{_TO_NOW}{_SECTION_END} Done.", [text("Ok. "), _NOW, text("Done.")]),
    "space around the id": (f"{_SECTION}{_CALL} functions.now:0 {_ARGUMENTS} {{}} {_CALL_END}{_SECTION_END}", [_NOW]),
    "an id without a prefix": (f"{_SECTION}{_CALL}now:0{_ARGUMENTS}{{}}{_CALL_END}{_SECTION_END}", [_NOW]),
    "without the section": (f"{_TO_WEATHER}\n{_TO_NOW}", [_PARIS, _NOW]),
    "the section in the singular": (
        f"<|tool_call_section_begin|>{_TO_NOW}<|tool_call_section_end|>",
        [_NOW],
    ),
    "a string that does not end": (
        f'{_SECTION}{_CALL}functions.get_weather:0{_ARGUMENTS}{{"city": "Paris{_CALL_END}{_SECTION_END}',
        [call("get_weather", '{"city": "Paris"}')],
    ),
    "cut in the arguments": (
        f'{_SECTION}{_CALL}functions.get_weather:0{_ARGUMENTS}{{"city": "b',
        [cut("get_weather", '{"city": "b')],
    ),
    "cut in the end": (f"{_SECTION}{_TO_NOW}"[:-3], [_NOW]),
}


def tagged(
    call_: str,
    call_end: str,
    parameter: str,
    parameter_end: str,
    begin: str = "",
    end: str = "",
    *,
    is_string: str = "",
    is_other: str = "",
) -> Generations:
    """Generations of a format that writes tags; ``call_`` and ``parameter`` have a ``%s`` for the name."""

    def weather(**values: str) -> str:
        tags = [
            parameter % name + (is_string if name in ("city", "note") else is_other) + ">" + value + parameter_end
            for name, value in values.items()
        ]
        return "\n".join((call_ % "get_weather", *tags, call_end))

    now = f"{call_ % 'now'}\n{call_end}"
    return {
        "text only": ("a < b and <c>", [text("a < b and <c>")]),
        "one call": (f"{begin}\n{weather(city='Paris', days='2')}\n{end}", [_PARIS]),
        "two calls": (f"{begin}\n{weather(city='Paris', days='2')}\n{now}\n{end}", [_PARIS, _NOW]),
        "two blocks": (f"{begin}{now}{end}\n{begin}{now}{end}", [_NOW, _NOW]),
        "text around": (f"Wait.\n{begin}{now}\n{end}\nDone.", [text("Wait.\n"), _NOW, text("Done.")]),
        "types of the schema": (
            begin + weather(city='New "York"', days="2", metric="true", note="null", at='{"x": 1.5}') + end,
            [
                call(
                    "get_weather",
                    '{"city": "New \\"York\\"", "days": 2, "metric": true, "note": '
                    + ('"null"' if is_string else "null")
                    + ', "at": {"x": 1.5}}',
                )
            ],
        ),
        "the end of a parameter left out": (
            begin + weather(city="Paris").replace(parameter_end, "") + end,
            [call("get_weather", '{"city": "Paris"}')],
        ),
        "tags that a value is about": (
            begin + weather(city=f"{parameter_end} and {call_end}, {call_ % 'x'}") + end,
            [
                call(
                    "get_weather",
                    json.dumps({"city": f"{parameter_end} and {call_end}, {call_ % 'x'}"}, ensure_ascii=False),
                )
            ],
        ),
        "tags and lines in a value": (
            begin + weather(city="<a>\n</b>\n") + end,
            [call("get_weather", '{"city": "<a>\\n</b>\\n"}')],
        ),
        "cut in a string": (
            begin + weather(city="Paris").partition("is")[0],
            [cut("get_weather", '{"city": "Par')],
        ),
        "cut in the end": (f"{begin}{now}"[:-3], [cut("now", "{")]),
    }


MINIMAX_M2 = tagged(
    '<invoke name="%s">',
    "</invoke>",
    '<parameter name="%s"',
    "</parameter>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
)
SEED_OSS = tagged(
    "<function=%s>",
    "</function>",
    "<parameter=%s",
    "</parameter>",
    "<seed:tool_call>",
    "</seed:tool_call>",
) | {
    "without the outer tag": ("<function=now>\n</function>", [_NOW]),
}
STEP3 = tagged(
    '<steptml:invoke name="%s">',
    "</steptml:invoke>",
    '<steptml:parameter name="%s"',
    "</steptml:parameter>",
    "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>",
    "<｜tool_call_end｜>\n<｜tool_calls_end｜>",
) | {
    "a token in a value": (
        '<｜tool_calls_begin｜><steptml:invoke name="get_weather"><steptml:parameter name="city">Paris'
        "<｜tool_sep｜> no",
        [call("get_weather", '{"city": "Paris"}'), text("no")],
    ),
    "each call in a block of its own": (
        "<｜tool_calls_begin｜>\n"
        + '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="now"></steptml:invoke><｜tool_call_end｜>\n'
        * 2
        + "<｜tool_calls_end｜>",
        [_NOW, _NOW],
    ),
}
MINICPM5 = tagged('<function name="%s">', "</function>", '<param name="%s"', "</param>") | {
    "a value in a CDATA section": (
        '<function name="get_weather"><param name="city"><![CDATA[<a>\nb]]></param></function>',
        [call("get_weather", '{"city": "<a>\\nb"}')],
    ),
}


def _dsml(word: str, outer: str) -> Generations:
    begin, end = f"<{word}{outer}>", f"</{word}{outer}>"
    return tagged(
        f'<{word}invoke name="%s">',
        f"</{word}invoke>",
        f'<{word}parameter name="%s"',
        f"</{word}parameter>",
        begin,
        end,
        is_string=' string="true"',
        is_other=' string="false"',
    ) | {
        "a call that closes itself": (f'{begin}\n<{word}invoke name="now"/>\n{end}', [_NOW]),
        "all arguments in one object": (
            f'{begin}\n<{word}invoke name="get_weather">\n{PARIS}\n</{word}invoke>\n{end}',
            [_PARIS],
        ),
        "a string that the schema does not ask for": (
            f'{begin}<{word}invoke name="get_weather"><{word}parameter name="days" string="true">2</{word}parameter>'
            f"</{word}invoke>{end}",
            [call("get_weather", '{"days": "2"}')],
        ),
    }


DEEPSEEK_V32 = _dsml("｜DSML｜", "function_calls") | {
    "V4": ('<｜DSML｜tool_calls>\n<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>', [_NOW]),
}
DEEPSEEK_V41 = _dsml("｜DSML｜ ", "calls")
GIGACHAT35 = _dsml("｜GCML｜", "tool_calls")


def _xtml(tag: str, attributes: str, content: str) -> str:
    return f"<|open|>{tag}{attributes}<|sep|>{content}<|close|>{tag}<|sep|>"


def _k3(name: str, *arguments: tuple[str, str, str], index: int = 1) -> str:
    content = "".join(_xtml("argument", f' key="{key}" type="{kind}"', value) for key, kind, value in arguments)
    return _xtml("call", f' tool="{name}" index="{index}"', content)


KIMI_K3: Generations = {
    "text only": ("a <|op b", [text("a <|op b")]),
    "one call": (
        _xtml("tools", "", _k3("get_weather", ("city", "string", "Paris"), ("days", "number", "2"))),
        [_PARIS],
    ),
    "two calls": (
        _xtml("response", "", "Ok.") + _xtml("tools", "", _k3("now") + _k3("now", index=2)) + "<|close|>message<|sep|>",
        [text("Ok."), _NOW, _NOW],
    ),
    "markers in a value": (
        _xtml("tools", "", _k3("get_weather", ("city", "string", '<|open|>call tool="x"<|sep|>'))),
        [call("get_weather", '{"city": "<|open|>call tool=\\"x\\"<|sep|>"}')],
    ),
    "values that are no strings": (
        _xtml("tools", "", _k3("get_weather", ("at", "object", '{"x": 1}'), ("note", "null", "null"))),
        [call("get_weather", '{"at": {"x": 1}, "note": null}')],
    ),
    "cut in a value": (
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"'
        "<|sep|>b",
        [cut("get_weather", '{"city": "b')],
    ),
}

GLM: Generations = {
    "text only": ("a <tool b", [text("a <tool b")]),
    "one call": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        [_PARIS],
    ),
    "two calls without line breaks": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key>"
        "<arg_value>2</arg_value></tool_call><tool_call>now</tool_call>",
        [_PARIS, _NOW],
    ),
    "text around": ("Wait.\n<tool_call>now\n</tool_call>\nDone.", [text("Wait.\n"), _NOW, text("Done.")]),
    "types of the schema": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>5</arg_value><arg_key>metric</arg_key>"
        "<arg_value>false</arg_value><arg_key>note</arg_key><arg_value>null</arg_value><arg_key>at</arg_key>"
        '<arg_value>{"x": 1}</arg_value></tool_call>',
        [call("get_weather", '{"city": "5", "metric": false, "note": null, "at": {"x": 1}}')],
    ),
    "white space and tags in a value": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value> <b>\n</arg_value></tool_call>",
        [call("get_weather", '{"city": " <b>\\n"}')],
    ),
    "tags that a value is about": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>a </arg_value> and </tool_call>, <arg_key>."
        "</arg_value></tool_call>",
        [call("get_weather", '{"city": "a </arg_value> and </tool_call>, <arg_key>."}')],
    ),
    "without the end of a value": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</tool_call>",
        [call("get_weather", '{"city": "Paris"}')],
    ),
    "a JSON object": (f"<tool_call>\n{WEATHER}\n</tool_call>", [_PARIS]),
    "no call": ("Write <tool_call>now and then", [text("Write <tool_call>now and then")]),
    "cut in a value": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Par",
        [cut("get_weather", '{"city": "Par')],
    ),
}


LONGCAT = listed("<longcat_tool_call>", "</longcat_tool_call>") | {
    "keys and values": (
        "Ok.<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Paris"
        "</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>2</longcat_arg_value>\n"
        "</longcat_tool_call>",
        [text("Ok."), _PARIS],
    ),
}


def _bare(begin: str, end: str, quote: str) -> Generations:
    """Generations of a format that writes objects with bare keys."""

    def weather(**values: str) -> str:
        return "call:get_weather{" + ",".join(f"{key}:{value}" for key, value in values.items()) + "}"

    paris = weather(city=f"{quote}Paris{quote}", days="2")
    found_paris = call("get_weather", '{"city": "Paris","days": 2}')
    return {
        "text only": ("a <b> {c}", [text("a <b> {c}")]),
        "one call": (f"{begin}{paris}{end}", [found_paris]),
        "two calls": (f"{begin}{paris}{end}{begin}call:now{{}}{end}", [found_paris, _NOW]),
        "text around": (f"Wait. {begin}call:now{{}}{end} Done.", [text("Wait. "), _NOW, text("Done.")]),
        "values of all kinds": (
            begin
            + weather(city=f'{quote}say "hi",\n}} \\ now{quote}', metric="true", note="null", at="{x:-1.5,y:[1,{}]}")
            + end,
            [
                call(
                    "get_weather",
                    '{"city": "say \\"hi\\",\\n} \\\\ now","metric": true,"note": null,"at": {"x": -1.5,"y": [1,{}]}}',
                )
            ],
        ),
        "a string that does not end": (
            begin + weather(city=f"{quote}Paris{end}"),
            [call("get_weather", '{"city": "Paris"}')],
        ),
        "a key with a space": (f"{begin}call:get_weather{{a b:1}}{end}", [call("get_weather", '{"a b": 1}')]),
        "without the end": (f"{begin}call:now{{}}", [_NOW]),
        "cut in a string": (f"{begin}call:get_weather{{city:{quote}Par", [cut("get_weather", '{"city": "Par')]),
    }


APERTUS: Generations = {
    "text only": ("[a](b)", [text("[a](b)")]),
    "one call": (f'<|tools_prefix|>[{{"get_weather": {PARIS}}}]<|tools_suffix|>', [_PARIS]),
    "two calls": (
        f'Ok.<|tools_prefix|>[{{"get_weather": {PARIS}}}, {{"now": {{}}}}]<|tools_suffix|>',
        [text("Ok."), _PARIS, _NOW],
    ),
    "text after": ('<|tools_prefix|>[{"now": {}}]<|tools_suffix|>\nDone.', [_NOW, text("Done.")]),
    "cut in the arguments": ('<|tools_prefix|>[{"get_weather": {"city": "b', [cut("get_weather", '{"city": "b')]),
}
COHERE = listed("<|START_ACTION|>", "<|END_ACTION|>", between=",\n    ") | {
    "names of its own": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": '
        + PARIS
        + '},\n    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}\n]<|END_ACTION|>',
        [_PARIS, _NOW],
    ),
    "text between tokens": ("<|START_RESPONSE|>Hi.<|END_RESPONSE|>", [text("Hi.")]),
    "text between tokens of later models": ("<|START_TEXT|>Hi.<|END_TEXT|>", [text("Hi.")]),
}
ERNIE45: Generations = {
    "text only": ("\n<response>\nHi.\n</response>\n", [text("Hi.\n\n")]),
    "one call": (f"<tool_call>\n{WEATHER}\n</tool_call>\n", [_PARIS]),
    "two calls": (f"<tool_call>\n{WEATHER}\n</tool_call>\n\n<tool_call>\n{NOW}\n</tool_call>\n", [_PARIS, _NOW]),
    "text before": (f"<response>\nOk.\n</response>\n\n<tool_call>\n{NOW}\n</tool_call>", [text("Ok.\n\n\n"), _NOW]),
    "cut in the arguments": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "b',
        [cut("get_weather", '{"city": "b')],
    ),
}
HUNYUAN = listed("<tool_calls>", "</tool_calls>") | {
    "text between tags": ("<answer>\nHi.\n</answer>", [text("Hi.\n")]),
}
GIGACHAT3: Generations = {
    "text only": ("a <|mess", [text("a <|mess")]),
    "one call": (f"<|function_call|>{WEATHER}", [_PARIS]),
    "a message of its own": (
        f"Ok.<|message_sep|>\n\nfunction call<|role_sep|>\n{WEATHER}<|message_sep|>\n\n",
        [text("Ok.\n\n"), _PARIS],
    ),
    "two calls": (f"<|function_call|>{WEATHER}<|message_sep|><|function_call|>{NOW}", [_PARIS, _NOW]),
    "cut in the arguments": (
        '<|function_call|>{"name": "get_weather", "arguments": {"city": "b',
        [cut("get_weather", '{"city": "b')],
    ),
}
INTERNLM: Generations = {
    "text only": ("a <|action b", [text("a <|action b")]),
    "one call": (f"<|action_start|><|plugin|>\n{WEATHER}<|action_end|>", [_PARIS]),
    "two calls with space": (
        f"<|action_start|> <|plugin|>\n{WEATHER}<|action_end|>\n<|action_start|> <|plugin|>\n{NOW}<|action_end|>",
        [_PARIS, _NOW],
    ),
    "text around": (
        'Ok.<|action_start|><|plugin|>{"name": "now", "parameters": {}}<|action_end|>\nDone.',
        [text("Ok."), _NOW, text("Done.")],
    ),
    "cut in the arguments": (
        '<|action_start|><|plugin|>\n{"name": "get_weather", "parameters": {"city": "b',
        [cut("get_weather", '{"city": "b')],
    ),
}
XLAM: Generations = {
    "text only": ("[1] is a footnote.", [text("[1] is a footnote.")]),
    "one call": (f"[{WEATHER}]", [_PARIS]),
    "two calls": (f"\n[{WEATHER}, {NOW}]", [_PARIS, _NOW]),
    "text after": (f"[{NOW}] Done.", [_NOW, text("Done.")]),
    "JSON that is no call": ('[{"ok": 1}]', [text('[{"ok": 1}]')]),
    "cut in the arguments": ('[{"name": "get_weather", "arguments": {"city": "b', [cut("get_weather", '{"city": "b')]),
}
PHI4_MINI = listed("<|tool_call|>", "<|/tool_call|>") | {
    "after a word": (f"functools[{WEATHER}, {NOW}]", [_PARIS, _NOW]),
    "the word in text": ("See functools.partial.", [text("See functools.partial.")]),
}
GRANITE = listed("<|tool_call|>", "") | {
    "the marker as text": (f"<tool_call>[{WEATHER}]</tool_call>", [_PARIS]),
    "an object after a tag": (f"<function_call> {WEATHER}", [_PARIS]),
}
LFM2: Generations = {
    "text only": ("[1] a", [text("[1] a")]),
    "one call": ('<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>', [_PARIS]),
    "two calls": ("<|tool_call_start|>[now(), now()]<|tool_call_end|>", [_NOW, _NOW]),
    "text around": ("Ok.\n<|tool_call_start|>[now()]<|tool_call_end|>Done.", [text("Ok.\n"), _NOW, text("Done.")]),
    "JSON": (f"<|tool_call_start|>[{WEATHER}]<|tool_call_end|>", [_PARIS]),
    "cut in a string": ("<|tool_call_start|>[get_weather(city='Par", [cut("get_weather", '{"city": "Par')]),
}
OLMO3: Generations = {
    "text only": ("now() is a call.", [text("now() is a call.")]),
    "one call": ('<function_calls>get_weather(city="Paris", days=2)</function_calls>', [_PARIS]),
    "two calls": (
        "<function_calls>\nnow()\nget_weather(note=null)\n</function_calls>",
        [_NOW, call("get_weather", '{"note": null}')],
    ),
    "text around": ("Ok.\n<function_calls>\nnow()\n</function_calls>\nDone.", [text("Ok.\n"), _NOW, text("Done.")]),
    "a list": ("<function_calls>[now(), now()]</function_calls>", [_NOW, _NOW]),
    "cut in a string": ("<function_calls>\nget_weather(city='Par", [cut("get_weather", '{"city": "Par')]),
}

FAMILIES: dict[str, Generations] = {
    "kimi_k2": KIMI_K2,
    "kimi_k3": KIMI_K3,
    "glm": GLM,
    "minimax_m2": MINIMAX_M2,
    "deepseek_v32": DEEPSEEK_V32,
    "deepseek_v41": DEEPSEEK_V41,
    "gigachat35": GIGACHAT35,
    "seed_oss": SEED_OSS,
    "step3": STEP3,
    "minicpm5": MINICPM5,
    "longcat": LONGCAT,
    "nemotron": listed("<TOOLCALL>", "</TOOLCALL>"),
    "jamba": listed("<tool_calls>", "</tool_calls>", between=",\n    "),
    "granite": GRANITE,
    "phi4_mini": PHI4_MINI,
    "cohere": COHERE,
    "ernie45": ERNIE45,
    "hunyuan": HUNYUAN,
    "internlm": INTERNLM,
    "gigachat3": GIGACHAT3,
    "apertus": APERTUS,
    "functiongemma": _bare("<start_function_call>", "<end_function_call>", "<escape>"),
    "gemma4": _bare("<|tool_call>", "<tool_call|>", '<|"|>'),
    "lfm2": LFM2,
    "olmo3": OLMO3,
    "xlam": XLAM,
}
"""By the format's name."""
