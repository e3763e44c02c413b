"""The executor put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from wayline.chassis import Bus, BusSettings, Service, asks
from wayline.chassis.concurrency.tenant_turns import TenantTurns
from wayline.chassis.controls import Controls
from wayline.chassis.draining import process_name
from wayline.chassis.topology import RUN_BATCH, RUN_INTERACTIVE
from wayline.contracts.models import ListProviders, Provider, ProviderList
from wayline.executor.adapters.attachments import Attachments
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.memories import Memories
from wayline.executor.adapters.model_providers import ModelProviders
from wayline.executor.adapters.permits import Permits
from wayline.executor.adapters.provider_gates import ProviderGates
from wayline.executor.adapters.sdk_warmup import SdkWarmup
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.adapters.snapshots import Snapshots, snapshot_keys
from wayline.executor.adapters.tool_registry import ToolRegistry
from wayline.executor.adapters.user_words import UserWordsReader
from wayline.executor.decide.children import Limits
from wayline.executor.perform.follow_up import FollowUp
from wayline.executor.perform.job_run import RunServices
from wayline.executor.prompt.notes import Notes, silent
from wayline.executor.run_tickets import Lane
from wayline.executor.settings import Settings
from wayline.llm import Model
from wayline.llm.endpoints import Endpoint
from wayline.llm.offline import PROVIDER, OfflineModel
from wayline.sandbox import Limits as ProgramLimits
from wayline.sandbox import Sandbox
from wayline.telemetry import BusExporter, Telemetry

NAME = "executor"


async def build(
    settings: Settings | None = None, *, bus_settings: BusSettings | None = None, notes: Notes = silent
) -> Service:
    """Connect, and bind one lane to each run consumer that has slots; `notes` is what else jobs are told."""
    settings, shared = settings or Settings(), bus_settings or BusSettings()
    signing = snapshot_keys(settings.snapshot_keys)
    bus = await Bus.connect(shared, service=NAME, key_ids=signing.ids)
    exporter = BusExporter(NAME)
    telemetry = Telemetry(NAME, exporter)
    models, controls = providers(settings), Controls(bus)
    services = run_services(
        settings, bus, models=models, snapshots=Snapshots(bus, signing), controls=controls, notes=notes
    )

    async def on_list_providers(_: ListProviders) -> ProviderList:
        found = configured(settings, executor=process_name())
        return found.model_copy(update={"left_alone": services.gates.left_alone()})

    async def close() -> None:
        await services.sandbox.close()
        await services.models.close()

    slots = {RUN_INTERACTIVE: settings.interactive_slots, RUN_BATCH: settings.batch_slots}
    return Service(
        name=NAME,
        settings=shared,
        bus=bus,
        telemetry=telemetry,
        exporter=exporter,
        asks=[asks(ListProviders, on_list_providers, everyone=True)],
        parts=[
            # Before any lane: what is paused is known when the first job is taken.
            controls,
            *(Lane(bus, telemetry, services, lane, slots=n) for lane, n in slots.items() if n),
            services.gates,
            SdkWarmup(models.values()),
        ],
        close=close,
    )


def run_services(
    settings: Settings, bus: Bus, *, models: Mapping[str, Model], snapshots: Snapshots, controls: Controls, notes: Notes
) -> RunServices:
    """Make what all jobs of a process share."""
    keys = [endpoint.api_key for endpoint in settings.endpoints().values() if endpoint.api_key]
    budgets, children, permits = Budgets(bus), Children(bus), Permits(bus, controls)
    histories = SessionHistories(bus, kept_max_bytes=settings.histories_kept_max_bytes)
    return RunServices(
        models=ModelProviders(bus, models, secrets=keys),
        tools=ToolRegistry(
            bus, fresh_s=settings.tools_fresh_s, wait_s=settings.tool_wait_s, absent_wait_s=settings.absent_tools_wait_s
        ),
        follow_up=FollowUp(bus, budgets, histories, children, permits),
        histories=histories,
        gates=ProviderGates(bus),
        budgets=budgets,
        permits=permits,
        attachments=Attachments(
            bus, cached_max_bytes=settings.files_cached_max_bytes, sent_max_bytes=settings.files_sent_max_bytes
        ),
        sandbox=sandbox_of(settings),
        snapshots=snapshots,
        children=children,
        memories=Memories(bus),
        user_words=UserWordsReader(bus),
        child_limits=Limits(
            depth_max=settings.child_depth_max,
            per_step_max=settings.children_per_step_max,
            per_job_max=settings.children_per_job_max,
        ),
        decision_ttl_s=settings.decision_ttl_s,
        notes=notes,
        result_tokens_max=settings.result_tokens_max,
    )


def sandbox_of(settings: Settings) -> Sandbox:
    """Return workers for programs, shared out between tenants."""
    turns = TenantTurns(settings.programs_at_once, per_tenant_max=settings.programs_per_tenant_max)
    return Sandbox(
        limits=ProgramLimits(execution_s_max=settings.program_seconds_max),
        workers_max=settings.programs_at_once,
        take_turn=turns.turn,
    )


def configured(settings: Settings, *, executor: str) -> ProviderList:
    """Return what this process can call, for the list of models: a host at most of each address, and no key."""
    found = [
        Provider(name=name, host=urlsplit(endpoint.base_url).hostname or "", keyed=endpoint.api_key is not None)
        for name, endpoint in settings.endpoints().items()
    ]
    return ProviderList(executor=executor, providers=(*found, Provider(name=PROVIDER)))


def providers(settings: Settings) -> dict[str, Model]:
    """Return the models this process can call, by provider."""
    found: dict[str, Model] = {PROVIDER: OfflineModel()}
    for name, endpoint in settings.endpoints().items():
        found[name] = ADAPTERS[name](endpoint)
    return found


def _anthropic(at: Endpoint) -> Model:
    from wayline.llm.anthropic import Anthropic

    return Anthropic(at.base_url, api_key=at.api_key)


def _openai(at: Endpoint) -> Model:
    from wayline.llm.openai import OpenAI

    return OpenAI(at.base_url, api_key=at.api_key)


def _chat(at: Endpoint) -> Model:
    from wayline.llm.openai_chat import ChatCompletions

    return ChatCompletions(at.base_url, api_key=at.api_key)


ADAPTERS: dict[str, Callable[[Endpoint], Model]] = {"anthropic": _anthropic, "openai": _openai, "chat": _chat}
"""Each imports its library only where its provider is configured: they are slow to load."""
