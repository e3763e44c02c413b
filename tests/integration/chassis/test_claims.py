"""Large fields go to the object store and come back; whatever stands where they stood was put there by us."""

import asyncio
import tracemalloc
from hashlib import sha256

import orjson
import pytest
from nats.js.errors import NotFoundError

from wayline.chassis import Bus, BusSettings
from wayline.chassis.claim_check import claims as claims_module
from wayline.chassis.claim_check.claims import MESSAGE_MAX, Bounds, Claims, claimed
from wayline.chassis.claim_check.payloads import Payloads
from wayline.chassis.topology import PAYLOADS
from wayline.contracts.errors import Full, InvalidMessage, Unavailable
from wayline.testkit.fixtures import NatsFactory
from wayline.testkit.walks import cases

MEGABYTE = 1024 * 1024
LARGE = "0123456789" * 100_000
PLAIN = {"$claim": "acme/j1/00", "bytes": 5, "more": [{"$$claim": None, "$": 1, "claim": 2}]}


async def test_what_looks_like_a_claim_is_only_a_value(bus: Bus):
    """A model may say it, or a user: nothing is read from under that name, and nothing dropped."""
    value = {
        "text": LARGE,
        "said": PLAIN,
        "deep": [{"said": PLAIN, "text": LARGE + "!"}],
        "large": PLAIN | {"x": LARGE},
    }

    body, moved = await bus.claims.check_in(orjson.dumps(value), "acme/j2")

    assert moved and len(body) <= MESSAGE_MAX
    assert all(name.startswith("acme/j2/") for name in claimed(body))
    assert orjson.loads(await bus.claims.check_out(body)) == value


@pytest.mark.parametrize("body", cases([b"{not json", b'{"a": {"$claim": 5}}', b'{"a": {"$claim": null}}']))
async def test_a_forged_claim_is_invalid(bus: Bus, body: bytes):
    with pytest.raises(InvalidMessage):
        await bus.claims.check_out(body)


async def test_a_claim_outside_its_own_prefix_is_invalid_and_not_fetched(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")
    monkeypatch.setattr(Claims, "_fetch", never)

    for within in ("other/", "acme/j2/", "acme/j/"):
        with pytest.raises(InvalidMessage, match=f"not within '{within}'"):
            await bus.claims.check_out(body, within=within)


async def test_more_claims_than_allowed_are_invalid_and_none_is_fetched(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")
    many = orjson.dumps([orjson.loads(body)["a"]] * 5)
    monkeypatch.setattr(Claims, "_fetch", never)

    with pytest.raises(InvalidMessage, match="more than 4 objects"):
        await bus.claims.check_out(many, bounds=Bounds(claims=4, unfolded_bytes=2**40))


async def test_more_bytes_than_allowed_are_invalid_and_none_is_fetched(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """Whatever the sender says that they are."""
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")
    claim = orjson.loads(body)["a"] | {"bytes": 1}
    monkeypatch.setattr(Claims, "_fetch", never)

    with pytest.raises(InvalidMessage, match="more than 2500000 bytes"):
        await bus.claims.check_out(orjson.dumps([claim] * 3), bounds=Bounds(claims=9, unfolded_bytes=2_500_000))


async def test_a_claim_within_a_claim_is_bound_by_the_same_rules(bus: Bus):
    inner, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "other/j1")
    name = "acme/j1/" + sha256(inner).hexdigest()
    await bus.claims._payloads.put(name, inner)

    with pytest.raises(InvalidMessage, match="not within 'acme/'"):
        await bus.claims.check_out(orjson.dumps({"$claim": name}), within="acme/")


async def test_a_large_object_is_in_memory_once_when_it_is_read(bus: Bus):
    content = bytes(40 * MEGABYTE)
    name = await bus.claims.put("acme/j1", content)
    tracemalloc.start()
    try:
        read = await bus.claims.get(name, within="acme/")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert read == content
    assert peak < 70 * MEGABYTE


async def never(self: Claims, name: str) -> bytes:
    raise AssertionError(f"{name} was fetched")


async def test_a_full_object_store_says_so(bus: Bus):
    store = (await bus.js.stream_info("OBJ_PAYLOADS")).config
    await bus.js.update_stream(store.evolve(max_bytes=10_000))

    with pytest.raises(Full):
        await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")


async def test_an_object_store_that_does_not_answer_is_away(nats_factory: NatsFactory):
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    await bus.js.create_object_store(PAYLOADS)
    hasty = Claims(Payloads(bus.nc, bus.api, bus.request, timeout_s=0.2))
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")
    server.pause()

    with pytest.raises(Unavailable):
        await hasty.check_out(body)
    with pytest.raises(Unavailable):
        await hasty.check_in(orjson.dumps({"a": LARGE + "!"}), "acme/j1")

    server.resume()
    assert orjson.loads(await bus.claims.check_out(body)) == {"a": LARGE}
    await bus.close()


async def test_an_object_whose_content_never_comes_is_unavailable(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    """It was being replaced or dropped while we looked it up."""
    monkeypatch.setattr(claims_module, "FETCH_TIMEOUT_S", 0.2, raising=False)
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")
    await bus.js.purge_stream("OBJ_PAYLOADS", subject="$O.PAYLOADS.C.>")

    with pytest.raises(Unavailable):
        await asyncio.wait_for(bus.claims.check_out(body), 10)


async def test_an_object_store_that_is_missing_says_to_migrate(nats_factory: NatsFactory):
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)

    with pytest.raises(Unavailable, match="wayline migrate"):
        await bus.uploads.check_in(orjson.dumps({"a": LARGE}), "acme/d1")

    await bus.close()


async def test_no_header_empties_the_object_store(bus: Bus):
    body, _ = await bus.claims.check_in(orjson.dumps({"a": LARGE}), "acme/j1")

    for rollup in ("all", "sub"):
        answer = await bus.request("$O.PAYLOADS.C.mine", b"", timeout_s=2, headers={"Nats-Rollup": rollup})
        assert "rollup not permitted" in orjson.loads(answer.data)["error"]["description"]

    assert orjson.loads(await bus.claims.check_out(body)) == {"a": LARGE}


async def test_objects_are_those_of_the_client_library(bus: Bus):
    """A service of the version before reads what we store, and we what it stored."""
    theirs = await bus.js.object_store(PAYLOADS)
    ours = Payloads(bus.nc, bus.api, bus.request)
    await bus.js.update_stream((await bus.js.stream_info("OBJ_PAYLOADS")).config.evolve(allow_rollup_hdrs=True))
    large = LARGE.encode()

    await ours.put("acme/j1/ours", large)
    await theirs.put("acme/j1/theirs", large)

    assert (await theirs.get("acme/j1/ours")).data == large
    assert await ours.get("acme/j1/theirs") == large
    await theirs.delete("acme/j1/theirs")
    await ours.delete("acme/j1/ours")
    assert not await ours.has("acme/j1/theirs")
    with pytest.raises(NotFoundError):
        await theirs.get_info("acme/j1/ours")
