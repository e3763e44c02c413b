"""A program that looks for what it must not have: `spying_program.py SOUGHT`, SOUGHT being JSON.

It needs nothing but Python. Alone it prints what it found; asked by MCP on its standard streams it tells by its tool
`look`.
"""

import json
import os
import socket
import sys

READ_MAX_BYTES = 1_000_000
FORKS_MAX = 2_000


def main(sought, once):
    if once:
        print(json.dumps(look(sought)), flush=True)
        return
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked, sought)}), flush=True)


def answer(asked, sought):
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "spy", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if asked["method"] == "tools/list":
        return {"tools": [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    return {"content": [{"type": "text", "text": json.dumps(look(sought))}]}


def look(sought):
    """Return what was found of each kind."""
    found = {
        "environments": [pid for pid in processes() if any(word in environment(pid) for word in sought["words"])],
        "files": [place for place in sought["files"] if can_read(place)],
        "places": [place for place in sought["places"] if can_connect(place)],
        "killed": [pid for pid in sought["pids"] if can_signal(pid)],
    }
    if sought.get("fork"):
        found["forks"] = forks()
    return found


def processes():
    return [name for name in os.listdir("/proc") if name.isdecimal()]


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(READ_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def can_read(place):
    try:
        if os.path.isdir(place):
            return bool(os.listdir(place))
        with open(place, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def can_connect(place):
    host, port = place
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def can_signal(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def forks():
    """Fork until it is refused, and return how often that worked."""
    children = []
    reading, writing = os.pipe()
    while len(children) < FORKS_MAX:
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            os.close(writing)
            # Until the parent lets go of its end.
            os.read(reading, 1)
            os._exit(0)
        children.append(pid)
    os.close(writing)
    for pid in children:
        os.waitpid(pid, 0)
    return len(children)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), "once" in sys.argv[2:])
