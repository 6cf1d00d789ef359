"""Chat templates: what transformers renders, and whether `invar render` renders the same.

    parity.py --write             make tests/chat/expected.jsonl anew, of the templates there
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

import transformers.utils.chat_template_utils as oracle

TESTS = pathlib.Path(__file__).parents[2] / "tests" / "chat"
DATE = datetime.datetime(2026, 3, 7, 15, 4, 5)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
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
