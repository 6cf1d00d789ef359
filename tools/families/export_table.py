#!/usr/bin/env python3
"""Writes docs/reference/exported-models.md: small random models of the causal types of transformers
that no recipe describes, through `invar export --with-transformers`, `run` and `verify`. Needs the
built program and package, torch, transformers, onnx and onnxscript.

INVAR_BIN=build/bin/invar PYTHONPATH=build/python export_table.py [MODEL_TYPE ...]: these, else
all"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from make_vectors import Float64
from tiny_models import KINDS, config_of, model_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))
from generate import native_types  # noqa: E402

OUT = ROOT / "docs/reference/exported-models.md"
PROMPT, NEW, ALLOWED = "ROMEO: What light through yonder window breaks?", 64, 2e-6
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
HEAD = """# Models by export

`tools/families/export_table.py` writes this page. Each line is a small model with random weights of
a causal type of transformers {version}. `invar export --with-transformers` exports it with torch
{torch} ([models](../guide/models.md)). The export compares its logits with those of torch, and a
prompt in one call with the same prompt in several.

- *Seconds* are those of the export, on two cores that did other work, without the import of torch.
- *Past* is `states` where the graph has keys, values and recurrent states as inputs and outputs. It
  is `shown` where it has none, and the compiler shows that they may be kept
  ([plan.20](../../spec/plan.md)), else `prefix`: each token is computed over its whole prefix.
- *Error* is the largest difference of logits from transformers in float64, over the largest logit;
  *float32* is that of transformers in float32.
- *Greedy* says how many of {new} tokens are those of transformers in float32.
- *Verified* says whether `invar verify` recomputes the receipt.
- *Native* says whether a recipe describes the type, too, which `invar run` then takes
  ([model-types.md](model-types.md)).

{count} types run, {alone} of which no recipe describes.

| `model_type` | seconds | past | error | float32 | greedy | verified | native |
|---|---:|---|---:|---:|---:|---|---|
"""


def serve(path):
    """Runs invar.exporter in a fork of this process for each preloaded_python.py that asks."""
    from invar.exporter import __main__ as exporter

    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    while True:
        asked, _ = server.accept()
        text, files, _, _ = socket.recv_fds(asked, 65536, 2)
        child = os.fork()
        if child == 0:
            os.dup2(files[0], 1), os.dup2(files[1], 2)
            sys.argv = json.loads(text)[1:]  # -m invar.exporter ...
            code = 70
            try:
                code = exporter.main()
            finally:
                os._exit(code)
        for file in files:
            os.close(file)
        asked.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
        asked.close()


def preload(folder):
    """Starts the server as a process of its own, which has imported what an export imports."""
    import onnxscript  # noqa: F401
    import torch.onnx._internal.exporter._core  # noqa: F401

    path = str(folder / "exporter")
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        serve(path)
    os.environ["INVAR_PRELOADED"] = path
    while not os.path.exists(path):
        time.sleep(0.05)
    return child


def invar(*arguments, folder):
    command = [os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar")), *map(str, arguments)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr.strip().splitlines()[-1:]


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def exact_logits(model, ids):
    """In float64; also what a model computes in float32 whatever its type, where it lets us."""
    try:
        with Float64():
            return logits_of(model, ids).numpy()
    except RuntimeError:
        return logits_of(model, ids).numpy()


def greedy(model, ids):
    """What transformers appends, each token by the whole prefix."""
    made = []
    for _ in range(NEW):
        made.append(int(logits_of(model, ids + made)[-1].argmax()))
    return made


def measure(kind, folder):
    """-> a row of the table, or what went wrong as a text."""
    model = model_of(config_of(kind))
    model.save_pretrained(folder / "model")
    for name in TOKENIZER:
        shutil.copyfile(ROOT / "models/shakespeare-4m" / name, folder / "model" / name)
    began, made = time.time(), folder / "made"
    where = ("--model-name", folder / "model", "--output", made)
    python = ROOT / "tools/families/preloaded_python.py"
    code, _, said = invar(
        "export", "--with-transformers", "--python", python, *where, folder=folder
    )
    seconds = time.time() - began
    if code:
        return f"export ends with {code}: {said}"
    receipt = folder / "receipt.json"
    asked = (
        "--prompt-text",
        PROMPT,
        "--no-generation-config",
        "--no-do-sample",
        "--max-new-tokens",
        NEW,
        "--json",
    )
    code, out, said = invar(
        "run", "--model-name", made, *asked, "--receipt-path", receipt, folder=folder
    )
    if code:
        return f"run ends with {code}: {said}"
    ours = json.loads(out)["tokens"]
    verified = invar("verify", receipt, "--model-name", made, folder=folder)[0] == 0
    ids = json.loads(
        invar("encode", "--model-name", made, "--prompt-text", PROMPT, folder=folder)[1]
    )
    (plan,) = (folder / "cache/invar").glob("tasks/*/plan.invar")
    invar(
        "infer",
        plan,
        "--tokens",
        ",".join(map(str, ids)),
        "--logits-output",
        folder / "l",
        folder=folder,
    )
    rows = np.fromfile(folder / "l", "<f4").reshape(len(ids), -1)
    model = (
        type(model)
        .from_pretrained(
            folder / "model",
            attn_implementation="eager",
            experts_implementation="batched_mm",
            dtype=torch.float32,
        )
        .eval()
    )
    float32, theirs = logits_of(model, ids).numpy(), greedy(model, ids)
    exact = exact_logits(model.double(), ids)
    largest = np.abs(exact).max()
    states = json.loads((made / "export.json").read_text())["states"]
    past = "states" if states else "shown" if "\nstate " in plan.read_text() else "prefix"
    errors = [float(np.abs(x - exact).max() / largest) for x in (rows, float32)]
    same = sum(a == b for a, b in zip(ours, theirs, strict=False))
    return (
        kind,
        f"{seconds:.0f}",
        past,
        *(f"{e:.1e}" for e in errors),
        str(same),
        "yes" if verified else "no",
    )


def rows_of_page():
    found = re.findall(r"^\| `([^`]+)` \| (.*) \|$", OUT.read_text() if OUT.exists() else "", re.M)
    return {kind: (kind, *rest.split(" | ")[:6]) for kind, rest in found if kind != "model_type"}


def write_page(rows, version):
    said = native_types()
    native = {kind: "yes" if said.get(kind) == "native" else "no" for kind in rows}
    text = HEAD.format(
        version=version,
        torch=torch.__version__.split("+")[0],
        new=NEW,
        count=len(rows),
        alone=list(native.values()).count("no"),
    )
    lines = (
        f"| `{kind}` | {' | '.join((*row[1:], native[kind]))} |\n"
        for kind, row in sorted(rows.items())
    )
    OUT.write_text(text + "".join(lines))


def main():
    warnings.filterwarnings("ignore")
    import transformers

    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        server = preload(Path(folder))
        rows = rows_of_page() if sys.argv[1:] else {}
        for kind in sys.argv[1:] or KINDS:
            place = Path(folder) / kind
            place.mkdir()
            try:
                row = measure(kind, place)
            except Exception as error:  # of transformers: the type is not measured
                row = f"{type(error).__name__}: {str(error)[:200]}"
            print(kind, *(row if isinstance(row, tuple) else [row]), flush=True)
            rows.pop(kind, None)
            if (
                isinstance(row, tuple)
                and float(row[3]) <= max(ALLOWED, 2 * float(row[4]))
                and row[6] == "yes"
            ):
                rows[kind] = row
            shutil.rmtree(place)
            write_page(rows, transformers.__version__)
        os.kill(server, 15)


if __name__ == "__main__":
    main()
