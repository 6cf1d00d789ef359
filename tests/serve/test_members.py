"""What a server takes from clients of others, and adds to a request: its day, its context."""

import json
import shutil
import time

from conftest import invar
from server import Server
from test_serve import DRAWN, HELLO, model, only_receipt, server  # noqa: F401

GREEDY = {"prompt": "ROMEO:", "max_tokens": 8, "temperature": 0}


def test_each_piece_counts(server):  # noqa: F811
    """vLLM's `continuous_usage_stats`, which guidellm asks for."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    for body, chat in ((DRAWN, False), ({**DRAWN, "n": 3}, False), ({"messages": HELLO}, True)):
        body = {"max_tokens": 20, "seed": 1, **body}
        *pieces, last = server.stream({**body, "stream_options": options}, chat)
        counts = [p["usage"]["completion_tokens"] for p in pieces]
        whole = server.complete(body, chat)["usage"]
        assert last["usage"]["completion_tokens"] == counts[-1] == whole["completion_tokens"]
        assert counts == sorted(counts) and len(set(counts)) > 2
        assert {p["usage"]["prompt_tokens"] for p in pieces} == {whole["prompt_tokens"]}
    times = "request_time_per_output_token_seconds_count"
    assert server.metric(times) == server.metric("e2e_request_latency_seconds_count") == 10


def test_what_changes_nothing(server):  # noqa: F811
    """Members that some clients always send, at the values that are so anyway."""
    neutral = {"use_beam_search": False, "length_penalty": 1.0, "cache_prompt": True}
    neutral |= {"prompt_cache_retention": "24h", "best_of": 1, "suffix": "", "stop": []}
    assert server.complete({**GREEDY, **neutral})["invar"] == server.complete(GREEDY)["invar"]
    body = {"messages": HELLO, "max_tokens": 8, "temperature": 0}
    neutral = {"verbosity": "medium", "function_call": "auto", "functions": []}
    neutral |= {"prediction": {"type": "content", "content": "I"}, "include_reasoning": True}
    neutral |= {"anything": None, "documents": []}
    alone = server.complete(body, chat=True)["invar"]
    assert server.complete({**body, **neutral}, chat=True)["invar"] == alone
    developer = [{**HELLO[0], "role": "developer"}, HELLO[1]]
    assert server.complete({**body, "messages": developer}, chat=True)["invar"] == alone
    for more in ({"verbosity": "low"}, {"function_call": "look"}, {"include_reasoning": False}):
        error = server.ask("/v1/chat/completions", {**body, **more}, 400)["error"]
        assert error["param"] in more and error["code"] == "unsupported_parameter"


def test_at_least_as_many_tokens_as_fit(model, tasks, tmp_path):  # noqa: F811
    """The context of the server bounds `min_tokens`, too: receipts say of both what holds."""
    server = Server(model, tasks, tmp_path, "--context", 100, "--batch-size", 1)
    body = {"messages": HELLO, "temperature": 0}
    room = 100 - server.complete(body, chat=True)["usage"]["prompt_tokens"]
    answer = server.complete({**body, "min_tokens": room}, chat=True)
    assert answer["usage"]["completion_tokens"] == room
    receipt = server.receipt(only_receipt(answer))
    assert server.ask("/v1/receipts/verify", receipt)["verdict"] == "VERIFIED"
    for path, more in (("chat/completions", {**body, "min_tokens": room + 1}),
                       ("completions", {"prompt": "a", "min_tokens": 17})):  # fmt: skip
        error = server.ask("/v1/" + path, more, 400)["error"]
        assert error["param"] == "min_tokens" and str(more["min_tokens"]) in error["message"]
    assert server.stop() == 0


def test_the_date_of_a_chat(model, tasks, tmp_path):  # noqa: F811
    """A template that asks for it is given the server's day, or what the request says."""
    folder = tmp_path / "dated"
    shutil.copytree(model, folder)
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%d %b %Y %H:%M') }}\n" + template)
    store = ["--store", tmp_path / "store.db", "--batch-size", 1]
    server = Server(folder, tasks, None, *store)
    body = {"messages": HELLO, "max_tokens": 4, "temperature": 0}
    first = server.complete(body, chat=True)
    time.sleep(1.1)
    again = server.complete(body, chat=True)
    assert again["invar"] == first["invar"] and first["invar"]["date"].endswith("T00:00:00")
    dated = {"messages": HELLO, "date": "2026-03-07T15:04:05"}
    answer = server.complete({**body, **dated}, chat=True)
    assert answer["invar"]["date"] == dated["date"]
    (tmp_path / "m.json").write_text(json.dumps(dated))
    options = ["--messages", tmp_path / "m.json", "--max-new-tokens", 4, "--no-do-sample"]
    options += ["--model-name", folder, "--tasks-root", tasks]
    invar("run", *options, "--receipt-path", tmp_path / "r.json")
    want = (tmp_path / "r.json").read_bytes()
    assert server.open(f"/v1/receipts/{only_receipt(answer)}").read() == want
    prompt = json.loads(want)["input"]["prompt"]
    assert prompt.startswith("07 Mar 2026 15:04")
    asked = {**dated, "messages": HELLO[1:]}
    tokens = server.ask("/tokenize", {**asked, "return_token_strs": True})
    assert "".join(tokens["token_strs"]).startswith("07 Mar 2026 15:04")
    counted = server.ask("/v1/messages/count_tokens", asked)
    assert counted == {"input_tokens": tokens["count"]}
    error = server.ask("/v1/chat/completions", {**body, "date": "7 March"}, 400)["error"]
    assert "2026-11-24T15:04:05" in error["message"]
    assert server.stop() == 0
    server = Server(folder, tasks, None, *store)  # which knows no prompt
    assert server.open(f"/v1/receipts/{only_receipt(answer)}").reason == "Conflict"
    assert server.open(f"/v1/receipts/{only_receipt(answer)}", dated).read() == want
    assert "date" not in server.complete(GREEDY)["invar"]
    assert server.stop() == 0


def test_a_name_that_a_path_escapes(model, tasks, tmp_path):  # noqa: F811
    server = Server(model, tasks, tmp_path, "--name", "org/é model", "--batch-size", 1)
    assert server.ask("/v1/models/org%2F%C3%A9%20model")["id"] == "org/é model"
    answer = server.complete({**GREEDY, "model": "org/é model"})
    receipt = json.loads(server.receipt(only_receipt(answer)))
    assert answer["model"] == receipt["model"]["name"] == "org/é model"
    for wrong in ("org", "org%2", "org%2G", "%", "org%2F%C3%A9+model"):
        server.ask("/v1/models/" + wrong, None, 404)
    assert server.stop() == 0
