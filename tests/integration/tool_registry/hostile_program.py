"""A program that speaks MCP on its standard streams and misbehaves: `hostile_program.py MODE PIDS`.

It needs nothing but Python, so that it can write whatever it likes; each process of it adds its id to the file PIDS.
"""

import json
import os
import signal
import sys
import time

MODE, PIDS = sys.argv[1:3]
LINE_BYTES = 50_000_000
TOOLS_MANY = 1_000
DETACHED_S = 120
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
changed = []


def main():
    note_pid()
    if MODE == "exit":
        sys.exit(give_up())
    if MODE == "silent":
        wait()
    if MODE in ("deaf", "deaf alone"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "deaf" and os.fork() == 0:
        note_pid()
        wait()
    if MODE == "detached" and os.fork() == 0:
        os.setsid()
        note_pid()
        # Not longer: a registry that does not end it must not leave it for good.
        time.sleep(DETACHED_S)
        os._exit(0)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            answer(asked)
    if MODE in ("deaf", "deaf alone"):
        wait()


def answer(asked):
    method = asked["method"]
    if MODE == "garbage":
        write(b'Starting \xff\xfe\x00 up ...\n\n{"jsonrpc": \n[1, 2]\n{"jsonrpc": "1.0", "id": 7}\n')
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "hostile", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": tools()}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": call(asked["params"]["name"])}]}
    else:
        write_json({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
        return
    write_json({"id": asked["id"], "result": result})


def tools():
    names = ["look", "act"]
    if MODE == "many":
        names += [f"tool_{n}" for n in range(TOOLS_MANY - 2)]
    if changed:
        names = ["look", "new"]
    return [{"name": name, "description": f"{name}: {'what it is for ' * 40}", "inputSchema": SCHEMA} for name in names]


def call(name):
    if name == "act":
        if MODE == "crash":
            os._exit(1)
        if MODE in ("hang", "stuck"):
            note_call(name)
            wait()
        if MODE == "endless":
            while True:
                write(b"x" * 1_000_000)
        if MODE == "flood":
            while True:
                write(b"not a message\n" * 1_000)
        if MODE == "line":
            return "x" * LINE_BYTES
        if MODE == "changing":
            changed.append(name)
    return str(os.getpid())


def write_json(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def note_pid():
    with open(PIDS, "a") as file:
        print(os.getpid(), file=file)


def note_call(name):
    with open(PIDS.removesuffix(".pids") + ".calls", "a") as file:
        print(name, file=file)


def give_up():
    print("no configuration", file=sys.stderr)
    return 3


def wait():
    while True:
        time.sleep(3_600)


main()
