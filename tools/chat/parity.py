"""Chat templates: what transformers renders, and whether `invar render` renders the same.

    parity.py --write             make tests/chat/expected.jsonl and attributes.jsonl
    parity.py --invar BIN FOLDER  compare BIN with transformers on every *.jinja below FOLDER

It needs transformers 5.24 and jinja2 3.1, which the tests do not: they read what --write made. A
template that transformers refuses has to be refused, one that Invar does not cover is counted.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import tempfile

import jinja2
import markupsafe
import transformers.utils.chat_template_utils as oracle

TESTS = pathlib.Path(__file__).parents[2] / "tests" / "chat"
DATE = datetime.datetime(2026, 3, 7, 15, 4, 5)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
# A value of each type that a template may hold; NAME is an attribute.
VALUES = [
    "{{ (5).NAME is defined }}|{{ (5).NAME }}",
    "{{ true.NAME is defined }}|{{ true.NAME }}",
    "{{ (1.5).NAME is defined }}|{{ (1.5).NAME }}",
    "{{ 'a'.NAME is defined }}|{{ 'a'.NAME }}",
    "{{ ('a'|safe).NAME is defined }}|{{ ('a'|safe).NAME }}",
    "{{ none.NAME is defined }}|{{ none.NAME }}",
    "{{ [1].NAME is defined }}|{{ [1].NAME }}",
    "{{ (1, 2).NAME is defined }}|{{ (1, 2).NAME }}",
    "{{ {'a': 1}.NAME is defined }}|{{ {'a': 1}.NAME }}",
    "{{ {'a': 1}.keys().NAME is defined }}|{{ {'a': 1}.keys().NAME }}",
    "{{ {'a': 1}.values().NAME is defined }}|{{ {'a': 1}.values().NAME }}",
    "{{ {'a': 1}.items().NAME is defined }}|{{ {'a': 1}.items().NAME }}",
    "{{ range(2, 5).NAME is defined }}|{{ range(2, 5).NAME }}",
    "{{ ([1]|map('string')).NAME is defined }}|{{ ([1]|map('string')).NAME }}",
    "{{ range.NAME is defined }}|{{ range.NAME }}",
    "{{ dict.NAME is defined }}|{{ dict.NAME }}",
    "{{ namespace.NAME is defined }}|{{ namespace.NAME }}",
    "{{ raise_exception.NAME is defined }}|{{ raise_exception.NAME }}",
    "{{ strftime_now.NAME is defined }}|{{ strftime_now.NAME }}",
    "{{ 'a'.upper.NAME is defined }}|{{ 'a'.upper.NAME }}",
    "{% set n = namespace(a=1) %}{{ n.NAME is defined }}|{{ n.NAME }}",
    "{% macro m(a) %}{% endmacro %}{{ m.NAME is defined }}|{{ m.NAME }}",
    "{% macro m(a) %}{{ caller.NAME is defined }}|{{ caller.NAME }}{% endmacro %}"
    "{% call m(1) %}{% endcall %}",
    "{% for x in [1] %}{{ loop.NAME is defined }}|{{ loop.NAME }}{% endfor %}",
    "{% for x in [1] %}{{ loop.cycle.NAME is defined }}|{{ loop.cycle.NAME }}{% endfor %}",
]
# Of later Pythons than this one.
LATER = ["from_number", "gi_suspended", "is_integer"]
SNIPPET_CHAT = {"messages": [{"role": "user", "content": "Hi"}]}


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DATE


oracle.datetime = FixedDate


def rendered(template, chat):
    """The text, or None where transformers raises an exception."""
    continues = chat.get("continue_final_message", False)
    try:
        texts, _ = oracle.render_jinja_template(
            [oracle._normalize_chat_messages(chat["messages"])],
            tools=chat.get("tools"),
            documents=chat.get("documents"),
            chat_template=template,
            continue_final_message=continues,
            add_generation_prompt=chat.get("add_generation_prompt", not continues),
            **{**TOKENS, **chat.get("variables", {})},
        )
        return texts[0]
    except Exception:
        return None


def write():
    conversations = json.loads((TESTS / "conversations.json").read_text())
    lines = []

    def add(**case):
        lines.append(json.dumps(case, ensure_ascii=False) + "\n")

    for path in sorted((TESTS / "templates").glob("*.jinja")):
        for name, chat in conversations.items():
            add(template=path.name, chat=name, text=rendered(path.read_text(), chat))
    for n, snippet in enumerate((TESTS / "snippets.txt").read_text().splitlines(), 1):
        add(line=n, text=rendered(snippet, SNIPPET_CHAT))
    (TESTS / "expected.jsonl").write_text("".join(lines))
    print(f"{len(lines)} cases")
    write_attributes()


def attribute_names():
    """Of everything that a template may hold, and of nothing."""
    held = [5, 1.5, "a", markupsafe.Markup("a"), None, [], (), {}, range(2)]
    held += [{}.keys(), {}.values(), {}.items(), (x for x in ""), len, TESTS.exists, rendered]
    held += [jinja2.runtime.Macro(jinja2.Environment(), rendered, "m", [], True, True, True, False)]
    held += [jinja2.runtime.LoopContext([1], jinja2.Undefined), jinja2.utils.Namespace()]
    names = {n for value in held for n in dir(value) if not n.startswith("_")}
    return sorted(names | {"nothing", "__class__", "__len__", "__nothing__", *LATER})


def write_attributes():
    """{template: {name: text}}; a text of the value's address is "?", that of nothing is left
    out."""
    lines = []
    for template in VALUES:
        texts = {}
        for name in attribute_names():
            text = rendered(template.replace("NAME", name), SNIPPET_CHAT)
            if text is None:
                texts[name] = None
            elif text != "False|":
                texts[name] = "?" if " at 0x" in text or "<" in text else text
        lines.append(json.dumps({"template": template, "texts": texts}) + "\n")
    names = json.dumps({"names": attribute_names()}) + "\n"
    (TESTS / "attributes.jsonl").write_text(names + "".join(lines))


def compare(invar, folder):
    conversations = json.loads((TESTS / "conversations.json").read_text())
    counts = {"equal": 0, "both refuse": 0, "not covered": 0, "different": 0}
    with tempfile.TemporaryDirectory() as scratch:
        chats = {}
        for n, (name, chat) in enumerate(conversations.items()):
            chats[name] = pathlib.Path(scratch) / f"chat-{n}.json"
            chats[name].write_text(json.dumps({**chat, "date": DATE.isoformat()}))

        def case(model, template, name):
            expected = rendered(template, conversations[name])
            run = subprocess.run(
                [invar, "render", "--model-name", model, "--messages", chats[name]],
                capture_output=True,
            )
            if run.returncode == 3:
                return "not covered", run.stderr.decode()
            if expected is None and run.returncode == 2:
                return "both refuse", ""
            if run.returncode == 0 and run.stdout.decode() == expected:
                return "equal", ""
            return "different", run.stderr.decode() or run.stdout.decode()

        for n, path in enumerate(sorted(pathlib.Path(folder).rglob("*.jinja"))):
            model = pathlib.Path(scratch) / f"model-{n}"
            model.mkdir()
            template = path.read_bytes().decode()
            (model / "chat_template.jinja").write_bytes(path.read_bytes())
            (model / "tokenizer_config.json").write_text(json.dumps(TOKENS))
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                cases = {c: pool.submit(case, model, template, c) for c in conversations}
            for name, future in cases.items():
                verdict, why = future.result()
                counts[verdict] += 1
                if verdict in ("different", "not covered"):
                    print(f"{path.name}, {name}: {verdict}: {why.strip()[:300]}")
    print(counts)
    return counts["different"] == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--invar")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    if options.write:
        write()
    else:
        raise SystemExit(0 if compare(options.invar, options.folder) else 1)
