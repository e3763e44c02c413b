"""The built-in tool `web_search` on a real bus, with each provider played on a socket."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest

from wayline.contracts.observation import observation, tool_state
from wayline.contracts.tools import ListTools, ToolList
from wayline.simulator.search_engine import KEY, Result, SearchEngine, SearchQuery
from wayline.simulator.website import Page
from wayline.testkit.walks import cases

RESULTS = [
    Result("Tides", "https://sea.example/tides", "They rise twice & fall.", "2026-03-01"),
    Result("Moon", "https://moon.example/", "It pulls."),
    *(Result(f"More {n}", f"https://more.example/{n}", "More.") for n in range(10)),
]
PROVIDERS = ("searxng", "brave", "tavily")
PATHS = {"searxng": "", "brave": "/res/v1", "tavily": ""}
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


@asynccontextmanager
async def engine(platform, provider: str, finds=lambda asked: RESULTS, **settings):
    played = SearchEngine(finds)
    async with played.website() as site:
        await platform.registry(
            web_search_provider=provider,
            web_search_url=site.url(PATHS[provider]),
            **{"web_search_key": KEY, "answer_within_s": 20, **settings},
        )
        yield played


async def search(platform, *, job: str = "j1", **arguments):
    return await platform.once(platform.ask("web_search", {"query": "tides", **arguments}, job=job), timeout_s=30)


def words(asked: SearchQuery) -> str:
    return asked.query


async def listed(platform) -> list[str]:
    tools = (await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("web_search",)), ToolList)).tools
    return [tool.name for tool in tools if tool.untrusted]


async def test_without_a_provider_a_search_names_the_setting(platform):
    await platform.registry()

    reply = await search(platform)

    assert await listed(platform) == []
    assert reply.error is not None and reply.error.code == "unknown_tool"
    assert "set WAYLINE_TOOL_REGISTRY_WEB_SEARCH_PROVIDER" in reply.error.message


@every_provider
async def test_a_search_brings_five_results_of_strangers(platform, provider: str):
    async with engine(platform, provider) as played:
        names = await listed(platform)
        reply = await search(platform)

    assert names == ["web_search"]
    assert reply.status == "success", reply.error
    result = json.loads(reply.content)
    assert result["query"] == "tides"
    assert result["results"][0] == {
        "title": "Tides",
        "url": "https://sea.example/tides",
        "snippet": "They rise twice & fall.",
        "published": "2026-03-01",
    }
    assert len(result["results"]) == 5
    assert reply.cost_usd is None
    assert len(played.asked) == 1
    assert tool_state("web_search") == "searching_web"
    assert observation("web_search", {"query": "tides"}, reply.content, failed=False) == "5 found for “tides”"


@pytest.mark.parametrize(
    ("provider", "expected"),
    cases(
        [
            ("searxng", {"q": "tides (site:arxiv.org OR site:scholar.google.com OR site:ncbi.nlm.nih.gov)"}),
            ("brave", {"q": "tides (site:arxiv.org OR site:scholar.google.com OR site:ncbi.nlm.nih.gov)"}),
            ("tavily", {"query": "tides", "include_domains": ["arxiv.org", "scholar.google.com", "ncbi.nlm.nih.gov"]}),
        ]
    ),
)
async def test_a_category_limits_the_sites(platform, provider: str, expected: dict):
    async with engine(platform, provider) as played:
        await search(platform, source_category="academic")

    assert {name: played.asked[0].parameters[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("provider", "named", "ranged"),
    cases(
        [
            ("searxng", {"time_range": "week"}, {}),
            ("brave", {"freshness": "pw"}, {"freshness": "2020-01-01to2020-02-01"}),
            ("tavily", {"time_range": "week"}, {"start_date": "2020-01-01", "end_date": "2020-02-01"}),
        ]
    ),
)
async def test_dates_limit_what_is_found(platform, provider: str, named: dict, ranged: dict):
    async with engine(platform, provider) as played:
        await search(platform, date_range="week")
        reply = await search(platform, job="j2", date_range="2020-01-01..2020-02-01")

    names = {"time_range", "freshness", "start_date", "end_date"}
    assert [{k: v for k, v in one.parameters.items() if k in names} for one in played.asked] == [named, ranged]
    # The result that is known to be of another time is left out, whatever the provider does.
    assert json.loads(reply.content)["results"][0]["title"] == "Moon"


@pytest.mark.parametrize(
    ("provider", "arguments"),
    cases(
        [
            ("searxng", {"date_range": "2020-01-01..2020-02-01"}),
            ("searxng", {"date_range": "2026-01-01..2026-02-01"}),
            ("brave", {"date_range": "day", "kind": "image"}),
            ("tavily", {"date_range": "day", "kind": "image"}),
        ]
    ),
)
async def test_dates_that_a_provider_ignores_are_told_of(platform, provider: str, arguments: dict):
    undated = [Result("Moon", "https://moon.example/")]
    async with engine(platform, provider, lambda asked: undated):
        reply = await search(platform, **arguments)

    result = json.loads(reply.content)
    assert len(result["results"]) == 1
    assert f"cannot limit this search to {arguments['date_range']}" in result["note"]


async def test_dates_that_all_results_have_need_no_note(platform):
    dated = [Result("Tides", "https://sea.example/tides", published="2020-01-05")]
    async with engine(platform, "searxng", lambda asked: dated):
        reply = await search(platform, date_range="2020-01-01..2020-02-01")

    assert set(json.loads(reply.content)) == {"query", "results"}


async def test_a_search_with_dates_alone_is_widened_to_any_time(platform):
    def finds(asked: SearchQuery) -> list[Result]:
        return [] if "freshness" in asked.parameters else RESULTS[:1]

    async with engine(platform, "brave", finds) as played:
        reply = await search(platform, date_range="day")

    result = json.loads(reply.content)
    assert (len(played.asked), len(result["results"])) == (2, 1)
    assert result["note"] == (
        "Nothing was found for 'tides' with this date_range; this was searched for instead, everywhere and of any time."
    )


@every_provider
async def test_a_malformed_address_is_left_out(platform, provider: str):
    results = [Result("Broken", "http://[foo"), RESULTS[0]]
    async with engine(platform, provider, lambda asked: results):
        reply = await search(platform)

    assert reply.status == "success", reply.error
    assert [one["title"] for one in json.loads(reply.content)["results"]] == ["Tides"]


async def test_an_answer_nested_too_deep_is_no_result(platform):
    async with engine(platform, "brave", web_search_cost_usd="0.005") as played:
        played.refusals.append(Page("[" * 100_000, media_type="application/json"))
        reply = await search(platform)

    assert reply.error is not None and "no search result" in reply.error.message
    assert reply.cost_usd == Decimal("0.005")


@every_provider
async def test_images_and_videos_are_searched_for(platform, provider: str):
    async with engine(platform, provider) as played:
        images = json.loads((await search(platform, kind="image")).content)["results"]
        videos = json.loads((await search(platform, job="j2", kind="video")).content)["results"]

    assert images[0]["image_url"] == "https://sea.example/tides.png"
    assert videos[0]["url"] == "https://sea.example/tides"
    assert len(played.asked) == 2
    if provider == "brave":
        assert videos[0]["duration"] == "03:20"
    if provider == "tavily":
        assert "youtube.com" in played.asked[1].parameters["include_domains"]


async def test_a_search_that_finds_nothing_is_widened_once(platform):
    def finds(asked: SearchQuery) -> list[Result]:
        return [] if '"' in asked.query or "site:" in asked.query else RESULTS[:1]

    async with engine(platform, "brave", finds) as played:
        query = '"rise of tides" site:sea.example'
        reply = await search(platform, query=query, source_category="news", target_info=["height"])

    result = json.loads(reply.content)
    assert [words(one) for one in played.asked][1:] == ["rise of tides"]
    assert (result["query"], len(result["results"])) == ("rise of tides", 1)
    assert "Nothing was found on news sites" in result["note"]


async def test_a_search_that_finds_nothing_at_all_says_so(platform):
    async with engine(platform, "searxng", lambda asked: []) as played:
        reply = await search(platform, target_info=["height"])

    result = json.loads(reply.content)
    assert (result["results"], len(played.asked)) == ([], 2)
    assert "Nothing was found" in result["note"]


async def test_each_search_is_charged_and_a_kept_one_is_free(platform):
    found: list[list[Result]] = [[], RESULTS, RESULTS]
    async with engine(platform, "brave", lambda asked: found.pop(0), web_search_cost_usd="0.005") as played:
        widened = await search(platform, target_info=["height"])
        kept = await search(platform, job="j2", target_info=["height"])
        other = await search(platform, job="j3", query="moon")

    assert [one.cost_usd for one in (widened, kept, other)] == [Decimal("0.010"), Decimal(0), Decimal("0.005")]
    assert json.loads(kept.content) == json.loads(widened.content)
    assert len(played.asked) == 3


async def test_a_tenant_never_sees_anothers_kept_search(platform):
    async with engine(platform, "tavily") as played:
        await search(platform)
        platform.tenant = f"{platform.tenant}-other"
        await search(platform)

    assert len(played.asked) == 2


async def test_a_tenants_searches_are_limited_and_anothers_are_not(platform):
    async with engine(platform, "brave", web_searches_per_minute=2) as played:
        replies = [await search(platform, job=f"j{n}", query=f"tides {n}") for n in range(3)]
        platform.tenant = f"{platform.tenant}-other"
        other = await search(platform)

    assert [one.status for one in replies] == ["success", "success", "failed"]
    assert replies[2].error is not None and "search again in" in replies[2].error.message
    assert other.status == "success"
    assert len(played.asked) == 3


async def test_a_search_that_is_paid_but_fails_is_charged(platform):
    found: list[list[Result]] = [[]]
    settings = {"web_searches_per_minute": 1, "web_search_cost_usd": "0.005"}
    async with engine(platform, "brave", lambda asked: found.pop(0), **settings):
        reply = await search(platform, target_info=["height"])

    assert reply.error is not None
    assert reply.cost_usd == Decimal("0.005")


async def test_a_paid_search_whose_answer_breaks_off_is_not_repeated(platform):
    async with engine(platform, "brave", web_search_cost_usd="0.005") as played:
        played.refusals.append(Page('{"web": {}}', media_type="application/json", cut=True))
        reply = await search(platform)

    assert reply.status == "failed"
    # It may have been charged for, and nobody says how much.
    assert (reply.cost_usd, reply.may_have_charged) == (None, True)
    assert played.asked == []


@every_provider
async def test_a_busy_provider_is_asked_again(platform, provider: str):
    async with engine(platform, provider) as played:
        played.refusals.append(Page("{}", status=429, media_type="application/json"))
        reply = await search(platform)

    assert reply.status == "success"


async def test_a_provider_that_is_away_is_unavailable(platform):
    async with engine(platform, "brave") as played:
        played.refusals += [Page("{}", status=503, media_type="application/json")] * 2
        away = await search(platform)
        back = await search(platform, job="j2")

    assert away.error is not None
    assert (away.error.code, away.attempts) == ("unavailable", 1)
    assert back.status == "success"


@pytest.mark.parametrize("provider", ["tavily", "brave"])
async def test_a_wrong_key_is_told_without_the_key(platform, provider: str):
    async with engine(platform, provider, web_search_key="a-wrong-key") as played:
        reply = await search(platform)

    assert reply.error is not None
    assert "a-wrong-key" not in reply.model_dump_json()
    assert "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_KEY" in reply.error.message
    assert played.asked == []


async def test_a_page_for_people_is_no_result(platform):
    async with engine(platform, "searxng") as played:
        played.refusals.append(Page("<html>hello</html>"))
        reply = await search(platform)

    assert reply.error is not None and "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_URL" in reply.error.message


@pytest.mark.parametrize(
    "arguments",
    cases(
        [
            {"date_range": "soon"},
            {"source_category": "gossip"},
            {"kind": "smell"},
            {"target_info": ["x"] * 6},
            {"query": ""},
        ]
    ),
)
async def test_wrong_arguments_are_refused_before_anything_is_asked(platform, arguments: dict):
    async with engine(platform, "brave") as played:
        reply = await search(platform, **arguments)

    assert reply.error is not None
    assert reply.error.code == "invalid_arguments"
    assert played.asked == []


async def test_a_range_that_ends_before_it_begins_is_refused(platform):
    async with engine(platform, "brave") as played:
        reply = await search(platform, date_range="2026-03-31..2026-03-01")

    assert reply.error is not None and "before it begins" in reply.error.message
    assert played.asked == []
