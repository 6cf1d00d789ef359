"""The blocks of Python in the documents of the package run as they stand."""

import re
import sys

import numpy as np
import pytest
from conftest import BUILD, MODEL, ROOT
from conftest import invar as program
from onnx import TensorProto, helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402

PAGES = [
    "docs/guide/python.md",
    "docs/guide/training.md",
    "docs/guide/training-receipts.md",
    "docs/guide/migration.md",
    "docs/reference/python.md",
]
# Blocks that show what another library, or a script of one's own, has.
ELSEWHERE = (
    "# before\n",
    "    Trainer(model, arguments, train_dataset=data).train()",
    "torch.cuda.make_graphed_callables(",
    "invar.reproducible.enable()",  # for the rest of the process
)


def blocks_of(page):
    text = (ROOT / page).read_text()
    return [b for b in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)]


def linear_model(path):
    """A model of two inputs, [batch, 3] and [batch, 3], of whole numbers."""
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", 3])
    graph = helper.make_graph(
        [helper.make_node("Mul", ["input_ids", "attention_mask"], ["y"])],
        "g",
        [value("input_ids"), value("attention_mask")],
        [value("y")],
    )
    opset = [helper.make_opsetid("", 21)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    )


def network():
    return invar.nn.Sequential(invar.nn.Linear(8, 16), invar.nn.ReLU(), invar.nn.Linear(16, 4))


def units_loss(model, x, y):
    return invar.ops.cross_entropy(model(x), y, reduction="none")


def names_of(page):
    """What a reader of the page has at hand."""
    features, labels = torch.randn(32, 8), torch.arange(32) % 4
    found = {
        "np": np,
        "torch": torch,
        "invar": invar,
        "model": network(),
        "Network": network,
        "loss": units_loss,
        "batches": [(features, labels)],
        "images": features,
        "classes": labels,
        "features": features,
        "labels": labels,
        "ids": np.array([[1, 2, 3]]),
        "mask": np.array([[1, 1, 0]]),
        "positions": np.array([[0, 1, 2]]),
        "x": features,
        "weight": torch.ones(8),
        "__name__": "document",
    }
    if page == "docs/guide/migration.md":
        found["train"] = lambda model: model(features).sum().backward()
        found["input_tensor"] = features
    if page == "docs/guide/training-receipts.md":
        found["batches"] = [(features, labels)]
        found["optim"] = invar.optim
    if page == "docs/reference/python.md":
        found["weight"], found["bias"] = torch.randn(4, 8), torch.zeros(4)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("documents")
    linear_model(made / "model.onnx")
    (made / "models").mkdir()
    (made / "models/shakespeare-4m").symlink_to(MODEL)
    program("export", "--model-name", MODEL, "-o", made / "exported")
    return made


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    torch.manual_seed(0)
    names, ran = names_of(page), 0
    for i, block in enumerate(blocks_of(page)):
        if any(text in block for text in ELSEWHERE):
            continue
        if "past_key_values" in block or 'startswith("past")' in block:  # of a decoder
            names["program"] = invar.compile("exported/model.onnx")
        exec(compile(block, f"{page}, block {i}", "exec"), names)
        ran += 1
    assert ran, "the page has no block that runs"


def test_a_training_of_the_guide_makes_a_receipt(folder, monkeypatch, tmp_path):
    """The function of the guide, in a file as it says."""
    (block,) = (b for b in blocks_of("docs/guide/training-receipts.md") if "def training(" in b)
    script = tmp_path / "script.py"
    script.write_text(
        "import invar, torch\nfrom invar import ops, optim\n"
        "Network = lambda: invar.nn.Linear(8, 4)\n"
        "batches = lambda step: (torch.ones(4, 8), torch.arange(4))\n"
        "loss = lambda model, x, y: ops.cross_entropy(model(x), y, reduction='none')\n"
        + block.replace("steps=1000", "steps=2")
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["script.py", "--save", "run.json"])
    exec(
        compile(script.read_text(), str(script), "exec"),
        {"__name__": "__main__", "__file__": str(script)},
    )
    assert invar.training.verify("run.json").holds


def test_hashes_of_the_readme_are_those_of_the_examples():
    rows = re.compile(r"^\| `(\w+)(?:\.py)?` \|(?: trained weights \|)? `([0-9a-f]{64})` \|$", re.M)
    shown = dict(rows.findall((ROOT / "README.md").read_text()))
    page = (ROOT / "examples/README.md").read_text().splitlines()
    trained = dict(rows.findall("\n".join(line for line in page if "| trained weights |" in line)))
    assert shown == trained and set(shown) == {"train_cnn", "train_llama", "finetune_lora"}
