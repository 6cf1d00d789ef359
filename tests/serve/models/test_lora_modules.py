"""--lora-modules of invar serve and invar batch: requests choose an adapter by name, and every
answer has the bytes and the receipt that `invar run --adapter` gives it, whoever else asks."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import MODEL, ROOT, invar, refused

sys.path[1:1] = [str(ROOT / "tests/serve"), str(ROOT / "tests/weights")]
import test_adapters as made  # noqa: E402
from server import Server  # noqa: E402

BODY = {"prompt": "ROMEO:", "max_tokens": 12, "temperature": 0}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    return {name: made.ADAPTERS[name](folder / name) for name in ("poet", "patterns")}


@pytest.fixture(scope="module")
def server(adapters, tasks, tmp_path_factory):
    modules = [f"{name}={folder}" for name, folder in adapters.items()]
    options = [word for module in modules for word in ("--lora-modules", module)]
    options += ["--batch-size", 4, "--context", 128]
    one = Server(MODEL, tasks, tmp_path_factory.mktemp("receipts"), *options)
    yield one
    assert one.stop() == 0


def test_each_answer_is_that_of_a_run(server, adapters, tasks, tmp_path):
    names = [MODEL.name, *adapters] * 3
    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(lambda name: server.complete(BODY | {"model": name}), names))
    texts = set()
    for name, answer in zip(names, answers):
        assert answer["model"] == name
        path = tmp_path / f"{name}.json"
        if not path.exists():
            own = ["--adapter", adapters[name]] if name in adapters else []
            options = ["--tasks-root", tasks, "--receipt-path", path, "--no-do-sample", *own]
            options += ["--prompt-text", BODY["prompt"], "--max-new-tokens", BODY["max_tokens"]]
            invar("run", "--model-name", MODEL, *options)
        (receipt,) = answer["invar"]["receipts"]
        kept, alone = json.loads(server.receipt(receipt)), json.loads(path.read_bytes())
        assert kept["receipt_hash"] == alone["receipt_hash"] == receipt
        texts.add(answer["choices"][0]["text"])
    assert len(texts) == 3


def test_models_are_listed_with_their_parent(server, adapters):
    models = {m["id"]: m for m in server.ask("/v1/models")["data"]}
    assert list(models) == [MODEL.name, *adapters]
    assert "parent" not in models[MODEL.name]
    for name in adapters:
        assert models[name]["parent"] == MODEL.name
        assert models[name]["weights"] != models[MODEL.name]["weights"]
    server.ask("/v1/completions", BODY | {"model": "nobody"}, status=404)


def test_rows_of_a_batch_choose_an_adapter(server, adapters, tasks, tmp_path):
    names = [MODEL.name, *adapters, "nobody"]
    lines = [
        {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/completions",
            "body": BODY | {"model": name},
        }
        for name in names
    ]
    file = tmp_path / "requests.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["--model-name", MODEL, "--tasks-root", tasks, "--context", 128]
    modules = [f"--lora-modules={name}={folder}" for name, folder in adapters.items()]
    invar("batch", file, *options, *modules)
    rows = [json.loads(line) for line in (tmp_path / "requests.jsonl.results/output.jsonl").open()]
    for name, row in zip(names[:-1], rows):
        answer = row["response"]["body"]
        alone = server.complete(BODY | {"model": name})
        assert answer["model"] == name
        assert answer["choices"] == alone["choices"]
        assert answer["invar"]["receipts"] == alone["invar"]["receipts"]
    assert rows[-1]["response"]["status_code"] == 404
    # Results name what is in an adapter; the order of the modules is no part of it.
    again = invar("batch", file, *options, *reversed(modules), "--json")
    assert json.loads(again.out)["found"] == len(names)
    others = [modules[0], modules[1].replace(str(adapters["patterns"]), str(adapters["poet"]))]
    for wrong in (others, modules[:1], []):
        refused("batch", file, *options, *wrong, names=["adapters", "take another folder"])
    refused("batch", file, *options, *modules, "--adapter", adapters["poet"], names=["--adapter"])


def test_wrong_modules_are_refused(adapters):
    poet = adapters["poet"]
    serve = ["serve", "--model-name", MODEL, "--lora-modules"]
    for module in ("poet", "=x", "poet="):
        refused(*serve, module, names=["--lora-modules", "NAME=FOLDER"])
    refused(*serve, f"poet={MODEL}", names=["adapter_config.json"])
    refused(*serve, f"{MODEL.name}={poet}", names=["two models are called"])
    refused(*serve, f"a={poet}", "--model-name", poet, names=["--lora-modules"])
