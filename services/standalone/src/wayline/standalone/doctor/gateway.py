"""The gateway: whether it answers, and whether everything it needs answers."""

from __future__ import annotations

import os

import httpx2

from wayline.standalone.doctor.finding import Findings, note, ok, problem, warning
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation

WAIT_S = 5.0
NOT_RUNNING = "not running: no job can be submitted here"


def gateway_url(settings: Settings, installation: Installation) -> str | None:
    """Return the gateway's address; None: none is known to run."""
    running = installation.running()
    url = os.environ.get("WAYLINE_URL") or (running or {}).get("gateway")
    if url is None and running is None:
        return None
    return (url or f"http://127.0.0.1:{settings.http_port}").rstrip("/")


async def examine_gateway(settings: Settings, installation: Installation) -> Findings:
    """Ask the gateway whether it is ready."""
    running, url = installation.running(), gateway_url(settings, installation)
    if url is None:
        # On a machine where Wayline was never started, this is normal.
        report = warning if installation.keys.exists() else note
        yield report("gateway", NOT_RUNNING, "`wayline up` starts it")
        return
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_S) as http:
            response = await http.get(f"{url}/health/ready")
            needs: dict[str, str] = response.json()["needs"]
    except httpx2.TransportError as error:
        text = f"nothing answers at {url}: {str(error) or type(error).__name__}"
        todo = "`wayline serve gateway` starts it" if running and running.get("servers_only") else "see the log file"
        yield (note if running and running.get("servers_only") else problem)("gateway", text, todo)
        return
    except (ValueError, KeyError, TypeError):
        yield problem("gateway", f"{url} does not answer as Wayline does", "check WAYLINE_URL")
        return
    wrong = {need: state for need, state in needs.items() if state != "ok"}
    if wrong:
        yield problem("gateway", "; ".join(f"{need}: {state}" for need, state in wrong.items()), "see the log file")
    else:
        yield ok("gateway", f"ready at {url}")
