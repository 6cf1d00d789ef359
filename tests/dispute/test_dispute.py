"""`invar trace`, `diff`, `answer` and `dispute`: files between two sides and a judge. Roots and
row digests are read a second time by receipt_oracle.py."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import MODEL, ROOT, SHARDS, invar, refused
from receipt_oracle import merkle_root, put, reseal

RECEIPT = ROOT / "tests/golden/romeo.receipt.json"
HERE = ("--model-name", MODEL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Paths of what one side traces: the whole, the rows and a row of the logits and of a
    product."""
    folder = tmp_path_factory.mktemp("traces")
    trace = folder / "trace.json"
    invar("trace", RECEIPT, *HERE, "-o", trace)
    values = json.loads(trace.read_text())["values"]
    product = next(v["value"] for v in values if v["operation"].startswith("matmul"))
    paths = {"trace": trace, "product": product, "logits": values[-1]["value"]}
    for name in ("product", "logits"):
        paths[name + " rows"] = folder / (name + " rows.json")
        invar("trace", RECEIPT, *HERE, "--rows", paths[name], "-o", paths[name + " rows"])
    paths["values"] = folder / "values.json"
    invar("trace", RECEIPT, *HERE, "--values", f"{product}:40", "-o", paths["values"])
    return paths


def read(path):
    return json.loads(path.read_text())


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def sha(text):
    return hashlib.sha256(bytes.fromhex(text)).hexdigest()


def test_commitments_are_what_the_specification_says(files):
    trace, receipt = read(files["trace"]), read(RECEIPT)
    root = {v["value"]: v["root"] for v in trace["values"]}
    for name in ("product", "logits"):
        rows = read(files[name + " rows"])["rows"]
        assert len(rows) == trace["computation"]["positions"] == 66
        assert merkle_root([bytes.fromhex(r) for r in rows]).hex() == root[files[name]]
    # A row digest of the logits is the commitment of the receipt (trace.2).
    steps = len(receipt["output"]["tokens"])
    assert read(files["logits rows"])["rows"][-steps:] == receipt["output"]["logits"]
    values = read(files["values"])
    assert sha(values["result"]) == read(files["product rows"])["rows"][40]
    tokens = (receipt["input"]["tokens"] + receipt["output"]["tokens"])[:-1]
    fed = b"".join(t.to_bytes(4, "little") for t in tokens)
    assert trace["computation"]["tokens"] == hashlib.sha256(fed).hexdigest()


@pytest.mark.parametrize("how", [("--isa", "reference"), ("--threads", 1, "--prefill-chunk", 7)])
def test_a_trace_does_not_depend_on_the_machine(files, how, tmp_path):
    invar("trace", RECEIPT, *HERE, *how, "-o", tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes() == files["trace"].read_bytes()
    assert invar("diff", files["trace"], tmp_path / "t.json").out == b"EQUAL\n"
    refused("trace", RECEIPT, *HERE, "--device", "cuda", code=3, names=["on the CPU alone"])


def test_first_difference_step_by_step(files, tmp_path):
    trace = read(files["trace"])
    at = next(i for i, v in enumerate(trace["values"]) if v["value"] == files["product"])
    for i in (at, at + 5):
        trace["values"][i]["root"] = "0" * 64
    text = invar("diff", files["trace"], written(tmp_path / "t.json", trace), code=1).text
    assert trace["values"][at]["operation"] in text and "layers.0.self_attn.q_proj" in text
    assert f"--rows {files['product']}" in text and "does not conform" in text

    rows = read(files["product rows"])
    rows["rows"][40] = rows["rows"][50] = "0" * 64
    text = invar("diff", files["product rows"], written(tmp_path / "r.json", rows), code=1).text
    assert "position  40" in text and f"--values {files['product']}:40" in text

    values = read(files["values"])
    values["result"] = values["result"][:16] + "0000803f" + values["result"][24:]
    done = invar("diff", files["values"], written(tmp_path / "v.json", values), "--json", code=1)
    found = {f["what"]: f["how"] for f in done.json()["findings"]}
    assert found["element"] == "2" and found["b"] == "3f800000 (1)"
    assert "operands are equal" in done.json()["cause"]
    sides = [files["values"], tmp_path / "v.json"]
    for a, b in (sides, sides[::-1]):
        done = invar("diff", a, b, "--receipt", RECEIPT, *HERE, code=1)
        assert f"cause     {tmp_path / 'v.json'}: its element" in done.text
        assert "by the reference kernel" in done.text
    values["operands"][0]["rows"][0] = values["operands"][0]["rows"][0][:-8]
    (
        written(tmp_path / "v.json", values),
        written(tmp_path / "w.json", values | {"result": "0" * 2048}),
    )
    short = ("diff", tmp_path / "v.json", tmp_path / "w.json", "--receipt", RECEIPT, *HERE)
    refused(*short, names=["v.json: operands[0]: not the rows 40 to 40"])
    refused("diff", *sides, *HERE, names=["--receipt"])


def test_two_receipts(tmp_path):
    receipt = read(RECEIPT)
    changes = {
        ("output", "tokens", 3): (7, "output.tokens[3]", "forged"),
        ("output", "logits", 5): ("0" * 64, "output.logits[5]", "step      5"),
        ("program", "numerics"): ("invar-0", "program.numerics", "numerics version"),
        ("model", "config"): ("0" * 64, "model.config", "checkpoint"),
        ("input", "seed"): ("9", "input.seed", "another question"),
    }
    for path, (value, field, cause) in changes.items():
        other = written(tmp_path / "other.json", reseal(put(receipt, path, value)))
        text = invar("diff", RECEIPT, other, code=1).text
        assert field in text and cause in text
    other = written(tmp_path / "other.json", put(receipt, ("output", "text"), "forsooth"))
    text = invar("diff", RECEIPT, other, code=1).text
    assert "output.text" in text and "contradicts itself" in text
    assert invar("diff", RECEIPT, RECEIPT).out == b"EQUAL\n"


def test_where_two_answers_part(tmp_path):
    """Texts of the tokens, and the margin of their logits as `infer` computes them."""
    receipt = read(RECEIPT)
    tokens = receipt["output"]["tokens"]
    changed = reseal(put(receipt, ("output", "tokens", 3), 7))
    other = written(tmp_path / "other.json", changed)
    text = invar("diff", RECEIPT, other, *HERE, code=1).text
    plan = tmp_path / "task"
    invar("export", "--model-name", MODEL, "-o", plan)
    invar("compile", plan / "model.onnx")
    fed = ",".join(map(str, receipt["input"]["tokens"] + tokens[:3]))
    invar("infer", plan / "plan.invar", "--tokens", fed, "--logits-output", tmp_path / "l.npy")
    row = np.load(tmp_path / "l.npy")[-1]
    said = {}
    for token in (tokens[3], 7):
        decoded = invar("decode", "--model-name", MODEL, "--tokens", token, "--json").json()["text"]
        said[token] = f'{token} "{decoded}"' if decoded.isprintable() else f"{token} "
    assert f"tokens    step 3: {said[tokens[3]]} and {said[7]}" in text
    margin = text.split("  margin    here token ")[1].split("\n")[0]
    numbers = [np.float32(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", margin)]
    assert numbers == [row[tokens[3]], row[7], abs(row[tokens[3]] - row[7])]
    assert "tokens are drawn" in margin
    json_of = invar("diff", RECEIPT, other, *HERE, "--json", code=1).json()
    assert {"tokens", "margin"} <= {f["what"] for f in json_of["findings"]}
    # Without the model the step and the ids alone; where this machine differs, its own choice.
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "none")}
    text = invar("diff", RECEIPT, other, code=1, env=env).text
    assert f"tokens    step 3: {tokens[3]} and 7" in text and "--model-name" in text
    assert f"and {said[tokens[3]]}" in invar("diff", other, *HERE, code=1).text
    longer = put(receipt, ("output", "tokens"), tokens[:-1])
    longer = reseal(put(longer, ("output", "logits"), receipt["output"]["logits"][:-1]))
    text = invar("diff", RECEIPT, written(tmp_path / "l.json", longer), code=1).text
    assert "margin" not in text


def test_a_receipt_and_this_machine(tmp_path):
    receipt = read(RECEIPT)
    assert invar("diff", RECEIPT, *HERE).out == b"EQUAL\n"
    forged = written(
        tmp_path / "forged.json", reseal(put(receipt, ("output", "logits", 5), "0" * 64))
    )
    assert f"invar diff {forged}" in invar("verify", forged, *HERE, code=1).text
    text = invar("diff", forged, *HERE, code=1).text
    assert "step      5" in text and "the other side" in text
    last = len(receipt["output"]["tokens"]) - 1
    forged = written(tmp_path / "forged.json", reseal(put(receipt, ("output", "tokens", last), 7)))
    text = invar("diff", forged, *HERE, code=1).text
    assert f"step      {last}" in text and "token does not follow" in text


def test_other_weights(files, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    data = bytearray((model / SHARDS[1]).read_bytes())
    data[-2] ^= 1
    (model / SHARDS[1]).write_bytes(data)
    invar("trace", RECEIPT, "--model-name", model, "-o", tmp_path / "t.json")
    for a, b in ((files["trace"], tmp_path / "t.json"), (tmp_path / "t.json", files["trace"])):
        assert "other weights" in invar("diff", a, b, code=1).text
    assert "model.tensors" in invar("diff", RECEIPT, "--model-name", model, code=1).text
    text = invar("diff", MODEL, model, code=1).text
    name = re.search(r"  tensors   1 of 47 differ: (\S+)\n", text)[1]
    assert "other weights" in text and name.startswith("model.layers.") and "model.name" not in text
    run = ("run", "--model-name", model, "--prompt-text", "ROMEO:", "--max-new-tokens", 64)
    invar(*run, "--receipt-path", tmp_path / "r.json")
    assert f"1 of 47 differ: {name}" in invar("diff", RECEIPT, tmp_path / "r.json", code=1).text
    assert invar("diff", MODEL, MODEL).out == b"EQUAL\n"
    refused("diff", MODEL, RECEIPT, names=["romeo.receipt.json: no model"])
    refused("diff", MODEL, MODEL, "--receipt", RECEIPT, names=["--receipt"])
    done = invar("dispute", tmp_path, "--receipt", RECEIPT, "--model-name", model, code=1)
    assert "not the receipt's model" in done.text


class Case:
    """A folder of a dispute. `change` is what party b does to its honest answers."""

    def __init__(self, folder, receipt=RECEIPT, change=None, option=()):
        self.folder, self.receipt, self.change, self.option = folder, receipt, change, option
        (folder / "a").mkdir(parents=True)
        (folder / "b").mkdir()

    def judge(self, *options):
        done = invar("dispute", self.folder, "--receipt", self.receipt, *HERE, "--json", *options)
        return done.json()

    def answer(self, party, number):
        path = self.folder / party / f"{number}.json"
        question = self.folder / "question.json"
        invar("answer", question, "--receipt", self.receipt, *HERE, "-o", path)
        return path

    def hold(self):
        for number in range(1, 5):
            ruling = self.judge()
            if "winner" in ruling:
                return ruling
            assert ruling["round_number"] == number
            self.answer("a", number)
            path = self.answer("b", number)
            if self.change:
                path.write_text(self.change(number, path.read_text()))
        raise AssertionError("no verdict")


def test_a_consistent_liar_loses_by_one_element(files, tmp_path):
    """Party b changes one element and all that commits to it, so that no file contradicts
    another."""
    rows = read(files["product rows"])
    values = read(files["values"])
    values["result"] = values["result"][:-8] + "0000c03f"
    rows["rows"][40] = sha(values["result"])
    trace = read(files["trace"])
    for v in trace["values"]:
        if v["value"] == files["product"]:
            v["root"] = merkle_root([bytes.fromhex(r) for r in rows["rows"]]).hex()
    lies = [json.dumps(f) for f in (trace, rows, values)]
    case = Case(tmp_path / "case", change=lambda number, text: lies[number - 1])
    ruling = case.hold()
    assert ruling["winner"] == "a" and ruling["details"]["position"] == "40"
    assert ruling["details"]["b"] == "3fc00000 (1.5)"
    assert ruling["details"]["judge"].startswith(ruling["details"]["a"])
    assert 0 < ruling["multiply_adds"] < ruling["run_multiply_adds"] / 1000
    text = invar("dispute", case.folder, "--receipt", RECEIPT, *HERE).text
    assert "PARTY A IS RIGHT" in text and "reference kernel" in text
    # The parties' places do not matter.
    for number in (1, 2, 3):
        a, b = (case.folder / p / f"{number}.json" for p in "ab")
        content = a.read_text()
        a.write_text(b.read_text()), b.write_text(content)
    (case.folder / "question.json").unlink()
    assert case.judge()["winner"] == "b"


def test_bad_answers_lose(files, tmp_path):
    def other_root(text):
        trace = json.loads(text)
        trace["values"][-1]["root"] = "0" * 64
        return json.dumps(trace)

    bad = {
        "not JSON": (1, lambda text: text[:-3]),
        "values[0]: node is missing": (1, lambda text: text.replace('"node": 0, ', "", 1)),
        "computation.tokens": (1, lambda text: text.replace('"tokens": "', '"tokens": "0', 1)),
        "rows: their root": (2, lambda text: text),
        "this is a trace": (2, lambda text: files["trace"].read_text()),
    }
    for i, (reason, (when, lie)) in enumerate(bad.items()):

        def change(number, text, when=when, lie=lie):
            return lie(text) if number == when else other_root(text) if number == 1 else text

        ruling = Case(tmp_path / str(i), change=change).hold()
        assert ruling["winner"] == "a" and reason in ruling["reason"], ruling


def test_silence_and_a_changed_answer_lose(tmp_path):
    case = Case(tmp_path / "case")
    case.judge()
    case.answer("a", 1)
    assert case.judge()["question"] == "trace"
    assert "b answers with" in invar("dispute", case.folder, "--receipt", RECEIPT, *HERE).text
    assert case.judge("--close")["winner"] == "a"
    path = case.answer("b", 1)
    assert case.judge()["question"] == "objection"
    path.write_text(path.read_text() + " ")
    ruling = case.judge()
    assert ruling["winner"] == "a" and "changed its answer of round 1" in ruling["reason"]


def test_a_file_that_cannot_be_read_loses_at_once(tmp_path):
    """Whoever hands in no file, or one without end, would else make the judge fail or wait."""
    made = {
        "Is a directory": lambda path: path.mkdir(),
        "not a regular file": os.mkfifo,
        "Not a directory": lambda path: (path.parent.rmdir(), path.parent.write_text("")),
        "levels of symbolic links": lambda path: path.symlink_to(path),
        "which an answer to this question must be": lambda path: path.symlink_to("/dev/zero"),
        "bytes that an answer to this question may have": lambda path: (
            path.write_text("{"),
            os.truncate(path, 1 << 40),
        ),
    }
    case = Case(tmp_path / "case")
    case.judge()
    honest = case.answer("b", 1).read_bytes()
    for options in ((), ("--close",)):
        for party, winner in (("a", "b"), ("b", "a")):
            for reason, make in made.items():
                for folder in "ab":
                    path = case.folder / folder
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    path.mkdir()
                    (path / "1.json").write_bytes(honest)
                path = case.folder / party / "1.json"
                path.unlink()
                make(path)
                ruling = case.judge(*options)
                assert ruling["winner"] == winner and reason in ruling["reason"], ruling
    os.mkfifo(tmp_path / "fifo")
    (case.folder / "question.json").unlink()
    (case.folder / "question.json").symlink_to(tmp_path / "fifo")
    names = ["question.json", "not a regular file"]
    refused("dispute", case.folder, "--receipt", RECEIPT, *HERE, names=names)


def test_a_forged_receipt_loses(tmp_path):
    forged = reseal(put(read(RECEIPT), ("output", "logits", 5), "0" * 64))
    receipt = written(tmp_path / "forged.json", forged)
    ruling = Case(tmp_path / "case", receipt).hold()
    assert ruling["winner"] == "b" and "output.logits[5]" in ruling["reason"]
    assert Case(tmp_path / "honest").hold()["winner"] == "a"


def test_bad_input_is_one_line(files, tmp_path):
    cut = written(tmp_path / "cut.json", files["trace"].read_text()[:500])
    other = written(tmp_path / "other.json", {"schema": "invar-trace 2"})
    case = Case(tmp_path / "case")
    case.judge()
    question = case.folder / "question.json"
    wrong = written(
        tmp_path / "question.json",
        question.read_text().replace('"positions": 66', '"positions": 6'),
    )
    product = files["product"]
    for args, names in (
        (("diff", files["trace"], cut), [str(cut), "not JSON"]),
        (("diff", files["trace"], other), [str(other), "schema"]),
        (("diff", files["trace"], files["values"]), ["this is values of a row"]),
        (("diff", files["trace"], RECEIPT), ["a receipt is needed"]),
        (("diff", files["product rows"], files["logits rows"]), ["not the rows of value"]),
        (("diff", question, question), ["cannot be compared"]),
        (("diff", tmp_path / "none", files["trace"]), ["none"]),
        (("trace", RECEIPT, *HERE, "--values", "5"), ["--values 5"]),
        (("trace", RECEIPT, *HERE, "--values", f"{product}:66"), ["row 66"]),
        (("trace", RECEIPT, *HERE, "--rows", 0), ["value 0 is no result"]),
        (("trace", RECEIPT, *HERE, "--rows", 100000), ["value 100000"]),
        (("trace", cut, *HERE), [str(cut)]),
        (("answer", files["trace"], "--receipt", RECEIPT, *HERE), ["this is a trace"]),
        (("answer", wrong, "--receipt", RECEIPT, *HERE), ["positions is 6 there"]),
    ):
        refused(*args, names=names)
    written(question, question.read_text().replace("invar-question", "invar-answer"))
    refused("dispute", case.folder, "--receipt", RECEIPT, *HERE, names=["question.json", "schema"])


def test_the_drawing_is_of_this_program():
    """docs/images/dispute.svg, which tools/docs/dispute_drawing.py makes of a dispute."""
    tool = [sys.executable, "-B", ROOT / "tools/docs/dispute_drawing.py", "--check"]
    assert subprocess.run(tool).returncode == 0
