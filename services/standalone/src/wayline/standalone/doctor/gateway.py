"""The gateway: whether it answers, and whether what it needs does."""

from __future__ import annotations

import os

import httpx2

from wayline.standalone.doctor.finding import Findings, note, ok, problem, warning
from wayline.standalone.setup.installation import Installation
from wayline.standalone.settings import Settings

WAIT_S = 5.0
NOT_RUNNING = "not running: nobody takes a job here"


def gateway_url(settings: Settings, installation: Installation) -> str | None:
    """Where the gateway should be; None: nobody says that one runs."""
    running = installation.running()
    url = os.environ.get("WAYLINE_URL") or (running or {}).get("gateway")
    if url is None and running is None:
        return None
    return (url or f"http://127.0.0.1:{settings.http_port}").rstrip("/")


async def examine_gateway(settings: Settings, installation: Installation) -> Findings:
    """Ask it whether it is ready."""
    running, url = installation.running(), gateway_url(settings, installation)
    if url is None:
        # On a machine where nothing was ever started, that is as it should be.
        say = warning if installation.keys.exists() else note
        yield say("gateway", NOT_RUNNING, "`wayline up` starts it")
        return
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_S) as http:
            response = await http.get(f"{url}/health/ready")
            needs: dict[str, str] = response.json()["needs"]
    except httpx2.TransportError as error:
        said = f"nothing answers at {url}: {str(error) or type(error).__name__}"
        todo = "`wayline serve gateway` starts it" if running and running.get("servers_only") else "see the log file"
        yield (note if running and running.get("servers_only") else problem)("gateway", said, todo)
        return
    except (ValueError, KeyError, TypeError):
        yield problem("gateway", f"{url} does not answer as Wayline does", "is WAYLINE_URL right?")
        return
    wrong = {need: state for need, state in needs.items() if state != "ok"}
    if wrong:
        yield problem("gateway", "; ".join(f"{need}: {state}" for need, state in wrong.items()), "see the log file")
    else:
        yield ok("gateway", f"ready at {url}")
