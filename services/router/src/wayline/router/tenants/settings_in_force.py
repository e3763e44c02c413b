"""What a tenant's settings mean for its agents: resolved once for each job, when it is admitted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tenant_settings import (
    INHERITED,
    SETTINGS,
    SettingsChange,
    SettingsInForce,
    TenantSettings,
)
from wayline.routing.job_overrides import without_switched

DEFAULTS: Mapping[str, Any] = {name: getattr(TenantSettings(), name) for name in INHERITED if name != "max_cost_usd"}
"""What nobody has changed. What a job may spend by default is the router's own setting."""


_OF_ASSEMBLED = frozenset({"max_steps", "adapt_steps", "max_output_tokens", "style", "tools"})


def read_settings(stored: Mapping[str, Any] | None) -> SettingsChange:
    """Return what a tenant has changed; a setting that only a newer version knows is passed over."""
    return SettingsChange.model_validate(stored or {}, extra="ignore")


def changed_fields(own: SettingsChange) -> dict[str, Any]:
    """Return the settings that a tenant has changed, by name."""
    return {name: value for name in own.model_fields_set if (value := getattr(own, name)) is not None}


def in_force(own: SettingsChange, *, job_budget_usd: Decimal, updated_at: datetime | None) -> SettingsInForce:
    """Return all settings as they are now; `job_budget_usd` is what a job may spend by default."""
    changed = changed_fields(own)
    return SettingsInForce(
        **{"max_cost_usd": job_budget_usd or TenantSettings().max_cost_usd, **changed},
        defaults=tuple(name for name in SETTINGS if name not in changed),
        updated_at=updated_at,
    )


def inherited_by(config: AgentConfig) -> tuple[str, ...]:
    """Return the fields of a configuration that is being saved which it leaves to the settings: those it leaves out."""
    return tuple(name for name in INHERITED if name not in config.model_fields_set or _says_nothing(config, name))


def inherited_by_default(config: AgentConfig) -> tuple[str, ...]:
    """Return the same for an agent of an older version, which kept no record: the fields that have their default."""
    plain = AgentConfig()
    return tuple(name for name in INHERITED if getattr(config, name) == getattr(plain, name))


def inherited_when_bundled(config: AgentConfig) -> tuple[str, ...]:
    """Return the fields that an agent which is delivered with Wayline leaves to the settings.

    One with an assembler keeps its own tools, steps and words: the assembler needs what they bring.
    """
    own = _OF_ASSEMBLED if config.assemble is not None else frozenset[str]()
    return tuple(name for name in INHERITED if name not in own)


def _says_nothing(config: AgentConfig, name: str) -> bool:
    return name == "max_cost_usd" and config.max_cost_usd is None


def resolved(config: AgentConfig, inherits: Iterable[str], own: SettingsChange) -> AgentConfig:
    """Return an agent's configuration with its tenant's settings, as its next job records it."""
    settings = {**DEFAULTS, **changed_fields(own)}
    return without_switched(config.model_copy(update={name: settings[name] for name in inherits if name in settings}))
