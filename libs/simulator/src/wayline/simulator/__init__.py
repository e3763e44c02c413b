"""Simulated model providers on a socket: Anthropic Messages, OpenAI Responses, Chat Completions and Embeddings.

async with Simulator(turns(Say(tools=(("search", {"q": "x"}),)), Say(text="done"))) as simulator:
    ...  # point a client at simulator.url (Anthropic) or simulator.openai_url (the others)
simulator.bill.charges, simulator.requests
"""

from wayline.simulator.bill import Bill, Charge
from wayline.simulator.models import Facts, Rates, known
from wayline.simulator.prompt.counting import BLOCK_TOKENS, IMAGE_TOKENS, PAGE_TOKENS, TOKEN_BYTES, block_tokens
from wayline.simulator.scripts.fault_choices import Faults, seeded
from wayline.simulator.scripts.faults import NO_FAULT, Fault
from wayline.simulator.scripts.rules import by_rules
from wayline.simulator.scripts.script import Asked, Call, Offered, Say, Script, Turn, rounds, turns
from wayline.simulator.server import ManualClock, Simulator

__all__ = [
    "BLOCK_TOKENS",
    "IMAGE_TOKENS",
    "NO_FAULT",
    "PAGE_TOKENS",
    "TOKEN_BYTES",
    "Asked",
    "Bill",
    "Call",
    "Charge",
    "Facts",
    "Fault",
    "Faults",
    "ManualClock",
    "Offered",
    "Rates",
    "Say",
    "Script",
    "Simulator",
    "Turn",
    "block_tokens",
    "by_rules",
    "known",
    "rounds",
    "seeded",
    "turns",
]
