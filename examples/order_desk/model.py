"""A simulated model for the order desk: `wayline simulate --script examples/order_desk/model.py`."""

import re

from wayline.simulator import Asked, Say

ORDER = re.compile(r"\bA-\d{4}\b")


def script(asked: Asked) -> Say:
    """Refund the order that the user names, and pass on what the tool said."""
    if asked.results:
        return Say(text=asked.results[-1].text)
    order = ORDER.search(asked.text)
    if order is None:
        return Say(text="Which order? Its number looks like A-1001.")
    return Say(tools=(("orders__refund", {"number": order[0]}),))
