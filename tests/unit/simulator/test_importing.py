"""The simulator is for users too: it must not need what only tests have."""

import subprocess
import sys

CODE = """
import sys
sys.modules["pytest"] = None
import wayline.simulator
print(sorted(name for name in ("anthropic", "openai", "asyncpg", "nats") if name in sys.modules))
"""


def test_the_simulator_is_imported_without_pytest_and_without_the_sdks():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=False)

    assert run.returncode == 0, run.stderr
    assert "anthropic" not in run.stdout
    assert "openai" not in run.stdout
