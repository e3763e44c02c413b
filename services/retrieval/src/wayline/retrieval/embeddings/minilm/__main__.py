"""Embed for another process until it closes its end: a line of JSON with texts in, their vectors as floats out."""

from __future__ import annotations

import json
import os
import sys

from wayline.retrieval.embeddings.minilm.model import MiniLM

LOWEST_PRIORITY = 19


def main() -> None:
    """Answer each line of standard input."""
    os.nice(LOWEST_PRIORITY)
    model = MiniLM(threads=int(sys.argv[1]))
    for line in sys.stdin.buffer:
        vectors = model.vectors(json.loads(line))
        sys.stdout.buffer.write(vectors.astype("<f4").tobytes())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
