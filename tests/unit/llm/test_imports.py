"""The SDKs cost seconds and tens of megabytes: nobody pays for one that is not used."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(("module", "sdk"), [("anthropic", "anthropic"), ("openai", "openai")])
def test_an_adapter_without_a_call_has_not_imported_its_sdk(module, sdk):
    code = f"import sys, wayline.llm.{module}, wayline.llm.{module}.request; sys.exit({sdk!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_library_itself_imports_no_http_client():
    code = "import sys, wayline.llm; sys.exit(bool({'httpx2', 'aiohttp', 'anthropic', 'openai'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
