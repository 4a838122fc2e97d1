"""Two turns through llm, the second in the conversation of the first; prints the answers by way of asking.

Arguments: base URL, key, model, the two questions.
"""

import json
import os
import sys
import tempfile
from pathlib import Path


def main(base_url: str, api_key: str, model: str, first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as user_path:
        os.environ["LLM_USER_PATH"] = user_path
        # llm reads it as YAML, of which JSON is a part.
        settings = {
            "model_id": "node",
            "model_name": model,
            "api_base": base_url,
            "api_key_name": "node",
            "responses": True,
        }
        (Path(user_path) / "extra-openai-models.yaml").write_text(json.dumps([settings]))
        import llm  # only now, since it looks for its files when it is imported

        answers = {}
        for way, stream in (("whole", False), ("streamed", True)):
            conversation = llm.get_model("node").conversation()
            answers[way] = [
                conversation.prompt(question, system="Be brief.", stream=stream, key=api_key).text()
                for question in (first, second)
            ]
    print(json.dumps(answers))


main(*sys.argv[1:])
