"""Choose OpenTelemetry's own exporter: by tracing's settings, else by the variables that every OTLP exporter reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_EXPORTER_OTLP_PROTOCOL,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
    OTEL_SDK_DISABLED,
)

from wayline.contracts.errors import WrongSetting
from wayline.tracing.adapters.dialects import SAID, Dialect
from wayline.tracing.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

OTEL_TRACES_EXPORTER = "OTEL_TRACES_EXPORTER"
PATH = "/v1/traces"
HTTP, GRPC = "http/protobuf", "grpc"


def is_wanted(settings: Settings) -> bool:
    """Say whether spans are to be forwarded: an endpoint is set, or `OTEL_TRACES_EXPORTER` asks for `otlp`."""
    if settings.otlp_endpoint:
        return True
    exporters = {name.strip().lower() for name in _variable(OTEL_TRACES_EXPORTER).split(",")} - {""}
    if _variable(OTEL_SDK_DISABLED).strip().lower() == "true" or (exporters and "otlp" not in exporters):
        return False
    return bool(exporters or _variable(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) or _variable(OTEL_EXPORTER_OTLP_ENDPOINT))


def dialects_of(settings: Settings) -> tuple[Dialect, ...]:
    """Return the dialects that the settings name. Raises WrongSetting."""
    wanted = [name.strip().lower() for name in settings.dialects.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in SAID]:
        variable = Settings.variable("dialects")
        raise WrongSetting(variable, f"{unknown[0]!r} is not among {', '.join(SAID)}")
    return tuple(name for name in SAID if name in wanted)


def make_exporter(settings: Settings) -> SpanExporter:
    """Make the exporter; what the settings do not say it reads from `OTEL_EXPORTER_OTLP_…`. Raises WrongSetting."""
    try:
        return _grpc(settings) if _protocol(settings) == GRPC else _http(settings)
    except WrongSetting:
        raise
    except Exception as error:
        # What the libraries make of their variables fails in many ways.
        raise WrongSetting("OTEL_EXPORTER_OTLP_…", f"no exporter can be made of these: {error}") from error


def _protocol(settings: Settings) -> str:
    if settings.otlp_endpoint:
        return HTTP
    for variable in (OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, OTEL_EXPORTER_OTLP_PROTOCOL):
        if protocol := _variable(variable).strip().lower():
            if protocol not in (HTTP, GRPC):
                raise WrongSetting(variable, f"{protocol!r} is not supported: set {HTTP} or {GRPC}")
            return protocol
    return HTTP


def _http(settings: Settings) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    endpoint = None
    if settings.otlp_endpoint:
        base = settings.otlp_endpoint.rstrip("/")
        endpoint = base if base.endswith(PATH) else base + PATH
    return OTLPSpanExporter(endpoint, headers=_headers(settings), timeout=settings.otlp_timeout_s)


def _grpc(settings: Settings) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(headers=_headers(settings), timeout=settings.otlp_timeout_s)


def _headers(settings: Settings) -> dict[str, str] | None:
    """Read `name=value,name=value`; values are taken as they stand, unlike those of `OTEL_EXPORTER_OTLP_HEADERS`."""
    pairs = (part.partition("=") for part in settings.otlp_headers.split(",") if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in pairs} or None


def _variable(name: str) -> str:
    return os.environ.get(name, "")
