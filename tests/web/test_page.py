"""The page that verifies receipts, in a headless browser and from a file: its verdicts are those of
`invar verify` with the same files."""

import json
import re
import shutil

import browser
import pytest
from checkpoints import write_holes
from conftest import BUILD, MODEL, SHARDS, invar
from receipt_oracle import put, reseal

PAGE = BUILD / "web/invar-verify.html"
if not PAGE.exists():
    pytest.skip("the page is not built: ./setup.sh web", allow_module_level=True)
if not browser.find():
    pytest.skip("no Chromium here", allow_module_level=True)

RESULTS = """[...document.querySelectorAll('#results article')].map((card) => ({
    verdict: card.dataset.verdict,
    title: card.querySelector('h2').innerText,
    error: card.querySelector('p') ? card.querySelector('p').innerText : '',
    rows: [...card.querySelectorAll('tbody tr')].map((row) => [...row.children].map((c) => c.innerText)),
    report: card.querySelector('pre') ? card.querySelector('pre').textContent : ''}))"""


@pytest.fixture(scope="module")
def chromium():
    one = browser.Browser(PAGE.as_uri())
    yield one
    one.close()


@pytest.fixture
def page(chromium):
    chromium.open(PAGE.as_uri())
    return chromium


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's receipt, and the shipped model with its plan beside it."""
    folder = tmp_path_factory.mktemp("demo")
    model, receipt = folder / "shakespeare-4m", folder / "receipt.json"
    shutil.copytree(MODEL, model)
    command = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", "64"]
    invar(*command, "--task-dir", folder / "task", "--receipt-path", receipt)
    for name in ("plan.invar", "plan.invar.constants"):
        shutil.copy(folder / "task" / name, model / name)
    return model, receipt


def give(page, model, receipt):
    page.choose("#folder", model)
    page.wait("given.files.length > 0")
    page.choose("#files", receipt)
    page.wait("document.querySelector('#results article')")
    return page.evaluate(RESULTS)


def native(model, receipt, code):
    """What `invar verify` says, which compiles the model anew."""
    return invar("verify", receipt, "--model-name", model, "--json", code=code)


def plain(rows):
    """The browser shows runs of spaces and line ends as one space."""
    return [[" ".join(text.split()) for text in row] for row in rows]


def test_the_demo_receipt_is_verified(page, demo):
    [card] = give(page, *demo)
    assert card["verdict"] == "VERIFIED", card
    expected = native(*demo, code=0).json()
    assert expected["verdict"] == "VERIFIED"
    rows = dict(card["rows"])
    assert rows.pop("plan").startswith("the one that invar"), rows
    assert rows.pop("receipt") == expected["receipt_hash"]
    assert rows.pop("folder") == "shakespeare-4m (given here)"
    program = expected["compared"].pop("program").removesuffix("compiled from this folder: equal")
    assert rows.pop("program") == program + "the plan shakespeare-4m/plan.invar: equal"
    expected["compared"].pop("folder")
    assert rows == expected["compared"]
    assert "64 of 64 recomputed" in rows["steps"]


def test_a_receipt_of_exact16_is_verified(page, tmp_path):
    model, receipt = tmp_path / "model", tmp_path / "receipt.json"
    shutil.copytree(MODEL, model)
    command = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", "16"]
    command += ["--numerics", "exact16", "--task-dir", tmp_path / "task"]
    invar(*command, "--receipt-path", receipt)
    for name in ("plan.invar", "plan.invar.constants"):
        shutil.copy(tmp_path / "task" / name, model)
    [card] = give(page, model, receipt)
    assert card["verdict"] == "VERIFIED", card
    rows = dict(card["rows"])
    assert "exact16" in rows["program"] and "16 of 16 recomputed" in rows["steps"]
    says = page.evaluate(
        "[...document.querySelectorAll('dl.says > *')].map((one) => one.innerText)"
    )
    says = dict(zip(says[::2], says[1::2]))
    assert says["of"] == "shakespeare-4m, exact16" and says["prompt"] == '"ROMEO:" (3 tokens)'
    assert says.keys() == {"of", "prompt", "answer", "sampling"}
    assert rows["plan"].startswith("the one that invar")


def test_nothing_leaves_the_page(page, demo):
    assert give(page, *demo)[0]["verdict"] == "VERIFIED"
    assert [url for url in page.requests() if not url.startswith(("file:", "data:", "blob:"))] == []
    tried = page.evaluate(
        "fetch('https://example.com/').then(() => 'sent', (error) => error.constructor.name)"
    )
    assert tried == "TypeError"


# What a forger can do whose hashes all fit, and what somebody does who cannot seal a receipt.
FORGERIES = {
    "a token": lambda r: put(r, ("output", "tokens"), [7, *r["output"]["tokens"][1:]]),
    "a token, sealed": lambda r: reseal(
        put(r, ("output", "tokens"), [*r["output"]["tokens"][:30], 7, *r["output"]["tokens"][31:]])
    ),
    "logits, sealed": lambda r: reseal(
        put(
            r,
            ("output", "logits"),
            [*r["output"]["logits"][:40], "0" * 64, *r["output"]["logits"][41:]],
        )
    ),
    "the seed, sealed": lambda r: reseal(put(r, ("input", "seed"), "1")),
    "the prompt, sealed": lambda r: reseal(put(r, ("input", "prompt"), "JULIET:")),
    "the weights, sealed": lambda r: reseal(put(r, ("model", "weights"), "0" * 64)),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forgery_is_found_in_the_field_that_invar_verify_names(page, demo, tmp_path, what):
    model, receipt = demo
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(FORGERIES[what](json.loads(receipt.read_text()))))
    [card] = give(page, model, forged)
    expected = native(model, forged, code=1).json()
    assert card["verdict"] == expected["verdict"] == "NOT VERIFIED"
    findings = [[f["field"], f["found"], f["expected"]] for f in expected["findings"]]
    assert plain(card["rows"]) == plain(findings)


def test_a_changed_byte_of_a_weight_is_named(page, demo, tmp_path):
    model = tmp_path / "changed"
    shutil.copytree(demo[0], model)
    shard = model / SHARDS[1]
    content = bytearray(shard.read_bytes())
    content[-100] ^= 1
    shard.write_bytes(content)
    [card] = give(page, model, demo[1])
    [finding] = native(model, demo[1], code=1).json()["findings"]
    assert finding["field"].startswith("model.tensors[model.layers.")
    assert card["verdict"] == "NOT VERIFIED"
    assert card["rows"] == [[finding["field"], finding["found"], finding["expected"]]]


def test_a_changed_plan_is_not_taken(page, demo, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(demo[0], model)
    plan = model / "plan.invar"
    text = plan.read_text()
    assert text.count("epsilon=0x3727c5ac") > 1
    plan.write_text(text.replace("epsilon=0x3727c5ac", "epsilon=0x3727c5ad", 1))
    [card] = give(page, model, demo[1])
    assert card["verdict"] == "REFUSED"
    assert card["error"].startswith("plan.invar: it is not the plan that invar"), card


def test_a_missing_plan_is_named_with_its_command(page, demo):
    page.choose("#folder", MODEL)
    page.choose("#files", demo[1])
    page.wait("given.files.length > 0 && given.receipts.size > 0")
    assert page.evaluate("document.getElementById('start').disabled")
    needed = page.evaluate("document.querySelector('#given .need').innerText")
    assert "plan.invar is missing" in needed and "--task-dir PLAN" in needed
    # A plan may come in a folder of its own.
    page.choose("#files", demo[0] / "plan.invar", demo[0] / "plan.invar.constants")
    page.wait("document.querySelector('#results article')")
    assert page.evaluate(RESULTS)[0]["verdict"] == "VERIFIED"


def test_weights_that_come_last_are_awaited(page, demo):
    small = [one for one in demo[0].iterdir() if one.suffix != ".safetensors"]
    page.choose("#files", demo[1], *small)
    page.wait("given.receipts.size > 0")
    needed = page.evaluate("document.querySelector('#given .need').innerText")
    assert needed.startswith("The weights of model are missing")
    assert page.evaluate("worker === null && !document.querySelector('#results article')")
    page.choose("#files", *(demo[0] / shard for shard in SHARDS))
    page.wait("document.querySelector('#results article')")
    assert page.evaluate(RESULTS)[0]["verdict"] == "VERIFIED"


def test_a_missing_shard_and_a_foreign_file_are_refused(page, demo, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(demo[0], model)
    (model / SHARDS[2]).unlink()
    [card] = give(page, model, demo[1])
    assert card["verdict"] == "REFUSED" and card["error"].startswith(f"{SHARDS[2]} is missing")
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"not": "a receipt"}')
    page.evaluate("document.getElementById('reset').click()")
    [card] = give(page, demo[0], foreign)
    done = native(demo[0], foreign, code=2)
    assert card["verdict"] == "REFUSED"
    assert card["error"] == done.errors[0].removeprefix("invar: ").replace(f"{tmp_path}/", "")


def test_receipts_that_nobody_can_check_here_are_refused_by_name(page, tmp_path):
    command = ["run", "--model-name", MODEL, "--prompt-text", "A secret:", "--max-new-tokens", "2"]
    weaker, full, public = (tmp_path / f"{name}.json" for name in ("weaker", "full", "public"))
    deterministic = ["--operation-set", "deterministic", "--receipt-path", weaker]
    invar(*command, "--task-dir", tmp_path / "plan", *deterministic)
    invar(*command, "--salt-prompt", "--receipt-path", full)
    invar("redact", full, "-o", public)
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    for name in ("plan.invar", "plan.invar.constants"):
        shutil.copy(tmp_path / "plan" / name, model / name)
    [card] = give(page, model, weaker)
    assert card["verdict"] == "REFUSED"
    assert "promises the same bits on the same hardware" in card["error"]
    page.evaluate("document.getElementById('reset').click()")
    [card] = give(page, model, public)
    assert card["verdict"] == "REFUSED" and "its prompt is withheld" in card["error"]


def test_several_receipts_are_judged_one_after_another(page, demo, tmp_path):
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(FORGERIES["the seed, sealed"](json.loads(demo[1].read_text()))))
    page.choose("#folder", demo[0])
    page.wait("given.files.length > 0")
    page.choose("#files", demo[1], forged)
    page.wait("document.querySelectorAll('#results article').length === 2 && worker === null")
    verdicts = {card["title"]: card["verdict"] for card in page.evaluate(RESULTS)}
    assert verdicts == {
        "VERIFIED – receipt.json": "VERIFIED",
        "NOT VERIFIED – forged.json": "NOT VERIFIED",
    }


def test_receipts_of_one_name_are_each_judged(page, demo, tmp_path):
    forged = json.dumps(FORGERIES["the seed, sealed"](json.loads(demo[1].read_text())))
    for folder, text in (("a", forged), ("b", demo[1].read_text())):
        (tmp_path / "chats" / folder).mkdir(parents=True)
        (tmp_path / "chats" / folder / "turn-1.json").write_text(text)
    page.drop(demo[0], tmp_path / "chats")
    page.wait("document.querySelectorAll('#results article').length === 2 && worker === null")
    verdicts = {card["title"]: card["verdict"] for card in page.evaluate(RESULTS)}
    assert verdicts == {
        "NOT VERIFIED – chats/a/turn-1.json": "NOT VERIFIED",
        "VERIFIED – chats/b/turn-1.json": "VERIFIED",
    }


def test_cancel_and_start_over(page, demo):
    page.choose("#folder", demo[0])
    page.wait("given.files.length > 0")
    page.choose("#files", demo[1])
    page.wait("worker !== null || document.querySelector('#results article')")
    page.evaluate("start(); document.getElementById('cancel').click()")
    [card] = page.evaluate(RESULTS)
    assert (card["verdict"], card["error"]) == ("REFUSED", "cancelled")
    assert page.evaluate("worker === null")
    page.evaluate("document.getElementById('start').click()")
    page.wait("document.querySelector('#results article')")
    assert page.evaluate(RESULTS)[0]["verdict"] == "VERIFIED"
    page.evaluate("document.getElementById('reset').click()")
    assert page.evaluate("document.getElementById('given').children.length") == 0


def test_files_are_dropped(page, demo):
    page.drop(demo[0], demo[1])
    page.wait("document.querySelector('#results article')")
    assert page.evaluate(RESULTS)[0]["verdict"] == "VERIFIED"


def test_of_two_models_the_page_asks_for_one(page, demo, tmp_path):
    other = tmp_path / "other-model"
    shutil.copytree(demo[0], other)
    (other / SHARDS[0]).write_bytes(b"no weights")
    page.drop(demo[0], other, demo[1])
    page.wait("document.querySelector('#given .choice')")
    names = "[...document.querySelectorAll('.choice button')].map((one) => one.innerText)"
    assert page.evaluate(names) == ["other-model", "shakespeare-4m"]
    assert page.evaluate("worker === null && document.getElementById('start').disabled")
    page.evaluate("document.querySelectorAll('.choice button')[1].click()")
    page.wait("document.querySelector('#results article')")
    [card] = page.evaluate(RESULTS)
    assert card["verdict"] == "VERIFIED"
    assert dict(card["rows"])["folder"] == "shakespeare-4m (given here)"
    page.evaluate("document.querySelectorAll('.choice button')[0].click()")
    page.wait("worker === null && document.querySelector('#results article')")
    assert page.evaluate(RESULTS)[0]["verdict"] == "REFUSED"


def test_signatures_are_checked(page, demo, tmp_path):
    key, signed = tmp_path / "me.key", tmp_path / "signed.json"
    invar("keygen", key)
    shutil.copy(demo[1], signed)
    invar("sign", signed, "--key", key)
    [card] = give(page, demo[0], signed)
    expected = native(demo[0], signed, code=0).json()
    assert card["verdict"] == "VERIFIED"
    assert dict(card["rows"])["signed"] == expected["compared"]["signed"]
    receipt = json.loads(signed.read_text())
    text = receipt["signatures"][0]["signature"]
    receipt["signatures"][0]["signature"] = ("1" if text[0] == "0" else "0") + text[1:]
    signed.write_text(json.dumps(receipt))
    page.evaluate("document.getElementById('reset').click()")
    [card] = give(page, demo[0], signed)
    [finding] = native(demo[0], signed, code=1).json()["findings"]
    assert finding["field"] == "signatures[0].signature"
    assert card["verdict"] == "NOT VERIFIED"
    assert card["rows"] == [[finding["field"], finding["found"], finding["expected"]]]


LARGER = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8, "head_dim": 64}


def model_of_holes(folder, **changes):
    """A model whose weights are all 0, with the tokenizer that ships, its plan and a receipt."""
    config = {**json.loads((MODEL / "config.json").read_text()), **LARGER, **changes}
    config["num_attention_heads"] = config["hidden_size"] // config["head_dim"]
    model = folder / "model"
    write_holes(model, config, shards=1)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(MODEL / name, model)
    command = ["run", "--model-name", model, "--prompt-text", "x", "--max-new-tokens", "2"]
    invar(*command, "--task-dir", folder / "task", "--receipt-path", folder / "receipt.json")
    for name in ("plan.invar", "plan.invar.constants"):
        shutil.copy(folder / "task" / name, model)
    return model, folder / "receipt.json"


def test_weights_are_in_memory_once(page, tmp_path):
    model, receipt = model_of_holes(tmp_path)
    weights = (model / "model-00001-of-00001.safetensors").stat().st_size
    assert weights > 200e6
    [card] = give(page, model, receipt)
    assert card["verdict"] == "VERIFIED BY A GIVEN PLAN", card
    page.wait("document.body.dataset.memory")
    assert weights < page.evaluate("Number(document.body.dataset.memory)") < weights + 64e6


def test_a_model_that_is_too_large_is_refused_before_it_is_read(page, demo, tmp_path):
    """The plan says that it is a thousand times wider, and the files are holes of that size."""
    model = tmp_path / "model"
    shutil.copytree(demo[0], model)
    plan = model / "plan.invar"
    text, n = re.subn(r"\b704\b", "704000", plan.read_text())
    text, m = re.subn(r"\blength 360448\b", "length 360448000", text)
    assert n >= m == 15
    plan.write_text(text)
    for shard in SHARDS:
        with (model / shard).open("r+b") as file:
            file.truncate(1 << 30)
    [card] = give(page, model, demo[1])
    assert card["verdict"] == "REFUSED"
    assert re.match(
        r"the model is too large for a page: it needs [56]\.\d+ GB of memory \(5\.\d+ GB for "
        r"weights, \d+ kB for keys and values of 67 positions, ",
        card["error"],
    ), card
    assert page.evaluate("!document.body.dataset.memory || document.body.dataset.memory < 1e9")
