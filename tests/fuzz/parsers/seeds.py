"""seeds.py TARGET FOLDER: writes the initial corpus of a fuzz target of text parsers, from files of
this repository. Parts of an input are joined by U+001E (parts.h). Cases that found a defect are in
tests/fuzz/parsers/found, by target; where the package tokenizers is there, tokenizers of every kind
are made, too."""

import json
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "models/shakespeare-4m"
VECTORS = ROOT / "tests/tokenizer/vectors"
CHAT = ROOT / "tests/chat"


def joined(*parts):
    return b"\x1e".join(p if isinstance(p, bytes) else p.encode() for p in parts)


def tokenizer():
    config = (MODEL / "tokenizer_config.json").read_text()
    yield joined((MODEL / "tokenizer.json").read_text(), config, "Don't \u00e9 <|end_of_text|>")
    for path in VECTORS.iterdir():
        if path.suffix != ".jsonl":
            yield path.read_bytes()
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        from tokenizer import kinds
    except ImportError:
        return
    import tempfile

    training = ["The cafe\u0301 don't 12345 \u4e2d\u6587 hello hello the the"]
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds.KINDS:
            if kind in kinds.NEED_SENTENCEPIECE or kind in kinds.TIKTOKEN:
                continue
            made = json.loads(kinds.train(kind, training, Path(folder)).read_text())
            yield joined(json.dumps(made, ensure_ascii=False), "a b", "\u00e9 hello")


def pattern():
    sys.path.insert(0, str(ROOT / "tests"))
    for text in (ROOT / "src/prompt/files/tiktoken.cc").read_text().split('R"(')[1:]:
        yield joined(text.split(')"')[0], "Don't stop 12345\n\n  \u00e9\u4e2d")
    for text in (r"(?i:ab|c)+?", r"[\p{L}&&[^a-z]]{2,5}+", r"(?=a)(?!b)\w*$", r"(?>a|ab)c",
                 r"^\A\z[^\s\d]", r"\x41\u00e9\p{^Lu}", r"(a*|b)*?c", r"((((a?){3}){3}){3})"):  # fmt: skip
        yield joined(text, "aaab abc\nABC \u00c9")


def grammar():
    sys.path.insert(0, str(ROOT / "tests/grammar"))
    from probe import Schemas

    for seed in range(60):
        yield joined(json.dumps(Schemas(seed).schema(), ensure_ascii=False), "a walk %d" % seed)
    for text in ('{"regex": "(a|bc)*d{2,3}[^x-z]"}', '{"choice": ["yes", "no"]}', r"^(?:a|\w{1,9})$",
                 '{"tools": [{"name": "f", "parameters": {"$ref": "#"}}]}'):  # fmt: skip
        yield joined(text, "walk")


def template():
    chats = json.loads((CHAT / "conversations.json").read_text())
    chats = [json.dumps(c, ensure_ascii=False) for c in chats.values()]
    for i, path in enumerate(sorted((CHAT / "templates").iterdir())):
        yield joined(path.read_text(), chats[i % len(chats)])
        yield path.read_bytes()
    for line in (CHAT / "snippets.txt").read_text().splitlines():
        yield line.encode()


def prompts():
    chats = json.loads((CHAT / "conversations.json").read_text())
    for chat in chats.values():
        yield json.dumps(chat, ensure_ascii=False).encode()
        yield joined(json.dumps(chat["messages"]), json.dumps(chat.get("tools", [])))
    yield b'"A"\n{"prompt": "B"}\n{"messages": [{"role": "user", "content": "\\u00e9"}]}\n\n7\n'


def checkpoint():
    config, generation = (
        (MODEL / f).read_text() for f in ("config.json", "generation_config.json")
    )
    index = (MODEL / "model.safetensors.index.json").read_text()
    weights = (MODEL / "model-00001-of-00003.safetensors").read_bytes()
    header = weights[8 : 8 + struct.unpack("<Q", weights[:8])[0]]
    small = (
        b'{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"format":"pt"}}'
    )
    yield joined(config, generation)
    yield joined("{}", "{}", header)
    yield joined("{}", "{}", small, '{"weight_map":{"a":"s.safetensors"}}')
    yield joined("{}", "{}", header, index)
    known = json.loads((ROOT / "tests/keys/known_keys.json").read_text())
    settings = {k: None for k in known["generation_config.json"]}
    yield joined(config, json.dumps(settings))
    for line in (ROOT / "tests/families/vectors.jsonl").read_text().splitlines():
        config = json.loads(line).get("config")
        if config:
            yield joined(json.dumps(config), generation)


def exchange():
    zero = "0" * 64
    of = {"receipt": zero, "weights": zero, "program": zero, "plan": zero, "tokens": zero,
          "numerics": "invar-1", "positions": 2}  # fmt: skip
    value = {"value": 1, "node": 0, "operation": "gather-1", "origin": "", "dtype": "f32",
             "shape": [1, 2, 1], "root": zero}  # fmt: skip
    operand = {"value": 0, "first": 0, "rows": ["00000000"], "proof": [zero]}
    for schema, rest in (
        ("trace", {"values": [value]}),
        ("rows", {"value": 1, "rows": [zero, zero]}),
        ("values", {"value": 1, "row": 0, "dtype": "f32", "result": "00000000",
                    "operands": [operand]}),
        ("objection", {"step": 0, "logits": "00000000", "proof": [zero]}),
        ("question", {"round_number": 1, "asks": "rows", "value": 1, "row": -1,
                      "answered": {"a": [zero], "b": []}}),
    ):  # fmt: skip
        yield json.dumps({"schema": f"invar-{schema} 1", "computation": of, **rest}).encode()
    files = [{"rfilename": n, "size": 5, "blobId": "a" * 40} for n in
             ("config.json", "tokenizer.json", "model.safetensors.index.json")]  # fmt: skip
    shard = {"rfilename": "s.safetensors", "lfs": {"sha256": "b" * 64, "size": 9}}
    listing = {"sha": "c" * 40, "siblings": [*files, shard]}
    yield joined(json.dumps(listing), '{"weight_map":{"a":"s.safetensors"}}')


def call():
    said = [{"role": "user", "content": "a"}]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    bodies = (
        {"messages": said, "tools": [tool], "n": 2, "logprobs": True, "top_logprobs": 3, "stream": True},
        {"prompt": [[1, 2], [3]], "logit_bias": {"5": -1.5}, "stop": ["a"], "seed": 7, "max_tokens": 3},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}], "max_tokens": 9,
         "system": "s", "tools": [{"name": "f", "input_schema": {}}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], "store": False},
        {"input": ["a", "b"], "encoding_format": "base64"},
        {"prompt": "a", "add_special_tokens": False},
    )  # fmt: skip
    for i, body in enumerate(bodies):
        yield bytes([i]) + json.dumps(body).encode()


def container():
    """A byte that says the kind (container.cc): GGUF files, NumPy's arrays, plans, tables."""
    import io

    import numpy as np

    sys.path.insert(0, str(ROOT / "tests/weights"))
    import gguf_files

    config = json.loads((MODEL / "config.json").read_text())
    keys = gguf_files.llama_metadata(config)
    words = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a", "b", "<s>"],
             "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.token_type": [1, 1, 3]}  # fmt: skip
    for kind in ("F32", "Q4_0", "Q6_K"):
        _, numbers, size = gguf_files.TYPES[kind]
        rows = {"token_embd.weight": (kind, [1, 256], bytes(256 // numbers * size))}
        yield b"\0" + gguf_files.file_bytes(keys | words, rows)
    yield b"\0" + gguf_files.file_bytes({"general.architecture": "llama"}, {}, version=2)
    for array in (np.arange(6, dtype="<f4").reshape(2, 3), np.array(True), np.zeros((0, 2), "<i8"),
                  np.arange(3, dtype="<f2"), np.asfortranarray(np.eye(2)), np.arange(2, dtype=">i4")):  # fmt: skip
        out = io.BytesIO()
        np.save(out, array)
        yield b"\1" + out.getvalue()
    examples = (ROOT / "spec/plan.md").read_text().split("```")[1::2]
    yield from (b"\2" + text.lstrip("\n").encode() for text in examples if "invar-plan 1" in text)

    for text in ("a,b\n1,2\n", 'a,"b ""c"""\r\n1.5,"x,\ny"\r\n', "a\n\n-inf\n1e999", "\ufeffa\n1"):
        yield b"\3" + text.encode()


def http():
    host = "Host: localhost\r\n"
    for text in (
        f"GET / HTTP/1.1\r\n{host}\r\n",
        f"POST /a?b HTTP/1.1\r\n{host}Content-Length: 3\r\nExpect: 100-continue\r\n\r\n\x1eabc",
        f"POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\x1e0\r\n\r\n",
        f"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n{host}a: b\r\n c\r\n\r\n",
        f"HEAD / HTTP/1.1\r\n{host}Connection: close\r\nOrigin: http://localhost\r\n\r\n",
    ):
        yield text.encode()


def main():
    target, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted((ROOT / "tests/fuzz/parsers/found" / target).glob("*"))
    for i, content in enumerate([*globals()[target](), *(p.read_bytes() for p in found)]):
        (folder / f"seed-{i}").write_bytes(content)


if __name__ == "__main__":
    main()
