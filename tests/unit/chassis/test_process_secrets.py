"""Another process of the same user does not read a service's secrets."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's environment as a file")

TELL = """
import ctypes, os, subprocess
from wayline.chassis.process_secrets import keep_secrets
keep_secrets()
print(open("/proc/self/environ", "rb").read())
print(os.environ["WAYLINE_NATS_SEED"], os.environ["PLAIN"])
print(subprocess.run(["/usr/bin/env"], capture_output=True).stdout)
print("dumpable", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


def test_the_environment_shows_no_secret_after_the_start():
    secrets = {"WAYLINE_NATS_SEED": "canary-1", "X_API_KEY": "canary-2", "WAYLINE_TOOL_REGISTRY_SERVERS": "canary-3"}
    env = {"PATH": os.defpath, "PLAIN": "plain", **secrets}

    told = subprocess.run([sys.executable, "-c", TELL], env=env, capture_output=True, text=True, check=True).stdout

    shown, own, inherited, dumpable = told.splitlines()
    assert "canary" not in shown + inherited
    assert "PLAIN=plain" in shown
    assert own == "canary-1 plain"
    assert dumpable == "dumpable 0"
