#!/usr/bin/env python3
"""Small models of the architectures that people use, with random weights, as torch's exporters write them, on the native runtime.
Long because it is a list of 31 models.

real_models.py [--only PATTERN] [--exporter dynamo|legacy] [--keep FOLDER] [--write] [--verbose]

Each model of transformers, or of torch, is exported by both exporters, with dynamic dimensions where the exporter manages, compiled by
`invar compile`, run by `invar infer` and compared with ONNX Runtime (f32) and with the model itself in float64: the largest error
of an element over the largest element of its tensor. It is
  runs      the errors are small, and every instruction set, 1, 2 and 5 threads, and (where it has one) any company in the batch give
            the same bytes
  refused   exit code 3: something in it is not covered, and the message says what
  wrong     another answer, or exit code 2
  crashed   anything else
  no model  the exporter fails
--write renews docs/models.md. Without it the exit code is 1 where any is wrong or crashed. Needs torch, transformers, onnxscript and
onnxruntime. INVAR_BIN: the program (default build/bin/invar)."""

import argparse
import contextlib
import copy
import io
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np
import torch
from torch import nn

logging.disable(logging.WARNING)

ROOT = Path(__file__).resolve().parents[1]
BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
TABLE = ROOT / "docs/models.md"
STATES = ["runs", "refused", "wrong", "crashed", "no model"]
FAR = 1e-3  # an error beyond this is no rounding
WIDE = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, vocab_size=97)
PLACES = dict(max_position_embeddings=64)


class Model:
    """A module, the inputs of one call (name -> tensor), the names of their dynamic dimensions, the names of its outputs."""

    def __init__(self, module, inputs, dims, outputs):
        self.module, self.inputs, self.dims, self.outputs = module.eval(), inputs, dims, outputs


class Call(nn.Module):
    """transformers' module with keyword inputs and plain tensors out."""

    def __init__(self, inner, names, outputs, **fixed):
        super().__init__()
        self.inner, self.names, self.outputs, self.fixed = inner, names, outputs, fixed

    def forward(self, *inputs):
        out = self.inner(**dict(zip(self.names, inputs)), **self.fixed)
        got = tuple(getattr(out, name) for name in self.outputs)
        return got if len(got) > 1 else got[0]


def seeded(make, *args, **kwargs):
    torch.manual_seed(0)
    module = make(*args, **kwargs)
    with torch.no_grad():  # what starts as 0 or 1 hides mistakes
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.02)
        for name, b in module.named_buffers():
            if "running" in name:
                b.add_(torch.rand_like(b) * 0.2)
    return module


def ids(batch, length, vocab=97):
    return (torch.arange(batch * length) * 37 % vocab).reshape(batch, length)


def mask(batch, length):
    return (torch.arange(length) < torch.tensor([[length - 2 * (i % 3)] for i in range(batch)])).long()


BATCH_SEQ = {0: "batch", 1: "seq"}


def text_model(make, config, outputs=("last_hidden_state",), masked=True, **fixed):
    names = ["input_ids"] + ["attention_mask"] * masked
    module = Call(seeded(make, config), names, outputs, **fixed)
    inputs = {"input_ids": ids(3, 11)}
    if masked:
        inputs["attention_mask"] = mask(3, 11)
    return Model(module, inputs, {n: BATCH_SEQ for n in names}, list(outputs))


def causal(name, how={}, **config):
    def f():
        import transformers as t
        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        return text_model(lambda c: t.AutoModelForCausalLM.from_config(c, **how), c, ("logits",), use_cache=False)
    return f


class Step(nn.Module):
    """A step with the keys and values of those before it, given and returned as tensors."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids, mask, *past):
        import transformers as t
        cache = t.DynamicCache(ddp_cache_data=list(zip(past[::2], past[1::2])))
        out = self.inner(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        return (out.logits, *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)))


def step(name, heads, **config):
    def f():
        import transformers as t
        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        inputs = {"input_ids": ids(3, 4), "attention_mask": torch.ones(3, 11, dtype=torch.long)}
        dims = {"input_ids": BATCH_SEQ, "attention_mask": {0: "batch", 1: "past + seq"}}
        for place in (f"{i}.{what}" for i in range(2) for what in ("key", "value")):
            inputs["past." + place], dims["past." + place] = noise(3, heads, 7, 12), {0: "batch", 2: "past"}
        outputs = [n.replace("past", "present") for n in list(inputs)[2:]]
        return Model(Step(seeded(t.AutoModelForCausalLM.from_config, c)), inputs, dims, ["logits", *outputs])
    return f


def encoder(name, model="Model", **config):
    def f():
        import transformers as t
        c = getattr(t, name + "Config")(**{**WIDE, **PLACES, **config})
        return text_model(getattr(t, name + model), c)
    return f


def picture(name, model="Model", outputs=("last_hidden_state",), pixels=32, **config):
    def f():
        import transformers as t
        module = seeded(getattr(t, name + model), getattr(t, name + "Config")(**config))
        x = torch.randn(3, 3, pixels, pixels, generator=torch.Generator().manual_seed(1))
        return Model(Call(module, ["pixel_values"], outputs), {"pixel_values": x}, {"pixel_values": {0: "batch"}}, list(outputs))
    return f


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def t5_decoder():
    import transformers as t
    module = seeded(t.T5ForConditionalGeneration, t.T5Config(d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4, vocab_size=97))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, ids, encoder_hidden_states, encoder_attention_mask):
            x = self.inner.decoder(input_ids=ids, encoder_hidden_states=encoder_hidden_states,
                                   encoder_attention_mask=encoder_attention_mask, use_cache=False).last_hidden_state
            return self.inner.lm_head(x * 48 ** -0.5)
    return Model(Decoder(), {"input_ids": ids(3, 7), "encoder_hidden_states": noise(3, 11, 48), "encoder_attention_mask": mask(3, 11)},
                 {"input_ids": BATCH_SEQ, "encoder_hidden_states": {0: "batch", 1: "source"},
                  "encoder_attention_mask": {0: "batch", 1: "source"}}, ["logits"])


WHISPER = dict(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=80,
               decoder_ffn_dim=80, vocab_size=97, num_mel_bins=20, max_source_positions=30, max_target_positions=40, pad_token_id=0,
               bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


def whisper_encoder():
    import transformers as t
    module = Call(seeded(t.WhisperModel, t.WhisperConfig(**WHISPER)).encoder, ["input_features"], ["last_hidden_state"])
    return Model(module, {"input_features": noise(3, 20, 60)}, {"input_features": {0: "batch"}}, ["last_hidden_state"])


def whisper_decoder():
    import transformers as t
    module = seeded(t.WhisperModel, t.WhisperConfig(**WHISPER)).decoder
    return Model(Call(module, ["input_ids", "encoder_hidden_states"], ["last_hidden_state"], use_cache=False),
                 {"input_ids": ids(3, 7), "encoder_hidden_states": noise(3, 30, 48)},
                 {"input_ids": BATCH_SEQ, "encoder_hidden_states": {0: "batch"}}, ["last_hidden_state"])


def clip():
    import transformers as t
    text = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, vocab_size=97, max_position_embeddings=32,
                bos_token_id=0, eos_token_id=96, projection_dim=24)
    vision = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8,
                  projection_dim=24)
    module = seeded(t.CLIPModel, t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24))
    names, outputs = ["input_ids", "pixel_values", "attention_mask"], ["logits_per_image", "text_embeds", "image_embeds"]
    return Model(Call(module, names, outputs),
                 {"input_ids": ids(3, 11), "pixel_values": noise(2, 3, 32, 32), "attention_mask": torch.ones(3, 11, dtype=torch.long)},
                 {"input_ids": {0: "texts", 1: "seq"}, "pixel_values": {0: "images"}, "attention_mask": {0: "texts", 1: "seq"}}, outputs)


class UNet(nn.Module):
    """Two levels, group norm, transposed convolution and interpolation on the way up."""

    def __init__(self):
        super().__init__()

        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b),
                                 nn.ReLU())
        self.one, self.two, self.middle = block(3, 16), block(16, 24), block(24, 32)
        self.up, self.right, self.left = nn.ConvTranspose2d(32, 24, 2, stride=2), block(48, 24), block(40, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.one(x)
        b = self.two(nn.functional.max_pool2d(a, 2))
        c = self.up(self.middle(nn.functional.avg_pool2d(b, 2)))
        d = self.right(torch.cat([b, c], 1))
        e = nn.functional.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(self.left(torch.cat([a, e], 1)))


def unet():
    return Model(seeded(UNet), {"image": noise(3, 3, 24, 24)}, {"image": {0: "batch"}}, ["mask"])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(97, 20)
        self.lstm = nn.LSTM(20, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 5)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


def lstm():
    return Model(seeded(Recurrent), {"input_ids": ids(3, 11)}, {"input_ids": {0: "batch"}}, ["logits"])


T5 = dict(d_model=48, d_kv=12, d_ff=80, num_layers=2, num_heads=4)
FEW = dict(num_key_value_heads=2)
MOE = dict(**FEW, num_experts_per_tok=2)
BATCHED = dict(experts_implementation="batched_mm")  # the others have sizes that depend on data
MODELS = {
    "gpt2": causal("GPT2", n_embd=48, n_layer=2, n_head=4, n_positions=64),
    "llama": causal("Llama", **FEW),
    "llama-3-rope": causal("Llama", **FEW, rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                                          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
    "mistral": causal("Mistral", **FEW, sliding_window=6),
    "qwen2": causal("Qwen2", **FEW),
    "qwen3": causal("Qwen3", **FEW, head_dim=16),
    "qwen3-moe": causal("Qwen3Moe", BATCHED, **MOE, head_dim=16, num_experts=4, moe_intermediate_size=32),
    "mixtral": causal("Mixtral", BATCHED, **MOE, num_local_experts=4),
    "gemma2": causal("Gemma2", **FEW, head_dim=16, sliding_window=6, query_pre_attn_scalar=16),
    "gemma3": causal("Gemma3Text", **FEW, head_dim=16, sliding_window=6, query_pre_attn_scalar=16),
    "phi3": causal("Phi3", **FEW, pad_token_id=0, eos_token_id=1, bos_token_id=1),
    "smollm3": causal("SmolLM3", **FEW, pad_token_id=0),
    "gpt2-past": step("GPT2", 4, n_embd=48, n_layer=2, n_head=4, n_positions=64),
    "llama-past": step("Llama", 2, **FEW),
    "qwen3-past": step("Qwen3", 2, **FEW, head_dim=12),
    "opt": causal("OPT", ffn_dim=80, word_embed_proj_dim=48),
    "bert": encoder("Bert"),
    "roberta": encoder("Roberta", pad_token_id=0),
    "distilbert": encoder("DistilBert", dim=48, hidden_dim=80, n_layers=2, n_heads=4),
    "mpnet": encoder("MPNet"),
    "deberta": encoder("Deberta", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=16),
    "deberta-v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm",
                          share_att_key=True, position_biased_input=False),
    "t5-encoder": encoder("T5", "EncoderModel", **T5),
    "t5-decoder": t5_decoder,
    "whisper-encoder": whisper_encoder,
    "whisper-decoder": whisper_decoder,
    "vit": picture("ViT", hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8),
    "dinov2": picture("Dinov2", hidden_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8),
    "clip": clip,
    "resnet": picture("ResNet", "ForImageClassification", ("logits",), embedding_size=12, hidden_sizes=[16, 24, 32, 40], depths=[1, 2, 1, 1]),
    "convnext": picture("ConvNext", "ForImageClassification", ("logits",), hidden_sizes=[12, 16, 24, 32], depths=[1, 1, 2, 1]),
    "efficientnet": picture("EfficientNet", "ForImageClassification", ("logits",), width_coefficient=0.25, depth_coefficient=0.25,
                            hidden_dim=320),
    "unet": unet,
    "lstm": lstm,
}
EXPORTERS = ["dynamo", "legacy"]


@contextlib.contextmanager
def silence():
    """The exporters print what they like; one of them not through Python."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept), os.close(nothing)


def export(model, path, exporter, kinds=("dynamic", "static")):
    """-> which dimensions are dynamic: "dynamic", or "static" where the exporter manages no other."""
    inputs = tuple(model.inputs.values())
    names = list(model.inputs)
    common = dict(input_names=names, output_names=model.outputs, verbose=False)
    last = None
    for dynamic in kinds:
        try:
            with warnings.catch_warnings(), torch.no_grad(), silence():
                warnings.simplefilter("ignore")
                if exporter == "legacy":
                    axes = {"dynamic_axes": model.dims} if dynamic == "dynamic" else {}
                    torch.onnx.export(model.module, inputs, str(path), dynamo=False, opset_version=17, **axes, **common)
                else:
                    named = {dim: torch.export.Dim(dim, min=2, max=2048) for at in model.dims.values() for dim in at.values() if "+" not in dim}
                    named |= {dim: torch.export.Dim.AUTO for at in model.dims.values() for dim in at.values() if "+" in dim}
                    dims = [{at: named[dim] for at, dim in model.dims.get(n, {}).items()} for n in names]
                    dims = {"dynamic_shapes": {"inputs": tuple(dims)} if isinstance(model.module, Call) else
                             {"ids": dims[0], "mask": dims[1], "past": tuple(dims[2:])} if isinstance(model.module, Step) else tuple(dims)} \
                        if dynamic == "dynamic" else {}
                    torch.onnx.export(model.module, inputs, str(path), dynamo=True, external_data=False, **dims, **common)
            return dynamic
        except Exception as error:  # the exporters raise what they like
            last = error
    raise RuntimeError(f"{type(last).__name__}: {str(last).strip().splitlines()[0] if str(last).strip() else ''}")


class Wide(torch.overrides.TorchFunctionMode):
    """Models that compute parts in float32 on purpose compute them in float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x
        name = getattr(function, "__name__", "")
        if name == "float":
            return args[0].double()
        return function(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def exact(model):
    """What the model computes in float64."""
    wide = copy.deepcopy(model.module).double()
    inputs = [x.double() if x.is_floating_point() else x for x in model.inputs.values()]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), Wide():
            out = wide(*inputs)
    finally:
        torch.set_default_dtype(torch.float32)
    return [x.numpy() for x in (out if isinstance(out, tuple) else (out,))]


def error_of(found, true):
    if any(f.shape != t.shape for f, t in zip(found, true)):
        return float("inf")
    worst = 0.0
    for f, t in zip(found, true):
        gap = np.abs(f.astype(np.float64) - t).max(initial=0)
        worst = max(worst, float(gap) / max(float(np.abs(t).max(initial=0)), 1e-30)) if np.isfinite(gap) else float("inf")
    return worst


def execute(*args):
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, timeout=300)
    return done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout


def saved(folder, arrays):
    folder.mkdir(exist_ok=True)
    args = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))
        args += ["--input", f"{name}={folder / f'{name}.npy'}"]
    return args


def isas():
    flags = set(re.search(r"(?:flags|Features)\s*:(.*)", Path("/proc/cpuinfo").read_text())[1].split())
    return [isa for isa, needs in {"scalar": {"fma"}, "avx2": {"avx2", "fma", "f16c"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
                                   "neon": {"asimd"}}.items() if needs <= flags]


def run(plan, folder, arrays, *options):
    """-> ({name: array}, message of a failure with its code)."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    code, said, _ = execute("infer", plan, *saved(folder / "in", arrays), "--tensors-output", out, *options)
    return ({p.stem: np.load(p) for p in out.iterdir()}, None) if code == 0 else ({}, (code, said))


def same(a, b):
    return all(a[n].tobytes() == b[n].tobytes() for n in a)


def bits(plan, folder, arrays, found, dims):
    """What changes the bytes; empty: nothing."""
    for options in [["--isa", isa, "--threads", 1] for isa in isas()] + [["--threads", n] for n in (2, 5)]:
        again, failed = run(plan, folder, arrays, *options)
        if failed or not same(found, again):
            return " ".join(map(str, options))
    if any(d.get(0) != "batch" for d in dims.values()):
        return ""
    alone, failed = run(plan, folder, {n: a[1:2] for n, a in arrays.items()})
    return "the batch" if failed or any(found[n][1:2].tobytes() != alone[n].tobytes() for n in found) else ""


def smaller(model):
    """The inputs cut to other sizes along their dynamic dimensions."""
    sizes = {}
    for n, dims in model.dims.items():
        for d, dim in dims.items():
            if dim not in sizes and "+" not in dim:
                sizes[dim] = model.inputs[n].shape[d] - 1 - len(sizes)
    size = {dim: sum(sizes[part] for part in dim.split(" + ")) for dims in model.dims.values() for dim in dims.values()}
    return {n: x[tuple(slice(size[model.dims[n][d]] if d in model.dims.get(n, {}) else None) for d in range(x.dim()))].contiguous()
            for n, x in model.inputs.items()}


def other_sizes(model, plan, folder, session):
    """The error for other sizes, measured on ONNX Runtime, which computes the same graph."""
    arrays = {n: x.numpy() for n, x in smaller(model).items() if n in {i.name for i in session.get_inputs()}}
    found, failed = run(plan, folder, arrays)
    return float("inf") if failed else error_of([found[n] for n in model.outputs], session.run(model.outputs, arrays))


def failure(code, said):
    lines = [line for line in said.splitlines() if line.strip()]
    return {3: "refused", 2: "wrong"}.get(code, "crashed"), "\n".join(lines) or f"exit code {code}"


def judge(model, folder, exporter, true, kinds=("dynamic", "static")):
    """-> dict: state, message, shape (dynamic or static), errors of Invar and ONNX Runtime."""
    path = folder / "model.onnx"
    try:
        kind = export(model, path, exporter, kinds)
    except RuntimeError as error:
        return dict(state="no model", message=str(error))
    arrays = {n: x.numpy() for n, x in model.inputs.items()}
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    arrays = {n: a for n, a in arrays.items() if n in {i.name for i in session.get_inputs()}}
    peer = error_of(session.run(model.outputs, arrays), true)
    result = dict(kind=kind, peer=peer)
    code, said, _ = execute("compile", path)
    if code:
        state, message = failure(code, said)
        return dict(result, state=state, message=message)
    found, failed = run(folder / "plan.invar", folder, arrays)
    if failed:
        state, message = failure(*failed)
        return dict(result, state=state, message=message)
    error = error_of([found[n] for n in model.outputs], true)
    result["error"] = error
    if not error <= max(FAR, 4 * peer):
        return dict(result, state="wrong", message=f"error {error:.1e}, ONNX Runtime's {peer:.1e}")
    if kind == "dynamic" and not other_sizes(model, folder / "plan.invar", folder, session) <= FAR:
        return dict(result, state="wrong", message="another answer for other sizes")
    changed = bits(folder / "plan.invar", folder, arrays, found, model.dims if kind == "dynamic" else {"": {}})
    if changed:
        return dict(result, state="wrong", message=f"{changed} changes the bytes")
    return dict(result, state="runs", message="")


def table(results):
    """docs/models.md."""
    import onnxruntime
    import transformers
    count = Counter(r["state"] for r in results.values())
    text = [
        "# Models: what runs", "",
        f"Small models with random weights (two layers, 48 wide, or as many channels), made with transformers {transformers.__version__} and exported by both",
        f"exporters of torch {torch.__version__.split('+')[0]}, on the native runtime (tools/real_models.py --write makes this page). \"runs\" means: compiled as exported, equal",
        "bytes for every instruction set, for 1, 2 and 5 threads and for an element of the batch alone, and right for other sizes along dynamic dimensions.",
        "Errors are the largest of an element over the largest element of its tensor, against the model itself computed in float64; beside ours that of",
        f"ONNX Runtime {onnxruntime.__version__} in f32. Static: the exporter manages no dynamic dimensions.", "",
        "| | exports |", "|---|---:|", *(f"| {s} | {count[s]} |" for s in STATES if count[s]), "",
        "| model | exporter | | error | ONNX Runtime's |", "|---|---|---|---:|---:|"]
    for (name, exporter), r in results.items():
        said = " ".join(r["message"].split())
        said = r["kind"] if r["state"] == "runs" else f"{r['state']}: " + (said if len(said) < 200 else said[:200] + " ...").replace("|", "\\|")
        error, peer = (f"{r[key]:.1e}" if key in r else "" for key in ("error", "peer"))
        text.append(f"| {name} | {exporter} | {said} | {error} | {peer} |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name this regular expression finds")
    parser.add_argument("--exporter", choices=EXPORTERS)
    parser.add_argument("--static", action="store_true", help="export without dynamic dimensions")
    parser.add_argument("--keep", type=Path, help="leave the models in this folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print all that is refused in a model, not the first lines")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in [n for n in MODELS if re.search(args.only, n)]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = MODELS[name]()
                true = exact(model)
            for exporter in [args.exporter] if args.exporter else EXPORTERS:
                folder = (args.keep or Path(scratch)) / f"{name}.{exporter}"
                folder.mkdir(parents=True, exist_ok=True)
                r = results[name, exporter] = judge(model, folder, exporter, true, ["static"] if args.static else ["dynamic", "static"])
                said = r["message"].splitlines()
                print(f"{name} {exporter} {r.get('kind', '')}: {r['state']}",
                      f"{r['error']:.1e} (ONNX Runtime {r['peer']:.1e})" if "error" in r else "",
                      "\n  ".join(said if args.verbose else said[:3]), flush=True)
    count = Counter(r["state"] for r in results.values())
    print(", ".join(f"{count[s]} {s}" for s in STATES))
    if args.write and not args.only and not args.exporter:
        TABLE.write_text(table(results))
    return 1 if count["wrong"] + count["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
