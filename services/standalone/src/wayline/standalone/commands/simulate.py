"""`wayline simulate`: model providers on this machine that need no key and cost nothing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from wayline.standalone.commands.output import AsJson

if TYPE_CHECKING:
    from wayline.simulator import Script, Simulator

DEFAULT_PORT = 8090


def simulate(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where to listen on 127.0.0.1; 0 takes a free one.")
    ] = DEFAULT_PORT,
    latency_ms: Annotated[float, typer.Option(min=0, help="How long each answer takes to begin.")] = 0.0,
    script: Annotated[
        Path | None, typer.Option(help="A Python file with `script(asked) -> Say`; without one, rules answer.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve simulated model providers until Ctrl-C: no key, no costs, real prices and cache rules."""
    import asyncio

    try:
        asyncio.run(_serve(port, latency_ms, script, as_json=as_json))
    except OSError as error:
        _end(f"127.0.0.1:{port} cannot be opened ({error.strerror}): choose another port with --port")


async def _serve(port: int, latency_ms: float, script: Path | None, *, as_json: bool) -> None:
    import asyncio
    import time

    from wayline.simulator import Fault, Simulator, by_rules
    from wayline.standalone.launch.stopping import end_signals

    late = Fault(latency_s=latency_ms / 1_000)
    chosen = by_rules if script is None else _load_script(script)
    asked_to_end = asyncio.Event()
    for name in end_signals():
        asyncio.get_running_loop().add_signal_handler(name, asked_to_end.set)
    async with Simulator(chosen, faults=lambda asked: late, clock=time.time, port=port) as simulator:
        print(json.dumps(_described(simulator)) if as_json else _shell_lines(simulator), flush=True)
        await asked_to_end.wait()
    print(f"{len(simulator.bill.charges)} requests; they would have cost ${simulator.bill.usd:f}", file=sys.stderr)


def _described(simulator: Simulator) -> dict[str, Any]:
    return {
        "url": simulator.url,
        "models": _agent_models(simulator),
        "embedding_models": _embedding_models(simulator),
        "environment": simulator.environment,
    }


def _shell_lines(simulator: Simulator) -> str:
    """Return the lines to paste into the shell that runs Wayline."""
    variables = "\n".join(f"export {name}={value}" for name, value in simulator.environment.items())
    models = f"Models: {', '.join(_agent_models(simulator))}. Embeddings: {', '.join(_embedding_models(simulator))}"
    return f"Simulated providers at {simulator.url} until Ctrl-C. {models}\n\n{variables}"


def _agent_models(simulator: Simulator) -> list[str]:
    """Return the models that answer, as an agent names them: those that have no card are reached as `chat/…`."""
    from wayline.llm.catalogue import bundled

    cards = {card.model: card.name for card in bundled()}
    answering = (name for name, facts in simulator.models.items() if facts.dimensions is None)
    return sorted(cards.get(name, f"chat/{name}") for name in answering)


def _embedding_models(simulator: Simulator) -> list[str]:
    return sorted(name for name, facts in simulator.models.items() if facts.dimensions is not None)


def _load_script(path: Path) -> Script:
    """Return the `script` of the user's Python file."""
    spec = importlib.util.spec_from_file_location("wayline_simulate_script", path)
    if spec is None or spec.loader is None or not path.is_file():
        _end(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    script = getattr(module, "script", None)
    if not callable(script):
        _end(f"{path} has no function `script(asked)` that returns a wayline.simulator.Say")
    return cast("Script", script)


def _end(message: str) -> NoReturn:
    print(f"wayline: {message}", file=sys.stderr)
    raise typer.Exit(1) from None
