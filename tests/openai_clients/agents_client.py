"""Asks an agent through OpenAI's agents SDK, and prints what came of each question. Runs with that package's Python."""

import asyncio
import json
import os

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


@function_tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"wet in {city}"


async def main() -> None:
    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="x", max_retries=0)
    told = {}
    for name, kind in (("chat", OpenAIChatCompletionsModel), ("responses", OpenAIResponsesModel)):
        model = kind(model="helper", openai_client=client)
        plain = Agent(name="plain", model=model)
        told[f"agents {name}"] = (await Runner.run(plain, "Is it so?")).final_output
        equipped = Agent(name="equipped", model=model, tools=[weather])
        told[f"agents {name} tools"] = (await Runner.run(equipped, "What is the weather?")).final_output
        streamed = Runner.run_streamed(equipped, "What is the weather?")
        async for _ in streamed.stream_events():
            pass
        told[f"agents {name} tools stream"] = streamed.final_output
    print(json.dumps(told))


asyncio.run(main())
