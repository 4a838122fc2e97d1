"""Chat templates: a sandbox that renders published templates, and the probes that find what one can take."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import jinja2
import pytest

from sidecar.prompts.features import detect_features
from sidecar.prompts.template import ChatTemplate, TemplateFailure
from tests.core.prompts.chat_models import ALTERNATING, CALLS_BY_ID, FIRST_SYSTEM_ONLY, PLAIN, STRICT_CALLS, TOOLS

NOW = datetime(2026, 3, 4, tzinfo=UTC)
USER = {"role": "user", "content": "hi"}


def render(source: str, *turns: dict[str, Any], **options: Any) -> str:
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(turns, now=NOW, **options)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s>hi</s>", id="tokens"),
        pytest.param("{% if add_generation_prompt %}a{% endif %}", "a", id="generation prompt"),
        pytest.param("{{ strftime_now('%d %b %Y') }}", "04 Mar 2026", id="date"),
        pytest.param("{% if true %}\n  {% set a = 1 %}\na{% endif %}", "a", id="blocks leave no white space"),
        pytest.param("{% generation %}a{% endgeneration %}", "a", id="generation tag"),
        pytest.param(
            "{% for m in [1, 2, 3] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}", "1", id="break"
        ),
        pytest.param("{{ {'b': '<é>', 'a': 1} | tojson }}", '{"b": "<é>", "a": 1}', id="JSON unescaped and in order"),
        pytest.param("{{ [1] | tojson(indent=2) }}", "[\n  1\n]", id="JSON indented"),
        pytest.param("{{ tools }}", "None", id="no tools are none"),
        pytest.param("{{ enable_thinking is defined }}", "False", id="no thinking switch"),
    ],
)
def test_has_what_published_templates_use(source: str, text: str) -> None:
    assert render(source, USER) == text


@pytest.mark.parametrize("name", ["enable_thinking", "thinking"])
@pytest.mark.parametrize("value", [True, False])
def test_thinking_is_switched_by_the_name_the_template_knows(name: str, value: bool) -> None:
    source = f"{{{{ {name} }}}}"
    assert ChatTemplate(source).has_thinking_switch
    assert render(source, enable_thinking=value) == str(value)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("{{ raise_exception('no') }}", id="raises"),
        pytest.param("{{ messages[0].content + 1 }}", id="type error"),
        pytest.param("{{ messages.append(1) }}", id="changes its input"),
        pytest.param(
            "{{ ''.__class__.__mro__ }}{{ messages.__class__.__base__.__subclasses__() }}", id="leaves the sandbox"
        ),
        pytest.param("{% for i in range(10 ** 9) %}{% endfor %}", id="endless loop"),
        pytest.param("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", id="endless recursion"),
    ],
)
def test_whatever_goes_wrong_inside_is_one_failure(source: str) -> None:
    with pytest.raises(TemplateFailure):
        render(source, USER)


def test_a_template_that_is_none_is_refused_when_compiled() -> None:
    with pytest.raises(jinja2.TemplateSyntaxError):
        ChatTemplate("{% if %}")


@pytest.mark.parametrize("text", ["{{ 1 + 1 }}", "{% raise %}", "{# note #}", "{{ raise_exception('x') }}"])
def test_data_is_never_read_as_a_template(text: str) -> None:
    assert text in render(PLAIN, {"role": "user", "content": text})


NO_TOOLS = {
    *("tools", "argument_objects", "argument_text", "any_call_id", "call_names"),
    *("reasoning", "images", "thinking_switch", "grades"),
}
EVERYTHING = set(asdict(detect_features(ChatTemplate(TOOLS))))


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        pytest.param(TOOLS, {"argument_text"}, id="tools"),
        pytest.param(CALLS_BY_ID, {"argument_text", "call_names"}, id="calls by id"),
        pytest.param(STRICT_CALLS, {"argument_text", "parallel_calls", "any_call_id", "user_after_tool"}, id="strict"),
        pytest.param(
            PLAIN,
            NO_TOOLS,
            id="plain",
        ),
        pytest.param(
            FIRST_SYSTEM_ONLY,
            {"late_system", "system_alone"} | NO_TOOLS,
            id="system first",
        ),
        pytest.param(ALTERNATING, EVERYTHING, id="alternating"),
        pytest.param(
            TOOLS.replace("part.text }}", "part.text }}{{ message.content | tojson }}"),
            {"argument_text", "images"},
            id="parts written out as JSON",
        ),
        pytest.param(
            TOOLS.replace("call.function.arguments | tojson", "'' + call.function.arguments"),
            {"argument_objects"},
            id="arguments as text",
        ),
    ],
)
def test_probes_find_what_a_template_takes(source: str, missing: set[str]) -> None:
    found = asdict(detect_features(ChatTemplate(source)))
    assert {name for name, takes in found.items() if not takes} == missing


def test_a_template_that_renders_no_user_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="user turn"):
        detect_features(ChatTemplate("{{ functions.missing }}"))
