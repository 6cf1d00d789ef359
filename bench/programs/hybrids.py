#!/usr/bin/env python3
"""Decoding and prompts of hybrid models on the CPU, against llama.cpp on as many threads, in turns.

    hybrids.py make FOLDER --llama-cpp SOURCES [--only TEXT]
    hybrids.py run FOLDER [--invar PROGRAM] [--threads N] [--rounds N] [--only TEXT]
    hybrids.py peer FILE --threads N [--processor]

`make` needs torch, transformers and the sources of llama.cpp, which those of PyPI's
llama-cpp-python have in vendor/: it writes checkpoints of random weights in bf16 with the shapes of
MODELS, and converts each by llama.cpp's own classes to GGUF, bf16 and f32. `run` needs the package
llama_cpp. It times `invar bench model`, fp32 and exact16, and the peer with both types of weights
in alternation: a prompt of 256 tokens, then 128 new ones. A row has milliseconds a token, the best
of the rounds, and the peer's time over ours. `peer` is one measurement of llama.cpp, in JSON,
of processor time with --processor.

The peer rounds activations to bf16 where weights are bf16, and does not where they are f32. Our
fp32 never does."""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROMPT, NEW = 256, 128

MODELS = {  # the shapes of published models, with fewer layers and smaller vocabularies
    "lfm2": {  # LFM2 350M
        "architectures": ["Lfm2ForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 16, "num_key_value_heads": 8, "block_ff_dim": 6656,
        "intermediate_size": 6656, "block_auto_adjust_ff_dim": True, "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0, "conv_L_cache": 3, "norm_eps": 1e-5,
        "layer_types": ["conv", "conv", "full_attention", "conv"] * 2, "vocab_size": 16384,
    },
    "granitemoehybrid": {  # Granite 4.0 H 350M
        "architectures": ["GraniteMoeHybridForCausalLM"], "hidden_size": 768,
        "num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 4,
        "num_local_experts": 0, "num_experts_per_tok": 0, "intermediate_size": 2048,
        "shared_intermediate_size": 2048, "mamba_n_heads": 48, "mamba_d_head": 32,
        "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_expand": 2,
        "layer_types": (["mamba"] * 3 + ["attention"]) * 2, "position_embedding_type": "nope",
        "vocab_size": 16384,
    },
    "falcon_h1": {  # Falcon-H1 0.5B
        "architectures": ["FalconH1ForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
        "intermediate_size": 2048, "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64,
        "mamba_d_state": 128, "mamba_n_groups": 1, "vocab_size": 16384,
    },
    "mamba2": {  # Mamba-2 370M
        "architectures": ["Mamba2ForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_heads": 32, "head_dim": 64, "state_size": 128, "n_groups": 1, "expand": 2,
        "vocab_size": 16384,
    },
    "qwen3_5_text": {  # Qwen3.5 0.8B
        "architectures": ["Qwen3_5ForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
        "intermediate_size": 3584, "linear_num_key_heads": 16, "linear_num_value_heads": 16,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "vocab_size": 16384,
    },
    "qwen3_next": {  # Qwen3-Next with fewer and smaller experts
        "architectures": ["Qwen3NextForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128,
        "intermediate_size": 2048, "linear_num_key_heads": 8, "linear_num_value_heads": 16,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "num_experts": 16,
        "num_experts_per_tok": 4, "moe_intermediate_size": 256,
        "shared_expert_intermediate_size": 512, "vocab_size": 16384,
    },
}  # fmt: skip


def write_checkpoint(folder, name):
    """config.json and random weights of bf16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    folder.mkdir(parents=True)
    settings = {
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **MODELS[name],
    }
    config = AutoConfig.for_model(name, **settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    path = folder / "config.json"  # with the names of layers that published files have
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **settings}, indent=1))


def convert(folder, sources, kind):
    """By the peer's own classes; the vocabulary is none, for no text is read."""
    sys.path[:0] = [str(sources), str(sources / "gguf-py")]
    import gguf
    import torch
    from conversion import get_model_class

    def no_vocabulary(self):
        self.gguf_writer.add_tokenizer_model("no_vocab")
        self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])

    config = json.loads((folder / "config.json").read_bytes())
    made = get_model_class(config["architectures"][0])
    made.set_vocab, made.no_mtp = no_vocabulary, True
    with torch.inference_mode():
        types = {"bf16": gguf.LlamaFileType.MOSTLY_BF16, "f32": gguf.LlamaFileType.ALL_F32}
        made(folder, types[kind], folder / f"{kind}.gguf").write()


def command_make(args):
    for name in MODELS:
        if args.only in name:
            write_checkpoint(args.folder / name, name)
            for kind in ("bf16", "f32"):
                convert(args.folder / name, args.llama_cpp, kind)
            print(name, flush=True)


def command_peer(args):
    """Seconds a token of a prompt and of decoding, the best of three runs."""
    clock = time.process_time if args.processor else time.perf_counter
    import llama_cpp.llama_cpp as peer

    silent = peer.llama_log_callback(lambda level, text, data: None)
    peer.llama_log_set(silent, None)
    peer.llama_backend_init()
    model = peer.llama_model_load_from_file(
        str(args.file).encode(), peer.llama_model_default_params()
    )
    if not model:
        sys.exit(f"hybrids.py: llama.cpp does not load {args.file}")
    settings = peer.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = 512
    settings.n_threads = settings.n_threads_batch = args.threads
    context = peer.llama_init_from_model(model, settings)

    def step(count):
        tokens = (ctypes.c_int32 * count)(*[1] * count)
        assert peer.llama_decode(context, peer.llama_batch_get_one(tokens, count)) == 0
        peer.llama_synchronize(context)

    best = [float("inf")] * 2
    for _ in range(3):
        peer.llama_memory_clear(peer.llama_get_memory(context), True)
        begin = clock()
        step(PROMPT)
        middle = clock()
        for _ in range(NEW):
            step(1)
        end = clock()
        best = [min(best[0], (middle - begin) / PROMPT), min(best[1], (end - middle) / NEW)]
    print(json.dumps(best))


def printed(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def ours(args, folder, numerics):
    found = printed(
        [args.invar, "bench", "model", "--model-name", folder, "--numerics", numerics,
         "--threads", str(args.threads), "--progress", "none", "--json"]
    )  # fmt: skip
    seconds = {row["op"]: row["seconds"] for row in found["rows"]}
    return [seconds["prefill"], seconds["decode"]]


def command_run(args):
    print(f"{'model':18}{'':10}{'prompt':>22}{'decoding':>22}   ms a token; ours, peer, ratio")
    this = [sys.executable, __file__, "peer", "--threads", str(args.threads)]
    for folder in sorted(f for f in args.folder.iterdir() if args.only in f.name):
        best = {}
        for _ in range(args.rounds):
            for numerics, weights in (("fp32", "bf16"), ("exact16", "f32")):
                for name, found in (
                    (numerics, ours(args, folder, numerics)),
                    (weights, printed([*this, folder / f"{weights}.gguf"])),
                ):
                    best[name] = [*map(min, found, best.get(name, found))]
        for numerics in ("fp32", "exact16"):
            for weights in ("bf16", "f32"):
                cells = "".join(
                    f"{a * 1e3:8.3f}{b * 1e3:8.3f}{b / a:6.2f}"
                    for a, b in zip(best[numerics], best[weights])
                )
                print(f"{folder.name:18}{numerics + '/' + weights:14}{cells}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("make")
    make.add_argument("folder", type=Path)
    make.add_argument("--llama-cpp", type=Path, required=True)
    make.set_defaults(command=command_make)
    run = commands.add_parser("run")
    run.add_argument("folder", type=Path)
    run.add_argument("--invar", default=os.environ.get("INVAR_BIN", "build/bin/invar"))
    run.add_argument("--rounds", type=int, default=3)
    run.set_defaults(command=command_run)
    peer = commands.add_parser("peer")
    peer.add_argument("file", type=Path)
    peer.add_argument("--processor", action="store_true")
    peer.set_defaults(command=command_peer)
    for parsed in (run, peer):
        parsed.add_argument("--threads", type=int, default=1)
    for parsed in (make, run):
        parsed.add_argument("--only", default="")
    args = parser.parse_args()
    args.command(args)
