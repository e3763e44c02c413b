"""A small order desk: a service with two tools, run by `python order_desk.py`.

The orders are a table in memory; each refund is a line in the file that ORDER_DESK_REFUNDS names.
"""

import asyncio
import os
from pathlib import Path

from wayline.sdk import Call, ToolFailed, Tools

ORDERS = {"A-1001": 4_200, "A-1002": 1_999, "A-1003": 12_500}
"""What was paid for each order, in cents."""
REFUNDS = Path(os.environ.get("ORDER_DESK_REFUNDS", "refunds.txt"))
WORK_S = float(os.environ.get("ORDER_DESK_WORK_S", "0"))
"""How long the bank takes: a test has time to kill the desk meanwhile."""

tools = Tools("orders", instructions="Orders of the shop: what was paid for them, and refunds.")


@tools.tool(effect="read")
async def find_order(number: str) -> dict[str, object]:
    """Find an order by its number, such as A-1001, and say what was paid for it."""
    return {"number": number, "paid_cents": _paid(number), "refunded": number in _refunded()}


@tools.tool(effect="once", timeout_s=30)
async def refund(number: str, call: Call) -> str:
    """Pay an order back, all of it."""
    cents = _paid(number)
    if number in _refunded():
        raise ToolFailed(f"the order {number} was paid back already")
    _note(f"{number} {cents} {call.key}\n")
    await asyncio.sleep(WORK_S)
    return f"{cents / 100:.2f} paid back for {number}"


def _paid(number: str) -> int:
    if number not in ORDERS:
        raise ToolFailed(f"there is no order {number}; there are {', '.join(ORDERS)}")
    return ORDERS[number]


def _note(line: str) -> None:
    with REFUNDS.open("a") as file:
        file.write(line)


def _refunded() -> set[str]:
    return {line.split()[0] for line in REFUNDS.read_text().splitlines()} if REFUNDS.exists() else set()


if __name__ == "__main__":
    tools.run()
