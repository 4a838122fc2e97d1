"""An example of each command, shown below its help."""

from __future__ import annotations

import typer

EXAMPLES = {
    "init": "responses-sidecar init --triton 127.0.0.1:8001 --tokenizers /models --config sidecar.yaml",
    "check": "responses-sidecar check --config sidecar.yaml --envoy-config envoy.yaml",
    "serve": "responses-sidecar serve --config sidecar.yaml",
    "health": "responses-sidecar health --config sidecar.yaml",
    "verify": "responses-sidecar verify http://127.0.0.1:8080/v1/infer --model smollm2-135m",
    "usage": "responses-sidecar usage --config sidecar.yaml --by organization --by model --from 2026-11-01",
    "reconcile": "responses-sidecar reconcile --config sidecar.yaml",
    "config schema": "responses-sidecar config schema > schema.json",
    "config show": "responses-sidecar config show --config sidecar.yaml",
    "envoy render": "responses-sidecar envoy render --config sidecar.yaml --form local > envoy.yaml",
    "orgs create": "responses-sidecar orgs create acme --config sidecar.yaml",
    "orgs list": "responses-sidecar orgs list --config sidecar.yaml",
    "orgs disable": "responses-sidecar orgs disable acme --config sidecar.yaml",
    "orgs enable": "responses-sidecar orgs enable acme --config sidecar.yaml",
    "orgs set-limits": "responses-sidecar orgs set-limits acme --tokens-per-minute 200000 --config sidecar.yaml",
    "orgs credit": 'responses-sidecar orgs credit acme 25 --reason "invoice 7" --id invoice-7 --config sidecar.yaml',
    "keys create": "responses-sidecar keys create acme --name ci --expires 90d --config sidecar.yaml",
    "keys list": "responses-sidecar keys list --org acme --config sidecar.yaml",
    "keys revoke": "responses-sidecar keys revoke key_… --config sidecar.yaml",
    "keys rotate": "responses-sidecar keys rotate key_… --grace 24h --config sidecar.yaml",
    "sessions create": "responses-sidecar sessions create acme --user alice --expires 12h --config sidecar.yaml",
    "sessions list": "responses-sidecar sessions list --config sidecar.yaml",
    "sessions end": "responses-sidecar sessions end ses_… --config sidecar.yaml",
    "requests list": "responses-sidecar requests list --organization acme --limit 50 --config sidecar.yaml",
    "requests show": "responses-sidecar requests show 0b4c9a6e-… --config sidecar.yaml",
    "directives set": "responses-sidecar directives set acme --max-output-tokens 2000 --config sidecar.yaml",
    "directives show": "responses-sidecar directives show acme --project support --config sidecar.yaml",
    "directives clear": "responses-sidecar directives clear acme --project support --config sidecar.yaml",
    "store migrate": "responses-sidecar store migrate --config sidecar.yaml",
    "store backup": "responses-sidecar store backup ledger-2026-11-30.db --config sidecar.yaml",
    "store restore": "responses-sidecar store restore ledger-2026-11-30.db --config sidecar.yaml",
    "stored rotate": "responses-sidecar stored rotate --config sidecar.yaml",
    "stored shred": "responses-sidecar stored shred acme --config sidecar.yaml",
    "stored zero-retention": "responses-sidecar stored zero-retention acme on --config sidecar.yaml",
}
"""By the words of a command."""


def show_examples(app: typer.Typer, words: str = "") -> None:
    """Put the examples into the help of the commands of ``app``, whose own words are ``words``."""
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        if (example := EXAMPLES.get(f"{words} {name}".strip())) is not None:
            command.epilog = f"Example: {example}"
    for group in app.registered_groups:
        assert group.typer_instance is not None
        show_examples(group.typer_instance, f"{words} {group.name}".strip())
