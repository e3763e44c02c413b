"""What a request asks for and a model may not take: clipped or dropped, and always said."""

from __future__ import annotations

from wayline.contracts.models import Effort
from wayline.llm.model import ModelRequest

BY_STRENGTH: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def output_tokens(request: ModelRequest, notes: list[str]) -> int:
    """Return the answer's token limit, clipped to the model's output limit."""
    limit = request.card.output_limit
    if request.max_output_tokens > limit:
        notes.append(f"output limit clipped to {limit}: the model writes no more at once")
    return min(request.max_output_tokens, limit)


def temperature(request: ModelRequest, notes: list[str], *, thinking: bool = False) -> float | None:
    """Return the wanted temperature where the model accepts one."""
    if request.temperature is None:
        return None
    if not request.card.temperature:
        notes.append("temperature dropped: the model takes none")
        return None
    if thinking:
        notes.append("temperature dropped: the model takes none while it thinks")
        return None
    return request.temperature


def effort(request: ModelRequest, notes: list[str], *, known: tuple[Effort, ...]) -> Effort | None:
    """Return the wanted effort or the nearest below it; `known` are the efforts where the card lists none."""
    wanted = request.effort
    if wanted is None:
        return None
    if request.card.reasoning == "none":
        if wanted != "none":
            notes.append("effort dropped: the model does not reason")
        return None
    offered: list[Effort] = [each for each in BY_STRENGTH if each in (request.card.efforts or known)]
    if not offered:
        notes.append("effort dropped: the model's card lists no efforts")
        return None
    below: list[Effort] = [each for each in offered if BY_STRENGTH.index(each) <= BY_STRENGTH.index(wanted)]
    found: Effort = below[-1] if below else offered[0]
    if found != wanted:
        notes.append(f"effort {wanted} became {found}: the model has {', '.join(offered)}")
    return found
