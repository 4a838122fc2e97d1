"""The sidecar's configuration as the local stack writes it."""

from __future__ import annotations

from pathlib import Path

from sidecar.config.load import load
from stack.local import SCRIPTED, SMOLLM2
from stack.sidecar import EXAMPLE_PRICE, configure, with_example_price


def test_the_models_of_dev_up_have_prices(tmp_path: Path) -> None:
    models = [with_example_price(model) for model in (SMOLLM2, SCRIPTED)]
    path = configure(models, {"address": "127.0.0.1:1"}, 1, Path("/tmp"), tmp_path, {})
    config = load(path)
    prices = [
        price.model_dump(mode="json", by_alias=True, exclude_none=True)
        for model in config.models
        for price in model.prices
    ]
    assert prices == [EXAMPLE_PRICE, EXAMPLE_PRICE]
    assert config.models[0].first_token_timeout == SMOLLM2.settings["first_token_timeout"]
    assert "&" not in path.read_text(), "an operator who copies from the file should meet no anchors"
