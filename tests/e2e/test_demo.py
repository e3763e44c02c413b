"""A stranger's first ten minutes: the demo, whole, on a platform of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


# `make e2e` runs it, and `make demo` is it; `make test` has the same doors in test_order_desk and test_money.
@pytest.mark.slow
@pytest.mark.timeout(280)
def test_the_demo_ingests_real_documents_and_answers_through_three_doors():
    run = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, timeout=270, check=False)

    assert run.returncode == 0, run.stderr[-2_000:]
    output = run.stdout
    http, rest = output.split("── First door")[1].split("── Second door")
    command, bus = rest.split("── Third door")
    bus, traced = bus.split("── The trace of the first job")
    assert "[1] pydoc/compound.txt" in http and "__exit__" in http
    assert "pydoc/" in command and "Citations" in command
    assert "global.txt" in bus and "completed" in bus
    bus, desk = bus.split("── A service of ours")
    assert "orders__refund" in desk and "42.00 paid back for A-1001" in desk
    [refund] = [line for line in desk.splitlines() if line.startswith("refunds.txt: ")]
    assert refund.startswith("refunds.txt: A-1001 4200 default/")
    for span in ("invoke_agent assistant", "publish jobs.submit.{tenant}", "execute_tool search_knowledge"):
        assert span in traced
    for service in ("gateway", "router", "executor", "tool-registry", "retrieval"):
        assert service in traced
    assert "extractive\t6\t" in traced
