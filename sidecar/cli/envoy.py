"""``responses-sidecar envoy``: Envoy's configuration, made from the sidecar's."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

import typer

from sidecar.cli.options import ConfigFile
from sidecar.config.load import ConfigError

app = typer.Typer(no_args_is_help=True, help="Envoy's configuration, made from the sidecar's.")

# RFC 1123, as Kubernetes wants its names; a host may begin with a wildcard.
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST = rf"(\*\.)?({_LABEL}\.)*{_LABEL}"

Form = Literal["local", "standalone", "existing", "istio", "envoy-gateway", "egress"]


@app.command()
def render(
    config: ConfigFile,
    form: Annotated[Form, typer.Option(help="Where Envoy is: docs/envoy.md explains each form.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients connect.")] = "127.0.0.1:8080",
    triton: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="A Triton's gRPC, once for each; by default triton.address."),
    ] = None,
    wire: Annotated[
        Literal["tunnel", "direct", "origin"], typer.Option(help="docs/architecture.md compares them.")
    ] = "tunnel",
    # These are Envoy's: whoever runs this may have no access to them.
    tls_certificate: Annotated[
        Path | None, typer.Option(readable=False, help="The certificate and its chain, in PEM (standalone).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(readable=False, help="The certificate's key, in PEM.")] = None,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Listen without TLS where others can connect too.")
    ] = False,
    access_log: Annotated[Path, typer.Option(readable=False, help="Where Envoy writes its access log.")] = Path(
        "/dev/stdout"
    ),
    namespace: Annotated[str, typer.Option(help="Of the pods or the Gateway (istio, envoy-gateway).")] = "default",
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A label of the pods, app=responses by default (istio)."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The name that clients connect to (envoy-gateway).")] = None,
    gateway: Annotated[str, typer.Option(help="The Gateway (envoy-gateway).")] = "eg",
    gateway_listener: Annotated[str, typer.Option(help="Its listener (envoy-gateway).")] = "http",
    envoy_listener: Annotated[
        str | None, typer.Option(help="What Envoy calls that, such as tcp-80 (envoy-gateway).")
    ] = None,
    envoy_routes: Annotated[
        str | None, typer.Option(help="What Envoy calls its routes, such as http-80 (envoy-gateway).")
    ] = None,
) -> None:
    """Print Envoy's configuration, whose limits fit the sidecar's.

    Exit status 2: the configuration, or an option, cannot be used.
    """
    from dataclasses import replace

    from sidecar.config.load import load
    from sidecar.envoy.derive import settings_of
    from sidecar.envoy.gateway import Gateway, render_gateway
    from sidecar.envoy.istio import Workload, render_istio
    from sidecar.envoy.render import render, render_egress, render_existing

    try:
        loaded = load(config)
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    address, port = _listen_at(listen)
    if form in ("local", "standalone"):
        _check_tls(form, address, tls_certificate, tls_key, allow_http)
    if wire == "origin" and loaded.triton.upstream is None:
        raise typer.BadParameter("origin calls triton.upstream, which is not configured", param_hint="--wire")
    if wire != "tunnel" and loaded.upstreams:
        raise typer.BadParameter("only the tunnel calls upstreams, and there are some", param_hint="--wire")
    settings = replace(
        settings_of(loaded, port, access_log, wire, [_place(one) for one in triton or ()]),
        address=address,
        certificate=tls_certificate and tls_certificate.resolve(),
        certificate_key=tls_key and tls_key.resolve(),
    )
    if not re.fullmatch(_LABEL, namespace):
        raise typer.BadParameter(f"{namespace} is no name of a namespace", param_hint="--namespace")
    if form == "existing":
        text = render_existing(settings)
    elif form == "istio":
        text = render_istio(settings, Workload(namespace, tuple(map(_label, label or ["app=responses"]))))
    elif form == "envoy-gateway":
        if host is None:
            raise typer.BadParameter("the form envoy-gateway needs it", param_hint="--host")
        if not re.fullmatch(_HOST, host):
            raise typer.BadParameter(f"{host} is no name of a host", param_hint="--host")
        names = Gateway(host, namespace, gateway, gateway_listener, envoy_listener, envoy_routes)
        text = render_gateway(settings, names)
    else:
        text = render_egress(settings) if form == "egress" else render(settings)
    typer.echo(text, nl=False)


def _check_tls(form: str, address: str, certificate: Path | None, key: Path | None, allow_http: bool) -> None:
    """Keys go over the network encrypted, unless whoever starts Envoy wants it otherwise."""
    if (certificate is None) != (key is None):
        raise typer.BadParameter("a certificate and a key go together", param_hint="--tls-certificate, --tls-key")
    if form == "local" and certificate is not None:
        raise typer.BadParameter("the form local has no TLS; standalone has", param_hint="--tls-certificate")
    if certificate is None and not allow_http and not ip_address(address).is_loopback:
        words = f"{address} is an address that others can connect to: --tls-certificate and --tls-key, or --allow-http"
        raise typer.BadParameter(words, param_hint="--listen")


def _listen_at(text: str) -> tuple[str, int]:
    host, port = _place(text)
    try:
        return str(ip_address(host)), port
    except ValueError:
        raise typer.BadParameter(f"{host} is no IP address", param_hint="--listen") from None


def _place(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise typer.BadParameter(f"{text} is not of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise typer.BadParameter(f"{text} is not of the form key=value", param_hint="--label")
    return key, value
