"""Programs of the hostile tenant: what one does when its tool is called, or at its start."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from wayline.chassis import Bus
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import Effect

from .attack import outcome

PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
TIMEOUT_S = 3.0
SOURCE = """
import json, os, signal, sys, time
START, ACT = sys.argv[1:3]
exec(START)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "program", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        exec(ACT)
        result = {"content": [{"type": "text", "text": "done"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""It needs nothing but Python: `START` is run before anything is said, `ACT` at each call."""
LOST = ("unavailable", "timeout", "tool_failed")
"""Of a program that ended, or did not answer."""


@dataclass(frozen=True)
class HostileProgram:
    """A program whose tool is called once."""

    name: str
    act: str = "pass"
    start: str = "pass"
    outcomes: Sequence[str] = field(default=LOST)

    async def run(self, bus: Bus, tenant: str, *, job: str) -> str:
        """Let the tenant call the program's tool, and return what came of it."""
        args = ("-I", "-c", SOURCE, self.start, self.act)
        config = ServerConfig(command=PYTHON, args=args, effects={"act": Effect.READ}, timeout_s=TIMEOUT_S)
        return await outcome(bus, tenant, config, {}, job=job)


PROGRAMS = [
    HostileProgram("program: no harm", outcomes=("success",)),
    HostileProgram("program: forks without end", "while True: os.fork()"),
    HostileProgram("program: forks and stays", "\nfor n in range(2000):\n    if os.fork() == 0: time.sleep(3600)"),
    HostileProgram("program: memory without end", "held = []\nwhile True: held.append(bytearray(10_000_000))"),
    HostileProgram("program: computes without end", "while True: pass"),
    HostileProgram("program: waits without end", "time.sleep(3600)"),
    HostileProgram("program: writes without a line's end", "while True: sys.stdout.write('x' * 1_000_000)"),
    HostileProgram("program: lines that are no messages", "while True: print('not a message\\n' * 1_000)"),
    HostileProgram(
        "program: messages without end",
        "while True: print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/message', 'params': "
        "{'level': 'info', 'data': 'x'}}))",
    ),
    HostileProgram("program: sessions without end", "while True: os.fork() or os.setsid()"),
    HostileProgram("program: errors without end", "while True: sys.stderr.write('x' * 1_000_000)"),
    HostileProgram("program: a line of 50 MB", "print('x' * 50_000_000, flush=True)", outcomes=(*LOST, "success")),
    HostileProgram("program: exits when it is called", "os._exit(1)"),
    HostileProgram("program: exits at its start", start="sys.exit('no licence')", outcomes=("away",)),
    HostileProgram("program: says nothing at its start", start="time.sleep(3600)", outcomes=("away",)),
    HostileProgram("program: ends by no signal", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)"),
    HostileProgram(
        "program: leaves its group",
        "\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(3600)",
        outcomes=("success",),
    ),
    HostileProgram(
        "program: files without end",
        "held = []\nwhile True: held.append(open('/dev/null'))",
        outcomes=LOST,
    ),
    HostileProgram(
        "program: fills /tmp", "\nwith open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(1_000_000))"
    ),
    HostileProgram(
        "program: the metadata address",
        "import socket\nsocket.create_connection(('169.254.169.254', 80), 1)",
    ),
    HostileProgram("program: our environment", "open(f'/proc/{os.getppid()}/environ').read().index('WAYLINE_')"),
    HostileProgram("program: kills all that it can", "os.kill(-1, signal.SIGKILL)", outcomes=(*LOST, "success")),
]
