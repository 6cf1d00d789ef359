"""The page that verifies receipts, in a headless browser and from a file: its verdicts are those of
`invar verify` with the same files."""

import json
import shutil

import browser
import pytest
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
    given = "the plan shakespeare-4m/plan.invar, as it was given: equal"
    assert rows.pop("program") == program + given
    expected["compared"].pop("folder")
    assert rows == expected["compared"]
    assert "64 of 64 recomputed" in rows["steps"]


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
    findings = [[f["field"], f["expected"], f["found"]] for f in expected["findings"]]
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
    assert card["rows"] == [[finding["field"], finding["expected"], finding["found"]]]


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
