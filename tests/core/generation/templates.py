"""How chat templates show their format of calls: the parts of them that write a call, or ask the model for one."""

from __future__ import annotations

TEMPLATES: dict[str, str] = {
    "hermes": """{{ '<tool_call>\\n{"name": "' }}{{ call.name }}{{ '", "arguments": ' }}{{ call.arguments }}""",
    "qwen_xml": "{{ '<tool_call>\\n<function=' + call.name + '>\\n' }}{{ '<parameter=' + name + '>\\n' }}",
    "llama_json": """{{ '{"name": function name, "parameters": dictionary of argument name and its value}.' }}""",
    "pythonic": "{{ '<|python_start|>[' }}{{ call.name }}(",
    "mistral": "{{ '[TOOL_CALLS]' }}{{ call.name }}{{ '[ARGS]' }}",
    "deepseek": "{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + call.name }}",
    "harmony": "{{ '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>",
    "kimi_k3": "{{- '<|open|>' + tag -}}{{- '<|sep|>' -}}{{- '<|close|>' + tag + '<|sep|>' -}}",
    "gemma4": "{{- '<|tool_call>call:' + function['name'] + '{' -}}",
    "functiongemma": "{{ '<start_function_call>call:' + call.name + '{' }}",
    "deepseek_v32": """{% set dsml = '｜DSML｜' %}<{{ dsml }}invoke name="{{ call.name }}">""",
    "deepseek_v41": """<｜DSML｜ calls>\n<｜DSML｜ invoke name="{{ call.name }}">""",
    "gigachat35": """<｜GCML｜tool_calls>\n<｜GCML｜invoke name="{{ call.name }}">""",
    "step3": """{{ '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="' + call.name + '">' }}""",
    "minimax_m2": """{% set begin = '<minimax:tool_call>' %}{{ '<invoke name="' + call.name + '">\\n' }}<response>""",
    "seed_oss": "{% set begin = '<seed:tool_call>' %}{{ begin + '\\n<function=' + call.name + '>\\n<parameter=' }}",
    "longcat": """<longcat_tool_call>\n{"name": <function-name>, "arguments": <args-dict>}\n</longcat_tool_call>""",
    "glm": "{{ '\\n<tool_call>' + call.name }}<arg_key>{{ key }}</arg_key>\n<arg_value>{{ value }}</arg_value>",
    "minicpm5": """{{ '<function name="' ~ call.name ~ '">' }}{{ '<param name="' ~ key ~ '">' }}""",
    "ernie45": """<response>\n{{ text }}</response>\n<tool_call>\n{"name": "{{ name }}", "arguments": """,
    "cohere": """<|START_ACTION|>[\n{"tool_call_id": "0", "tool_name": "{{ name }}", "parameters": """,
    "phi4_mini": """as functools[{"name": [function name], "arguments": [function arguments as JSON]}, ...]""",
    "granite": "write <|tool_call|> followed by a JSON list of tools used",
    "nemotron": """{{- '<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, ' -}}""",
    "hunyuan": """<tool_calls>[{"name": "{{ name }}", "arguments": {{ arguments }}}]</tool_calls><answer>""",
    "jamba": """<tool_calls>[\n    {"name": "{{ name }}", "arguments": {{ arguments }}}""",
    "internlm": """{{- "<|action_start|><|plugin|>\\n" }}{{- '{"name": "' + function.name + '", ' }}""",
    "apertus": """{% set tools = '<|tools_prefix|>' %}{{ tools + '[' }}{{- '{"' + call.name + '": ' }}""",
    "gigachat3": """{% set sep = '<|role_sep|>\\n' %}{{ 'function call' + sep }}{"name": "{{ name }}", "arguments": """,
    "lfm2": "{{ 'List of tools: <|tool_list_start|>[' }}",
    "olmo3": "{{ '<function_calls>' }}{{ call.name + '(' }}",
    "xlam": "When using tools, make calls in a single JSON array: \n\n[{",
}
"""By the format's name."""

REASONING_TEMPLATES: dict[str, str | None] = {
    "{% if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}": "think",
    "{{ '<｜Assistant｜>' + (message.content.split('</think>') | last) }}": "deepseek_r1",
    "{{ '<｜Assistant｜>' }}{{ '<think>' if thinking else '</think>' }}": "think",
    "{{ '[THINK]' + block.thinking + '[/THINK]' }}": "mistral",
    "{{ '<|start|>assistant<|channel|>analysis<|message|>' }}": None,
    "<|START_THINKING|>{{ message.reasoning_content }}<|END_THINKING|>": "cohere",
    "{% set end = '</seed:think>' %}{{ '<seed:think>' + message.reasoning_content + end }}": "seed_oss",
    "{{- '<|channel>thought\\n<channel|>' -}}": "gemma4",
    "{{- '<|open|>' + tag -}}{{ '<|sep|>' }}{{ '<|close|>' + tag }}{{ open_tag('think') }}": "kimi_k3",
    "{{ '◁think▷' }}": "kimi_vl",
    "{{ '<longcat_think>\\n' if enable_thinking }}": "longcat",
    "{% set inner = '<|inner_prefix|>' %}{% set outer = '<|inner_suffix|>' %}": "apertus",
    "{{ '<mm:think>' }}": "minimax_m3",
    "{{ 'Write your thoughts after \\'Here is my thought process:\\'' }}": "granite",
    "{{ message.content }}": None,
}
"""The name of the markers by what shows them."""
