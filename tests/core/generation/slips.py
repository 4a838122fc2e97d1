"""What models write that is not quite right, in each format, and what it means."""

from __future__ import annotations

import json
from typing import Any

from tests.core.generation.generations import Generations
from tests.core.generation.segments_kit import call, reasoning, text

SHELL = '{"cmd": "ls"}'


def shell(cmd: Any) -> Any:
    return call("shell", json.dumps({"cmd": cmd}))


def hermes(arguments: str) -> str:
    return f'<tool_call>{{"name": "shell", "arguments": {arguments}}}</tool_call>'


_CITY = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis"
_PARIS = call("get_weather", '{"city": "Paris"}')
_EXAMPLE = 'You would write <tool_call>{"name": "shell", "arguments": {...}}</tool_call> then.'
_SEP, _BEGIN, _END = "<｜tool▁sep｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
_TO = "<|channel|>commentary to="

SLIPS: dict[str, Generations] = {
    "qwen_xml": {
        "a value on one line": (
            "<function=get_weather><parameter=city>Paris</function></tool_call>ok",
            [_PARIS, text("ok")],
        ),
        "no end of the function": (f"{_CITY}\n</parameter>\n</tool_call>ok", [_PARIS, text("ok")]),
        "no end of the parameter": (f"{_CITY}\n</tool_call>ok", [_PARIS, text("ok")]),
        "no end at all": (f"{_CITY}\n</parameter>", [_PARIS]),
        "no end in a value": (_CITY, [_PARIS]),
        "the next call": (f"{_CITY}\n</parameter>\n<function=now>", [_PARIS, call("now", "{}")]),
        "the next call in a value": (f"{_CITY}\n<tool_call>\n<function=now>", [_PARIS, call("now", "{}")]),
        "too many ends": (
            f"{_CITY}\n</parameter>\n</parameter></function></function>\n</tool_call>\n</tool_call>ok",
            [_PARIS, text("ok")],
        ),
        "a tag in the first value, which is no string": (
            '<tool_call>\n<function=get_weather>\n<parameter=at>{"x": "</parameter> b"}</parameter></function>ok',
            [call("get_weather", '{"at": {"x": "</parameter> b"}}'), text("ok")],
        ),
        "prose": (
            "Write `<function=shell>` to call it, or <tool_call><function=shell><parameter=.",
            [text("Write `<function=shell>` to call it, or <tool_call><function=shell><parameter=.")],
        ),
        "Python's literals": (
            "<function=get_weather><parameter=at>\n{'a': True, 'b': None}\n</parameter><parameter=days>"
            "\"42\"</parameter><parameter=tags>['x','y']</parameter></function>",
            [call("get_weather", '{"at": {"a": true, "b": null}, "days": 42, "tags": ["x","y"]}')],
        ),
    },
    "hermes": {
        "an example in prose": (_EXAMPLE, [text(_EXAMPLE)]),
        "backslashes in a path": (hermes(r'{"cmd":"C:\Users\me"}'), [call("shell", r'{"cmd":"C:\\Users\\me"}')]),
        "escapes that JSON lacks": (
            hermes(r'{"cmd": "grep -E \d+ \'f\' \x41 \u12"}'),
            [call("shell", r'{"cmd": "grep -E \\d+ \\' "'f" r"\\' \\x41 \\u12" '"}')],
        ),
        "a comma too many": (hermes('{"a":1,}'), [call("shell", '{"a":1}')]),
        "constants of Python": (
            hermes('{"ok":True,"city":None,"no":False}'),
            [call("shell", '{"ok":true,"city":null,"no":false}')],
        ),
        "numbers that JSON lacks": (
            hermes('{"a":NaN,"b":-Infinity,"c":.5,"d":1_000,"e":+1,"f":2.}'),
            [call("shell", '{"a":null,"b":null,"c":0.5,"d":1000,"e":1,"f":2.0}')],
        ),
        "single quotes and tuples": (
            hermes("""{'cmd': 'say "it\\'s"', 'b': ('a', 1,)}"""),
            [call("shell", """{"cmd": "say \\"it's\\"", "b": ["a", 1]}""")],
        ),
        "a brace too many": (f"{hermes(SHELL)[:-12]}}}}}}}</tool_call>ok", [shell("ls"), text("ok")]),
        "no braces": (f"{hermes(SHELL)[:-14]}</tool_call>ok", [shell("ls"), text("ok")]),
        "a bracket left out": (hermes('{"a": [1, {"b": [2}}'), [call("shell", '{"a": [1, {"b": [2]}]}')]),
        "no end in a string": (hermes(SHELL)[:-15], [shell("ls")]),
        "a fence": (
            f'<tool_call>\n```json\n{{"name": "shell", "arguments": {SHELL}}}\n```\n</tool_call>ok',
            [shell("ls"), text("ok")],
        ),
        "several objects": (
            f'<tool_call>{{"name": "shell", "arguments": {SHELL}}}\n{{"name": "now"}}</tool_call>',
            [shell("ls"), call("now", "{}")],
        ),
        "a list": (
            f'<tool_call>[{{"name": "shell", "arguments": {SHELL}}}, {{"name": "now"}}]</tool_call>',
            [shell("ls"), call("now", "{}")],
        ),
        "too many ends": (f"{hermes(SHELL)}</tool_call>\n</tool_call>ok", [shell("ls"), text("ok")]),
        "text before the end": (f"{hermes(SHELL)[:-12]} so</tool_call>", [shell("ls"), text("so")]),
        "a broken member": (
            hermes('{"cmd": "ls", "b": oops}'),
            [shell("ls"), text("oops}}")],
        ),
        "no name": ("<tool_call>shell</tool_call>", [text("<tool_call>shell</tool_call>")]),
    },
    "llama_json": {
        "a fence": ('```json\n{"name": "now", "parameters": {}}\n```', [call("now", "{}")]),
        "a list": ('[{"name": "now", "parameters": {}}]', [call("now", "{}")]),
        "a brace too many": ('{"name": "shell", "parameters": {"cmd": "ls"}}}', [shell("ls")]),
        "a comma too many": ('{"name": "shell", "parameters": {"cmd": "ls",},}', [shell("ls")]),
    },
    "pythonic": {
        "commas too many": ("[shell(cmd=['a','b',],)]", [call("shell", '{"cmd": ["a","b"]}')]),
        "numbers and tuples": (
            "[shell(a=(1,2), b=.5, c=1_000)]",
            [call("shell", '{"a": [1,2], "b": 0.5, "c": 1000}')],
        ),
        "no end": ("[shell(cmd='ls'", [shell("ls")]),
        "no end in a string": ("[shell(cmd='ls", [shell("ls")]),
        "a bracket left out": ("[shell(cmd=['ls')]", [call("shell", '{"cmd": ["ls"]}')]),
        "a fence": ("```python\n[shell(cmd='ls')]\n```", [shell("ls")]),
        "a marker too many": ("Hi<|python_end|><|python_start|> there", [text("Hi there")]),
    },
    "mistral": {
        "no arguments": ("[TOOL_CALLS]now[ARGS]", [call("now", "{}")]),
        "no arguments, then another call": (
            f"[TOOL_CALLS]now[ARGS][TOOL_CALLS]shell[ARGS]{SHELL}",
            [call("now", "{}"), shell("ls")],
        ),
        "one object": (f'[TOOL_CALLS]{{"name": "shell", "arguments": {SHELL}}}ok', [shell("ls"), text("ok")]),
        "spaces": ("[TOOL_CALLS] now [ARGS] {}", [call("now", "{}")]),
        "a string that does not end": (
            '[TOOL_CALLS]shell[ARGS]{"cmd": "ls[TOOL_CALLS]now[ARGS]{}',
            [shell("ls"), call("now", "{}")],
        ),
        "markers in text": ("Hi[ARGS] there", [text("Hi there")]),
        "a marker where a list might begin": (
            '[TOOL_CALLS]shell[ARGS]{"a": "b", "cmd": [ARGS] so',
            [call("shell", '{"a": "b"}'), text("so")],
        ),
    },
    "deepseek": {
        "a fence without a type": (f"{_BEGIN}shell{_SEP}\n```json\n{SHELL}\n```{_END}ok", [shell("ls"), text("ok")]),
        "a fence of no language": (f"{_BEGIN}function{_SEP}shell\n```\n{SHELL}\n```{_END}", [shell("ls")]),
        "no arguments": (f"{_BEGIN}now{_SEP}{_END}", [call("now", "{}")]),
        "prose for a function without parameters": (f"{_BEGIN}now{_SEP}none{_END}ok", [call("now", "{}"), text("ok")]),
        "a string that does not end": (f'{_BEGIN}shell{_SEP}{{"cmd": "ls{_END}ok', [shell("ls"), text("ok")]),
        "markers in text": (f"Hi{_SEP}{_END} there", [text("Hi there")]),
    },
    "harmony": {
        "a recipient without functions": (f"{_TO}shell <|constrain|>json<|message|>{SHELL}<|call|>", [shell("ls")]),
        "a recipient with a slash": (f"{_TO}functions/shell<|message|>{SHELL}<|call|>", [shell("ls")]),
        "a recipient of something else": (f"{_TO}tools.shell<|message|>{SHELL}<|call|>", [shell("ls")]),
        "a recipient at once": (f" to=functions.shell<|channel|>commentary<|message|>{SHELL}", [shell("ls")]),
        "no message": (f"{_TO}functions.shell json {SHELL}<|call|>", [shell("ls")]),
        "two starts": ("<|start|><|start|>assistant<|channel|>final<|message|>A", [text("A")]),
        "no channel": ("<|channel|>??<|end|><|start|>assistant<|channel|>final<|message|>A", [text("??\n\nA")]),
        "two channels": ("<|channel|>commentary?<|channel|>analysis<|message|>A<|end|>", [reasoning("A")]),
        "a channel without a message": ("<|channel|>analysis Hm.\nSo.<|end|>", [reasoning("Hm.\nSo.")]),
        "too many ends": ("<|channel|>final<|message|>Answer<|end|><|end|>", [text("Answer")]),
        "a marker in the text": ("<|channel|>final<|message|>An<|message|>swer<|constrain|>", [text("Answer")]),
        "a string that does not end": (f'{_TO}shell<|message|>{{"cmd": "ls<|call|>', [shell("ls")]),
        "half of a marker before one": ("<|channel|>final<|message|><|ch<|message|>annel|>", [text("<|ch annel|>")]),
    },
    "forced": {
        "a comma too many": (f'[{{"name": "shell", "arguments": {SHELL},}},]', [shell("ls")]),
    },
}
