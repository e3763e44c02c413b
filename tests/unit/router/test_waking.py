"""Whoever waits for a budget is looked for again and again, whatever one look comes to."""

from typing import Any, cast

from wayline.router.money.waking import Waker
from wayline.testkit import until


async def test_a_look_that_fails_is_followed_by_the_next():
    looks: list[int] = []

    class Looking(Waker):
        async def wake(self) -> int:
            looks.append(len(looks))
            if len(looks) == 1:
                raise ZeroDivisionError("unexpected")
            return 0

        async def tell(self) -> None:
            pass

    # It asks neither of them here.
    nobody = cast("Any", None)
    waker = Looking(nobody, nobody, every_s=0.001, labels_max=1, labels_per_tenant_max=1)
    await waker.start()
    try:
        await until(lambda: len(looks) > 2, why="it goes on")
    finally:
        await waker.stop(1)
