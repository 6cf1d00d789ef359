"""python3 -m files.made_whisper FOLDER: a made Whisper whose windows have a second, and
FOLDER/talk.wav, a recording. Equal names give equal bytes."""

import hashlib
import json
import struct
import sys
from pathlib import Path

from made_tokenizer import NAMES, tokenizer
from make_checkpoint import Table, write_safetensors

SAMPLES = 40000
POSITIONS = 50  # of the encoder; a time for each, and one for the end
SPECIAL = [
    "<|end|>",
    "<|start|>",
    "<|en|>",
    "<|de|>",
    "<|transcribe|>",
    "<|translate|>",
    "<|none|>",
]
TIMES = [f"<|{i / 50:.2f}|>" for i in range(POSITIONS + 1)]
END = len(NAMES)
START, BEGIN = END + 1, END + len(SPECIAL)  # the token of the first time
CONFIG = {
    "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
    "vocab_size": BEGIN + len(TIMES), "num_mel_bins": 20, "d_model": 32, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 44, "decoder_ffn_dim": 40, "max_source_positions": POSITIONS,
    "max_target_positions": 64, "bos_token_id": END, "eos_token_id": END, "pad_token_id": 0,
    "decoder_start_token_id": START, "is_encoder_decoder": True,
}  # fmt: skip
SETTINGS = {
    "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START,
    "lang_to_id": {"<|en|>": START + 1, "<|de|>": START + 2},
    "task_to_id": {"transcribe": START + 3, "translate": START + 4},
    "is_multilingual": True, "no_timestamps_token_id": BEGIN - 1,
    "max_initial_timestamp_index": 20, "begin_suppress_tokens": [2, END],
    "suppress_tokens": [0, 1, *range(START, BEGIN - 1)], "return_timestamps": False,
}  # fmt: skip


def shapes():
    hidden = CONFIG["d_model"]

    def norm(at):
        yield f"{at}.weight", hidden
        yield f"{at}.bias", hidden

    def linear(at, rows, columns, bias=True):
        yield f"{at}.weight", rows, columns
        if bias:
            yield f"{at}.bias", rows

    def attention(at):
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from linear(f"{at}.{part}", hidden, hidden, part != "k_proj")
        yield from norm(f"{at}_layer_norm")

    for side, wide in (("encoder", 44), ("decoder", 40)):
        at = f"model.{side}"
        if side == "encoder":
            for name, channels in (("conv1", CONFIG["num_mel_bins"]), ("conv2", hidden)):
                yield f"{at}.{name}.weight", hidden, channels, 3
                yield f"{at}.{name}.bias", hidden
            yield f"{at}.embed_positions.weight", POSITIONS, hidden
        else:
            yield f"{at}.embed_tokens.weight", CONFIG["vocab_size"], hidden
            yield f"{at}.embed_positions.weight", CONFIG["max_target_positions"], hidden
        for layer in range(2):
            here = f"{at}.layers.{layer}"
            yield from attention(f"{here}.self_attn")
            if side == "decoder":
                yield from attention(f"{here}.encoder_attn")
            yield from linear(f"{here}.fc1", wide, hidden)
            yield from linear(f"{here}.fc2", hidden, wide)
            yield from norm(f"{here}.final_layer_norm")
        yield from norm(f"{at}.layer_norm")


def tensors():
    """Elements in [2^-3, 2^-1), of norms and of the end in [0.5, 2), so that logits are far
    apart."""
    found = {}
    for name, *shape in shapes():
        t = found[name] = Table(1, name, "F32", *shape)
        top = 0x3F if name.endswith("norm.weight") else None
        t.data[3::4] = bytes(top or (b & 0x80) | 0x3E for b in t.data[3::4])
        if name.endswith("embed_tokens.weight"):
            for i in range(4 * END * shape[1] + 3, 4 * (END + 1) * shape[1], 4):
                t.data[i] |= 0x3F
    return found


def recording(samples):
    """Tones that glide and noise, by turns loud and silent."""
    noise, phase, out = hashlib.shake_128(b"noise").digest(samples), 0, []
    for i in range(samples):
        phase = (phase + 300 + i // 9 % 2400) % 65536
        loud = (0, 3, 1, 2)[i // 2500 % 4]
        out.append((abs(phase - 32768) - 16384) * loud // 3 + (noise[i] - 128) * loud * 20)
    return out


def write_wav(path, samples):
    data = struct.pack(f"<{len(samples)}h", *samples)
    form = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data))
    path.write_bytes(b"RIFF" + struct.pack("<I", len(chunks) + len(data)) + chunks + data)


def make(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors())
    file = tokenizer()
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    for i, name in enumerate([*SPECIAL, *TIMES], END):
        file["added_tokens"].append({"id": i, "content": name, **flags, "special": i < BEGIN})
        file["model"]["vocab"][name] = i
    file["post_processor"] = None
    for name, value in {
        "config": CONFIG, "generation_config": SETTINGS, "tokenizer": file,
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    write_wav(folder / "talk.wav", recording(SAMPLES))


if __name__ == "__main__":
    make(sys.argv[1])
