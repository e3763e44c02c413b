"""What is done again and again goes on, whatever one turn of it comes to."""

from wayline.testkit import until
from wayline.tracing.periodic import Periodic


async def test_a_turn_that_fails_is_followed_by_the_next():
    turns: list[int] = []

    async def do() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise ZeroDivisionError("unexpected")

    periodic = Periodic("test", do, every_s=0.001)
    await periodic.start()
    try:
        await until(lambda: len(turns) > 2, why="it goes on")
    finally:
        await periodic.stop(1)
