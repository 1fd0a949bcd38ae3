"""Compile fixed replies into a tiny GGUF file that a real llama.cpp server then "generates", always the same.

The model is a Markov chain: attention and feed-forward are zero, so the next token depends on the current one alone. Each
reply is cut into tokens that occur only once in all replies; the chat template picks the token that a reply starts from.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.llama import scripts as scripts_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.llama.scripts import Script

TEMPLATE = Path(__file__).with_name("template.jinja")
EMBEDDING, FEED_FORWARD, HEADS, CONTEXT = 256, 32, 4, 8192
SPECIAL = (b"<unk>", b"<s>", b"</s>", b"<|im_start|>", b"<|im_end|>")
UNKNOWN, BEGIN, END = 0, 1, 4
SPACE = "\u2581"
"""How the tokenizer writes a space."""


def scripted_model(replies: Sequence[Script] = scripts_module.SCRIPTS) -> Path:
    """The model's file, made when it is not there yet for exactly these replies."""
    recipe = [Path(__file__).read_bytes(), TEMPLATE.read_bytes(), repr(replies).encode()]
    digest = hashlib.sha256(b"\0".join(recipe)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"lyma-scripted-models-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{digest}.gguf"
    if not file.exists():
        unfinished = folder / f"{digest}.{os.getpid()}"
        build(replies, unfinished)
        unfinished.replace(file)
    return file


def build(replies: Sequence[Script], file: Path) -> None:
    """Write the GGUF file. Raises ValueError where two replies are too alike to tell their tokens apart."""
    vocabulary = Vocabulary(replies)
    write(file, vocabulary, TEMPLATE.read_text(encoding="utf-8").replace("@START@", start_of(replies)))


class Vocabulary:
    """All tokens, and which one follows which."""

    def __init__(self, replies: Sequence[Script]) -> None:
        from gguf import TokenType

        self.tokens: list[bytes] = []
        self.types: list[Any] = []
        self.scores: list[float] = []
        self.follows: dict[int, int] = {}
        for word in SPECIAL:
            self.add(word, TokenType.UNKNOWN if word == SPECIAL[UNKNOWN] else TokenType.CONTROL)
        starts = [self.add(b"<|s%d|>" % number, TokenType.CONTROL) for number in range(len(replies))]
        for byte in range(256):
            self.add(b"<0x%02X>" % byte, TokenType.BYTE)
        for character in (SPACE, *map(chr, range(33, 127))):
            self.add(character.encode(), TokenType.NORMAL, -1000.0 - len(self.tokens))
        for start, reply in zip(starts, replies, strict=True):
            self.chain(start, reply)

    def add(self, token: bytes, kind: Any, score: float = 0.0) -> int:
        self.tokens.append(token)
        self.types.append(kind)
        self.scores.append(score)
        return len(self.tokens) - 1

    def chain(self, start: int, reply: Script) -> None:
        from gguf import TokenType

        chunks = distinct_chunks(reply.text, set(self.tokens))
        numbers = [self.add(chunk, TokenType.NORMAL, -2000.0 - len(self.tokens)) for chunk in chunks]
        chain = [start, *numbers, numbers[0] if reply.loop else END]
        self.follows.update(pairwise(chain))


def distinct_chunks(text: str, used: set[bytes]) -> list[bytes]:
    """Cut `text` at its words into pieces that differ from each other and from `used`."""
    chunks: list[bytes] = []
    piece = ""
    for word in re.findall(r"\s*\S+|\s+", text):
        piece += word.replace(" ", SPACE)
        if piece.encode() not in used:
            chunks.append(piece.encode())
            used.add(piece.encode())
            piece = ""
    if piece:
        tail = (chunks.pop() if chunks else b"") + piece.encode()
        if tail in used:
            raise ValueError(f"the end of this reply occurs elsewhere: {text!r}")
        chunks.append(tail)
    return chunks


def start_of(replies: Sequence[Script]) -> str:
    """The part of the chat template that picks a reply."""
    cases = "".join(
        f"{{%- {'elif' if number else 'if'} {reply.when} %}}{{{{- '<|s{number}|>' }}}}"
        for number, reply in enumerate(replies)
        if reply.when
    )
    return cases + f"{{%- else %}}{{{{- '<|s{len(replies) - 1}|>' }}}}{{%- endif %}}"


def write(file: Path, vocabulary: Vocabulary, template: str) -> None:
    import gguf
    import numpy as np

    size = len(vocabulary.tokens)
    codes = np.random.default_rng(7).choice([-1.0, 1.0], size=(size, EMBEDDING)).astype(np.float32)
    output = np.zeros((size, EMBEDDING), np.float32)
    for token, successor in vocabulary.follows.items():
        output[successor] += 0.25 * codes[token]
    writer = gguf.GGUFWriter(file, "llama")
    describe(writer, size)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.types)
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(template)
    for name, tensor in tensors(codes, output).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe(writer: Any, vocabulary_size: int) -> None:
    import gguf

    writer.add_name("scripted")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_vocab_size(vocabulary_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def tensors(codes: Any, output: Any) -> dict[str, Any]:
    """One block whose attention and feed-forward add nothing."""
    import numpy as np

    def zeros(*shape: int) -> Any:
        return np.zeros(shape, np.float32)

    ones = np.ones(EMBEDDING, np.float32)
    block = {f"blk.0.{name}.weight": ones for name in ("attn_norm", "ffn_norm")}
    block |= {f"blk.0.attn_{name}.weight": zeros(EMBEDDING, EMBEDDING) for name in ("q", "k", "v", "output")}
    block |= {f"blk.0.ffn_{name}.weight": zeros(FEED_FORWARD, EMBEDDING) for name in ("gate", "up")}
    block["blk.0.ffn_down.weight"] = zeros(EMBEDDING, FEED_FORWARD)
    return {"token_embd.weight": codes, "output_norm.weight": ones, "output.weight": output, **block}
