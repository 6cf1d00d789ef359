"""seeds.py TARGET FOLDER: writes the initial corpus of a fuzz target, from files of this repository
and models of ONNX's node tests. Parts of an input are joined by U+001E (parsers/parts.h). Cases that
found a defect are in tests/fuzz/found, by target; where the package tokenizers is there, tokenizers
of every kind are made, too."""

import struct
import sys
import warnings
from json import dumps, loads
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/shakespeare-4m"
VECTORS = ROOT / "tests/tokenizer/vectors"
CHAT = ROOT / "tests/chat"


def joined(*parts):
    return b"\x1e".join(p if isinstance(p, bytes) else p.encode() for p in parts)


def onnx():
    with warnings.catch_warnings():  # some cases divide by zero deliberately
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        for case in load_model_tests(kind="node"):
            yield case.model.SerializeToString()


def receipt():
    for path in (*(ROOT / "tests/golden/receipts").glob("*.json"), ROOT / "src/receipt/example.json"):
        yield path.read_bytes()
    for path in (ROOT / "tests/fuzz/keys").iterdir():
        yield path.read_bytes()


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
            made = loads(kinds.train(kind, training, Path(folder)).read_text())
            yield joined(dumps(made, ensure_ascii=False), "a b", "\u00e9 hello")


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
        yield joined(dumps(Schemas(seed).schema(), ensure_ascii=False), "a walk %d" % seed)
    for text in ('{"regex": "(a|bc)*d{2,3}[^x-z]"}', '{"choice": ["yes", "no"]}', r"^(?:a|\w{1,9})$",
                 '{"tools": [{"name": "f", "parameters": {"$ref": "#"}}]}'):  # fmt: skip
        yield joined(text, "walk")


def template():
    chats = loads((CHAT / "conversations.json").read_text())
    chats = [dumps(c, ensure_ascii=False) for c in chats.values()]
    for i, path in enumerate(sorted((CHAT / "templates").iterdir())):
        yield joined(path.read_text(), chats[i % len(chats)])
        yield path.read_bytes()
    for line in (CHAT / "snippets.txt").read_text().splitlines():
        yield line.encode()
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    named = [{"name": "default", "template": source}, {"name": "tool_use", "template": "{{ tools }}"}]
    for value in (source, named, {"default": source}):
        yield joined(dumps({"chat_template": value, "bos_token": {"content": "<s>"}}), chats[0])


def prompts():
    chats = loads((CHAT / "conversations.json").read_text())
    for chat in chats.values():
        yield dumps(chat, ensure_ascii=False).encode()
        yield joined(dumps(chat["messages"]), dumps(chat.get("tools", [])))
    yield b'{"text": "a"}\n"b"\n\n{"text": 1}\nc'
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
    known = loads((ROOT / "tests/keys/known_keys.json").read_text())
    settings = {k: None for k in known["generation_config.json"]}
    yield joined(config, dumps(settings))
    for line in (ROOT / "tests/families/vectors.jsonl").read_text().splitlines():
        config = loads(line).get("config")
        if config:
            yield joined(dumps(config), generation)


def beside():
    """adapter_config.json, the header of its tensors, modules of sentence-transformers."""
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    header = {
        f"{module}.lora_A.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        f"{module}.lora_B.weight": {"dtype": "F32", "shape": [4, 2], "data_offsets": [24, 56]},
    }
    adapter = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    patterns = {"target_modules": r".*\.q_proj", "use_rslora": True, "rank_pattern": {"q_proj": 2},
                "alpha_pattern": {"layers.0.*": 8}, "layers_to_transform": [0]}  # fmt: skip
    of = "sentence_transformers.models."
    modules = [{"idx": i, "name": str(i), "path": path, "type": of + kind} for i, (path, kind) in
               enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]  # fmt: skip
    pooling = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True, "include_prompt": True}
    prompts = {"prompts": {"query": "q: "}, "default_prompt_name": "query"}
    lines = (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
    configs = [loads(line).get("config", {}) for line in lines]
    sentence = (modules, pooling, {"max_seq_length": 7}, prompts)
    for i, config in enumerate(configs):
        change = patterns if i % 2 else {}
        yield joined(*(dumps(x) for x in (adapter | change, header, *sentence, config)))
    yield joined(dumps(adapter), dumps(header))


def audio():
    samples = bytes(range(48))
    for kind, channels, bits in ((1, 1, 8), (1, 2, 16), (1, 1, 24), (1, 1, 32), (3, 1, 32), (3, 2, 64)):
        width = channels * bits // 8
        form = struct.pack("<HHIIHH", kind, channels, 16000, 16000 * width, width, bits)
        chunks = b"".join(n + struct.pack("<I", len(c)) + c for n, c in
                          ((b"fmt ", form), (b"LIST", b"INFO"), (b"data", samples)))  # fmt: skip
        yield b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks

    import numpy as np

    sys.path.insert(0, str(ROOT / "tests/families/speech"))
    from log_mel import flac, sound

    x = sound(4, 64)
    for kind in ("verbatim", "fixed", "lpc", "raw", "wasted"):
        yield flac([(0, [(kind, x & ~3, 0)])])
    two = [("fixed", x, 0), ("verbatim", x - np.roll(x, 1), 1)]
    yield flac([(0, [("constant", np.full(64, 7), 0)])]) + b"\0"
    yield flac([(8, two)], channels=2)


def form():
    """Content-Type and body."""
    said = 'Content-Disposition: form-data; name="'
    body = f'--b\r\n{said}model"\r\n\r\nm\r\n--b\r\n{said}file"; filename="a.wav"\r\n'
    body += "Content-Type: audio/wav\r\nContent-Transfer-Encoding: binary\r\n\r\n\0\r\n-\r\n--b--\r\n"
    for kind in ("multipart/form-data; boundary=b", 'Multipart/Form-Data;x="\\"" ; boundary="b"'):
        yield joined(kind, body)
    yield joined("multipart/form-data; boundary=--", f'----\r\n{said}a\\"b"; x=y\r\n\r\n\r\n------')


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
        yield dumps({"schema": f"invar-{schema} 1", "computation": of, **rest}).encode()
    files = [{"rfilename": n, "size": 5, "blobId": "a" * 40} for n in
             ("config.json", "tokenizer.json", "model.safetensors.index.json")]  # fmt: skip
    shard = {"rfilename": "s.safetensors", "lfs": {"sha256": "b" * 64, "size": 9}}
    listing = {"sha": "c" * 40, "siblings": [*files, shard]}
    yield joined(dumps(listing), '{"weight_map":{"a":"s.safetensors"}}')


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
        yield bytes([i]) + dumps(body).encode()
    lines = [{"custom_id": f"r{i}", "method": "POST", "url": url, "body": body} for i, (url, body) in
             enumerate((("/v1/chat/completions", bodies[0]), ("/v1/completions", bodies[1]),
                        ("/v1/completions", {"prompt": "a"})))]  # fmt: skip
    lines[2]["invar"] = {"recheck": True}
    yield bytes([len(bodies)]) + "\n".join(map(dumps, lines)).encode()


def json():
    for path in (MODEL / "config.json", CHAT / "conversations.json", ROOT / "src/receipt/example.json"):
        yield path.read_bytes()
    for text in ('{"a": 1, "a": -0.0, "b": [1e400, 1E-5, -0, 18446744073709551616]}', "[[[[]]], {}]",
                 '"\\ud83d\\ude00\\u0000\\/\u00e9\u2028"', "\ufeff[true, false, null]", "[1,]", "01"):  # fmt: skip
        yield text.encode()


def container():
    """A byte that says the kind (container.cc): GGUF files, NumPy's arrays, plans, tables, indexes
    of packed weights."""
    import io

    import numpy as np

    sys.path.insert(0, str(ROOT / "tests/weights"))
    import gguf_files

    config = loads((MODEL / "config.json").read_text())
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
    for row in ("0\t1024\tQ4_0\t64\t1\t256\t0\ta.gguf\tw", "0\t2048\tQ6_K\t0\t2\t256\t2\ta.gguf\tw"):
        yield b"\4invar packed weights 1\n" + row.encode() + b"\n"


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


def seeds(target):
    yield from globals()[target]()
    for path in sorted((ROOT / "tests/fuzz/found" / target).glob("*")):
        yield path.read_bytes()


def main():
    target, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for i, content in enumerate(seeds(target)):
        (folder / f"seed-{i}").write_bytes(content)


if __name__ == "__main__":
    main()
