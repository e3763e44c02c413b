"""What fork servers make for all of their processes is what those use."""

from __future__ import annotations

import sys
from importlib import import_module

import httpx2
import pytest

from wayline.testkit.service_starts import IMPORTS
from wayline.tool_registry import builtin_tools


@pytest.mark.parametrize("module", IMPORTS)
def test_a_fork_server_can_import_what_it_is_asked_for(module: str):
    import_module(module)


def test_the_command_tree_is_made_once():
    from wayline.standalone.cli import command

    import_module("wayline.testkit.command_tree")

    assert (command.cache_info().currsize, command()) == (1, command())


def test_built_in_tools_are_described_before_a_registry_starts():
    sys.modules.pop("wayline.testkit.described_tools", None)
    import_module("wayline.testkit.described_tools")
    described = builtin_tools._described.cache_info().currsize

    sys.modules.pop("wayline.testkit.described_tools")
    import_module("wayline.testkit.described_tools")

    assert builtin_tools._described.cache_info().currsize == described > 10


@pytest.mark.parametrize("reads_variables", [True, False])
def test_http_clients_share_one_store_of_certificates(reads_variables: bool):
    first, second = (httpx2._config.create_ssl_context(trust_env=reads_variables) for _ in range(2))

    assert first is second


def test_gateways_find_their_routes_read():
    from wayline.gateway.application import routes
    from wayline.gateway.settings import Settings

    import_module("wayline.testkit.gateway_routes")
    read, settings = routes.cache_info(), Settings()
    routes(settings.body_max_bytes, settings.document_max_bytes)

    assert routes.cache_info().misses == read.misses
