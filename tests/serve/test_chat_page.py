"""The page at / of invar serve, in a headless browser: it chats, shows the receipt of each answer
and has it computed again; nothing of an answer becomes HTML."""

import json
import sys

import pytest
from conftest import ROOT
from scripted import place, write_scripted
from server import Server

sys.path.insert(0, str(ROOT / "tests/web"))
import browser  # noqa: E402

if not browser.find():
    pytest.skip("no Chromium here", allow_module_level=True)

SCRIPTS = [
    "Hello 🏳️‍🌈.",
    "<img src=x onerror=document.title='hurt'><b>no</b>",
    "<think>\nhm\n</think>\n\nYes.",
]
LAST = "[...document.querySelectorAll('article.assistant')].at(-1)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    model = write_scripted(folder / "scripted", SCRIPTS)
    (folder / "keys").write_text("secret\n")
    options = ["--batch-size", 2, "--api-key-file", folder / "keys"]
    made = Server(model, folder / "tasks", folder / "receipts", *options)
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def page(server):
    one = browser.Browser(f"http://127.0.0.1:{server.port}/")
    yield one
    one.close()


def keys(page, key, code, modifiers=0):
    for kind in ("keyDown", "keyUp"):
        asked = {"type": kind, "key": key, "code": code, "modifiers": modifiers}
        if key == "Enter" and kind == "keyDown":
            asked |= {"text": "\r", "windowsVirtualKeyCode": 13}
        page.command("Input.dispatchKeyEvent", **asked)


def say(page, k):
    before = page.evaluate("document.querySelectorAll('article.assistant').length")
    page.evaluate("document.getElementById('input').focus()")
    page.command("Input.insertText", text="x" * place(k))
    keys(page, "Enter", "Enter")
    page.wait(f"document.querySelectorAll('article.assistant').length > {before}")
    page.wait(
        f"{LAST}.querySelector('.receipt, .bad') && !document.getElementById('stop').offsetParent"
    )
    return page.evaluate(f"{LAST}.querySelector('.text').textContent")


def test_the_page(server, page):
    page.wait("document.querySelector('#talk .bad')")  # no key yet
    page.evaluate(
        "key.value = 'secret', key.dispatchEvent(new Event('change')), temperature.value = '0',"
        "document.getElementById('settings').dispatchEvent(new Event('input'))"
    )
    page.wait("document.querySelector('#model option')")
    assert page.evaluate("model.value") == "scripted"
    assert page.evaluate("summary.textContent") == "temperature 0"
    assert say(page, 0) == SCRIPTS[0]
    receipt = page.evaluate(f"{LAST}.querySelector('.receipt').title")
    said = json.loads(server.receipt(receipt))
    assert said["output"]["text"] == SCRIPTS[0]
    assert "do_sample false" in page.evaluate(f"{LAST}.querySelector('.held').textContent")
    page.evaluate(f"{LAST}.querySelector('.verify').click()")
    page.wait(f"{LAST}.querySelector('[data-verdict]').className")
    assert page.evaluate(f"{LAST}.querySelector('[data-verdict]').textContent") == "VERIFIED"
    # The conversation goes on with what was said: its prompt is longer, so its answer is another.
    page.evaluate("fresh.click()")
    assert not page.evaluate("document.querySelector('article')")
    assert say(page, 1) == SCRIPTS[1]
    assert page.evaluate("document.title") == "Chat - Invar"
    assert page.evaluate(f"{LAST}.querySelectorAll('img, b').length") == 0
    keys(page, "n", "KeyN", modifiers=1)  # Alt
    page.wait("!document.querySelector('article')")
    assert say(page, 2) == "Yes."
    assert page.evaluate(f"{LAST}.querySelector('.thought').textContent") == "hm"
    page.evaluate("fresh.click(), mode.value = 'text'")
    assert say(page, 0) == SCRIPTS[0]
    page.evaluate("fresh.click(), mode.value = 'chat', max_tokens.value = '100000'")
    say(page, 0)
    assert "100000" in page.evaluate(f"{LAST}.querySelector('.bad').textContent")
    page.evaluate("max_tokens.value = '', fresh.click()")


def test_the_page_is_alone(server, page):
    """No request leaves the server; scripts of others do not run; dark and light."""
    assert all(
        u.startswith(f"http://127.0.0.1:{server.port}/")
        for u in page.requests()
        if u[:5] != "data:"
    )
    blocked = page.evaluate("fetch('http://localhost:9/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.bad = 1'}))"
    )
    assert page.evaluate("typeof window.bad") == "undefined"
    paper = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(paper)
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate(paper) != first
    response = server.open("/")
    policy = response.getheader("content-security-policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert b"http://" not in response.read().replace(b"http://www.w3.org/2000/svg", b"")
