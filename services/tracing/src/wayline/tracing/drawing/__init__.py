"""What each event of a job's log makes of its spans, steps and ledger entries."""

from wayline.tracing.drawing.canvas import Canvas
from wayline.tracing.drawing.meanings import draw

__all__ = ["Canvas", "draw"]
