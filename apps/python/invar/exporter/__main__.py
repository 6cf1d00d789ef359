"""python3 -m invar.exporter: a checkpoint of transformers -> a folder with model.onnx, for `invar
export --with-transformers`, which checks it. export.json in the folder says what was made, or why
nothing was."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

PACKAGES = ("torch", "transformers", "onnx", "onnxscript")
CHECKED = 70  # positions that are compared: more than a chunk of a recurrence has
REPORT, LOGITS = "export.json", "check.f32"
SETTINGS = ("*.json", "*.jinja", "tokenizer.model", "*.tiktoken")
NOT_COPIED = ("*.index.json", REPORT)


class Refusal(Exception):
    """One line for the user, and the exit code."""

    def __init__(self, code, line):
        super().__init__(line)
        self.code = code


def versions():
    """Of the packages that make the graph, as receipts bind them."""
    from importlib.metadata import PackageNotFoundError, version

    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        raise Refusal(
            2, f"{sys.executable} lacks {', '.join(missing)}: pip install {' '.join(PACKAGES)}"
        )
    return ", ".join(found)


def one_line(error):
    """The kind of an error and the first line of what it says. A failed pass of the converter has a
    cause; torch's line on a violated constraint says nothing to a user."""
    while type(error).__name__ == "PassError" and error.__cause__ is not None:
        error = error.__cause__
    kind = getattr(error, "error_type", None)
    if getattr(kind, "name", None) == "CONSTRAINT_VIOLATION":
        return "the trace holds for one number of tokens alone: its code makes a constant of that"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def module_of(error):
    """The deepest file of a model that an error passed through, as "modeling_x.py:12"."""
    at, place = error.__traceback__, ""
    while at:
        file = os.path.basename(at.tb_frame.f_code.co_filename)
        if file.startswith(("modeling_", "modular_")):
            place = f"{file}:{at.tb_lineno}"
        at = at.tb_next
    return place


def loaded(folder):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if getattr(config, "is_encoder_decoder", False):
            raise Refusal(
                3,
                f"{folder}: it has an encoder, which would be left out; optimum-cli export onnx "
                "takes both (docs/guide/models.md)",
            )
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True,
            experts_implementation="batched_mm",
        )  # fmt: skip
    except (ValueError, KeyError, OSError, ImportError, TypeError, RuntimeError) as error:
        raise Refusal(2, f"{folder}: transformers does not load it: {one_line(error)}") from None
    return model.eval()


def checked_ids(config):
    """Tokens that are no special ones, the same for every model of one vocabulary."""
    special = {getattr(config, f"{n}_token_id", None) for n in ("pad", "eos", "bos")}
    plain = [i for i in range(min(config.vocab_size, 5000)) if i not in special]
    most = getattr(config, "max_position_embeddings", None) or CHECKED
    most = CHECKED if most < 0 else min(CHECKED, most)  # XLNet says -1
    return [plain[(i * i * 31 + i * 17 + 5) % len(plain)] for i in range(most)]


def export(folder, output, remember, ours):
    import torch

    from invar.exporter import graph, program, trace

    torch.manual_seed(0)
    made_by = f"invar {ours}, {versions()}"
    model = loaded(folder)
    ids = checked_ids(model.config.get_text_config())
    try:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
        made = graph.convert(program.traced(model, remember))
        nodes = graph.place_states(made.model, remember)
        if remember and not nodes:
            raise trace.NotTraceable("its attention is not that of AttentionInterface")
    except trace.NotTraceable as error:
        raise Refusal(3, f"{type(model).__name__}: {error}") from None
    except Exception as error:  # torch raises many kinds
        where = module_of(error)
        raise Refusal(
            3, f"{type(model).__name__}{' at ' + where if where else ''}: {one_line(error)}"
        ) from None
    made.model.metadata_props["invar.exporter"] = made_by
    if remember:
        made.model.metadata_props["invar.states"] = str(nodes)
    made.save(str(output / "model.onnx"), external_data=True)
    (output / LOGITS).write_bytes(logits.contiguous().numpy().astype("<f4").tobytes())
    copy_settings(Path(folder), output)
    return {
        "exporter": made_by,
        "model": type(model).__name__,
        "states": remember,
        "rooms": nodes,
        "tokens": ids,
    }


def copy_settings(folder, output):
    left_out = {file for pattern in NOT_COPIED for file in folder.glob(pattern)}
    for pattern in SETTINGS:
        for file in folder.glob(pattern):
            if file not in left_out:
                shutil.copyfile(file, output / file.name)


def main():
    parser = argparse.ArgumentParser(prog="python3 -m invar.exporter", description=__doc__)
    parser.add_argument("--model", help="checkpoint folder")
    parser.add_argument("--output", required=True, type=Path, help="folder that gets the files")
    parser.add_argument("--version", required=True, help="of Invar")
    parser.add_argument("--plain", action="store_true", help="a graph without states")
    parser.add_argument(
        "--versions", action="store_true", help="say what would export, and no more"
    )
    given = parser.parse_args()
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    code, report = 0, {}
    try:
        if given.versions:
            report = {"exporter": versions()}
        else:
            report = export(given.model, given.output, not given.plain, given.version)
    except Refusal as refusal:
        code, report = refusal.code, {"error": str(refusal), "code": refusal.code}
    (given.output / REPORT).write_text(json.dumps(report, indent=1) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
