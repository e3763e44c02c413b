"""One fetch for everybody who asks at the same time, and a new one for whoever asks after it."""

import asyncio

import pytest

from wayline.chassis.concurrency.single_flight import SingleFlight


class Source:
    """Counts how often it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.let = asyncio.Event()
        self.error: Exception | None = None

    async def read(self) -> int:
        self.asked += 1
        answer = self.asked
        await self.let.wait()
        if self.error is not None:
            raise self.error
        return answer


async def test_all_who_ask_meanwhile_share_one_answer():
    source, flights = Source(), SingleFlight[str, int]()
    asking = [asyncio.create_task(flights.fetch("a", source.read)) for _ in range(3)]
    await asyncio.sleep(0)
    assert flights.is_under_way("a")

    source.let.set()

    assert await asyncio.gather(*asking) == [1, 1, 1]
    assert await flights.fetch("a", source.read) == 2
    assert not flights.is_under_way("a")


async def test_keys_are_fetched_apart():
    source, flights = Source(), SingleFlight[str, int]()
    source.let.set()

    assert await asyncio.gather(flights.fetch("a", source.read), flights.fetch("b", source.read)) == [1, 2]


async def test_an_error_reaches_all_current_callers_and_no_later_one():
    source, flights = Source(), SingleFlight[str, int]()
    source.error = OSError("away")
    asking = [asyncio.create_task(flights.fetch("a", source.read)) for _ in range(2)]
    source.let.set()

    assert [type(one) for one in await asyncio.gather(*asking, return_exceptions=True)] == [OSError, OSError]
    source.error = None
    assert await flights.fetch("a", source.read) == 2


async def test_others_get_their_answer_where_the_first_to_ask_is_cancelled():
    source, flights = Source(), SingleFlight[str, int]()
    first, second = (asyncio.create_task(flights.fetch("a", source.read)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.let.set()

    assert await second == 1
