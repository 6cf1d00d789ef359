"""invar serve: every answer has the bytes and the receipt that `invar run` gives the same request,
whoever else asks; what is wrong is refused by name and disturbs nobody."""

import json
import random
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import MODEL, ROOT, invar
from receipt_oracle import reseal
from server import Server

TEMPLATE = ROOT / "tests/chat/templates/chatml.jinja"
GREEDY = {"prompt": "ROMEO:", "max_tokens": 24, "temperature": 0}
DRAWN = {"prompt": "JULIET:", "max_tokens": 24, "temperature": 0.9, "top_p": 0.8, "seed": 7}
LONG = {"prompt": "KING", "max_tokens": 480, "temperature": 1, "seed": 1}
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who art thou?"}]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "shakespeare-4m"
    shutil.copytree(MODEL, folder)
    shutil.copy(TEMPLATE, folder / "chat_template.jinja")
    return folder


@pytest.fixture(scope="module")
def server(model, tasks, tmp_path_factory):
    made = Server(model, tasks, tmp_path_factory.mktemp("receipts"), "--context", 512)
    yield made
    assert made.stop() == 0


@pytest.fixture
def run(model, tasks, tmp_path):
    """The bytes of the receipt that `invar run` writes."""

    def f(*options):
        path = tmp_path / "r.json"
        invar("run", "--model-name", model, "--tasks-root", tasks, "--receipt-path", path, *options)
        return path.read_bytes()

    return f


def only_receipt(answer):
    (name,) = answer["invar"]["receipts"]
    return name


def test_a_completion_has_the_receipt_of_a_run(server, run):
    for body, options in (
        (GREEDY, ["--no-do-sample"]),
        (DRAWN, ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7]),
        (
            {**DRAWN, "stop": ["\n"]},
            ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7, "--stop", "\n", "--stop-in-answer"],
        ),
        (
            {**DRAWN, "logit_bias": {"27": 3.5, "5": -7}, "presence_penalty": 0.5},
            ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7, "--logit-bias", "5:-7,27:3.5"]
            + ["--presence-penalty", 0.5],
        ),
        ({**GREEDY, "frequency_penalty": -0.5}, ["--no-do-sample", "--frequency-penalty=-0.5"]),
        (
            {**DRAWN, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.2, "min_tokens": 3},
            ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7, "--top-k", 5, "--min-p", 0.1]
            + ["--repetition-penalty", 1.2, "--min-new-tokens", 3],
        ),
    ):
        response = server.open("/v1/completions", body)
        answer = json.loads(response.read())
        name = response.getheader("x-invar-receipt")
        assert answer["invar"]["receipts"] == [name]
        want = run("--prompt-text", body["prompt"], "--max-new-tokens", 24, *options)
        assert server.receipt(name) == want
        assert server.open(f"/v1/receipts/{name}").read() == want
        said = json.loads(want)
        text = said["output"]["text"]
        if "stop" in body:
            assert text.endswith("\n") and answer["choices"][0]["finish_reason"] == "stop"
            kept = server.complete({**body, "include_stop_str_in_output": True})
            assert kept["choices"][0]["text"] == text
            text = text[: text.index("\n")]
        assert answer["choices"][0]["text"] == text
        assert answer["usage"]["completion_tokens"] == len(said["output"]["tokens"])


def test_a_chat_has_the_receipt_of_a_run(server, run, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(HELLO))
    body = {"messages": HELLO, "max_completion_tokens": 16, "temperature": 0}
    answer = server.complete(body, chat=True)
    want = run("--messages", tmp_path / "m.json", "--max-new-tokens", 16, "--no-do-sample")
    assert server.receipt(only_receipt(answer)) == want
    assert answer["choices"][0]["message"]["content"] == json.loads(want)["output"]["text"]
    parts = [{"role": "system", "content": "Be brief."}]
    parts += [{"role": "user", "content": [{"type": "text", "text": "Who art thou?"}]}]
    again = server.complete({**body, "messages": parts}, chat=True)
    assert only_receipt(again) == only_receipt(answer)
    # Without a limit the answer has all that fits, as in `invar chat`.
    endless = server.complete({"messages": HELLO, "seed": 1, "temperature": 1}, chat=True)
    assert sum(endless["usage"][k] for k in ("prompt_tokens", "completion_tokens")) <= 512


def test_a_stream_joined_is_the_answer(server):
    for body, chat in (
        (GREEDY, False),
        (DRAWN, False),
        ({**DRAWN, "stop": ["the", "\n\n"], "max_tokens": 200}, False),
        ({**GREEDY, "echo": True}, False),
        ({"messages": HELLO, "max_tokens": 40, "seed": 5, "temperature": 1.2}, True),
    ):
        whole = server.complete(body, chat)
        events = server.stream({**body, "stream_options": {"include_usage": True}}, chat)
        assert events[-1]["choices"] == [] and events[-1]["usage"] == whole["usage"]
        assert all(e["usage"] is None for e in events[:-1])
        assert events[-2]["invar"] == whole["invar"]
        choices = [e["choices"][0] for e in events[:-1]]
        assert [c["finish_reason"] for c in choices[:-1]] == [None] * (len(choices) - 1)
        assert choices[-1]["finish_reason"] == whole["choices"][0]["finish_reason"]
        assert len({e["id"] for e in events}) == 1
        if chat:
            assert choices[0]["delta"] == {"role": "assistant", "content": ""}
            text = "".join(c["delta"].get("content", "") for c in choices)
            assert text == whole["choices"][0]["message"]["content"]
        else:
            assert "".join(c["text"] for c in choices) == whole["choices"][0]["text"]


def test_prompts_of_ids_and_lists(server):
    one = server.complete(GREEDY)
    ids = server.ask("/tokenize", {"prompt": "ROMEO:"})["tokens"]
    assert only_receipt(server.complete({**GREEDY, "prompt": ids})) == only_receipt(one)
    two = server.complete({**GREEDY, "prompt": ["ROMEO:", "JULIET:"], "return_token_ids": True})
    assert [c["index"] for c in two["choices"]] == [0, 1]
    assert two["choices"][0]["text"] == one["choices"][0]["text"]
    assert two["choices"][0]["prompt_token_ids"] == ids
    assert len(two["choices"][1]["token_ids"]) == 24
    both = [ids, server.ask("/tokenize", {"prompt": "JULIET:"})["tokens"]]
    assert server.complete({**GREEDY, "prompt": both})["invar"] == two["invar"]
    events = server.stream({**GREEDY, "prompt": both})
    for i in (0, 1):
        text = "".join(e["choices"][0]["text"] for e in events if e["choices"][0]["index"] == i)
        assert text == two["choices"][i]["text"]
    assert server.ask("/detokenize", {"tokens": ids})["prompt"].endswith("ROMEO:")
    plain = server.ask("/tokenize", {"prompt": "ROMEO:", "add_special_tokens": False})["tokens"]
    assert ids[1:] == plain
    assert server.ask("/tokenizer_info")["eos_token"] == "<|end_of_text|>"


def test_n_answers_are_those_of_n_streams(server, run):
    body = {**DRAWN, "n": 3}
    answer = server.complete({**body, "prompt": ["JULIET:", "ROMEO:"]})
    assert [c["index"] for c in answer["choices"]] == list(range(6))
    one = server.complete(body)
    assert answer["invar"]["receipts"][:3] == one["invar"]["receipts"]
    assert one["usage"]["prompt_tokens"] == server.complete(DRAWN)["usage"]["prompt_tokens"]
    for j, name in enumerate(one["invar"]["receipts"]):
        options = ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7, "--stream", j]
        want = run("--prompt-text", "JULIET:", "--max-new-tokens", 24, *options)
        assert server.receipt(name) == want
        assert server.ask("/v1/receipts/verify", want)["ok"]
    assert len(set(one["invar"]["receipts"])) == 3
    events = server.stream(body)
    for j, choice in enumerate(one["choices"]):
        mine = [e["choices"][0] for e in events if e["choices"][0]["index"] == j]
        assert "".join(c["text"] for c in mine) == choice["text"]


def test_log_probabilities(server, model, tasks, tmp_path):
    body = {**DRAWN, "logprobs": 3}
    (choice,) = server.complete(body)["choices"]
    options = ["--temperature", 0.9, "--top-p", 0.8, "--seed", 7, "--logprobs", 3, "--json"]
    options += ["--model-name", model, "--tasks-root", tasks, "--receipt-path", tmp_path / "r.json"]
    done = invar("run", "--prompt-text", "JULIET:", "--max-new-tokens", 24, *options)
    want = json.loads(done.out, parse_float=str)["logprobs"]
    text = server.open("/v1/completions", body).read()
    got = json.loads(text, parse_float=str)["choices"][0]["logprobs"]
    assert got["token_logprobs"] == [w["logprob"] for w in want]  # the same digits
    assert "".join(got["tokens"]) == choice["text"]
    assert got["text_offset"][:2] == [0, len(got["tokens"][0])]
    for top, w in zip(got["top_logprobs"], want, strict=True):
        assert {t["logprob"] for t in w["top_logprobs"]} <= set(top.values())
        assert w["logprob"] in top.values()
    events = server.stream(body)
    parts = [p for p in (e["choices"][0]["logprobs"] for e in events) if p]
    joined = sum((p["token_logprobs"] for p in parts), [])
    assert joined == choice["logprobs"]["token_logprobs"]
    offsets = sum((p["text_offset"] for p in parts), [])
    assert offsets == choice["logprobs"]["text_offset"]
    asked = {
        "messages": HELLO,
        "max_tokens": 5,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 2,
    }
    (choice,) = server.complete(asked, chat=True)["choices"]
    content = choice["logprobs"]["content"]
    assert "".join(c["token"] for c in content) == choice["message"]["content"]
    assert all(c["top_logprobs"][0]["logprob"] == c["logprob"] for c in content)
    choices = [e["choices"][0] for e in server.stream(asked, chat=True)]
    assert choices[0]["logprobs"] is None
    streamed = sum((c["logprobs"]["content"] for c in choices if c["logprobs"]), [])
    assert streamed == content
    assert bytes(content[0]["bytes"]).decode() == content[0]["token"]


def test_an_echo_has_the_log_probabilities_of_the_prompt(server):
    """As lm-eval asks: of ids, all of a list at once; they are those of an answer of these
    tokens."""
    body = {**GREEDY, "logprobs": 1, "return_token_ids": True}
    (made,) = server.complete(body)["choices"]
    ids = made["prompt_token_ids"] + made["token_ids"]
    asked = {
        "prompt": [ids, ids[:9]],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "echo": True,
        "seed": 1234,
    }
    first, second = server.complete(asked)["choices"]
    begin = len(made["prompt_token_ids"])
    echoed = first["logprobs"]["token_logprobs"]
    assert echoed[0] is None and len(echoed) == len(ids) + 1
    assert echoed[begin:-1] == made["logprobs"]["token_logprobs"]
    assert first["logprobs"]["top_logprobs"][begin:-1] == made["logprobs"]["top_logprobs"]
    assert second["logprobs"]["token_logprobs"][:9] == echoed[:9]
    greedy = [max(top.values()) for top in first["logprobs"]["top_logprobs"][begin:-1]]
    assert greedy == echoed[begin:-1]
    (alone,) = server.complete({**asked, "prompt": ids, "max_tokens": 0})["choices"]
    assert alone["logprobs"]["token_logprobs"] == echoed[:-1]
    assert alone["text"] + made["text"] == first["text"] or alone["text"].endswith(made["text"])


def test_a_seed_is_drawn_and_said(server):
    body = {**DRAWN, "seed": None}
    first, second = server.complete(body), server.complete(body)
    seeds = [a["invar"]["sampling"]["seed"] for a in (first, second)]
    assert seeds[0] != seeds[1]
    again = server.complete({**DRAWN, "seed": seeds[0]})
    assert only_receipt(again) == only_receipt(first)
    assert again["choices"] == first["choices"]
    assert again["system_fingerprint"] == second["system_fingerprint"]


def mixed(count):
    chance = random.Random(42)
    for i in range(count):
        words = " ".join(
            chance.choice(["ROMEO", "love", "the king", "\n"]) for _ in range(chance.randint(1, 60))
        )
        yield {
            "prompt": words,
            "max_tokens": chance.randint(1, 40),
            "temperature": chance.choice([0, 0.7, 1.3]),
            "seed": i,
        }


def test_company_changes_no_bit(server):
    bodies = list(mixed(40))
    alone = [only_receipt(server.complete(b)) for b in bodies]
    files = {name: server.receipt(name) for name in alone}
    chance = random.Random(1)

    def ask(i):
        time.sleep(chance.random() * 0.2)
        if i % 7 == 3:  # a neighbour that leaves
            response = server.open("/v1/completions", {**LONG, "stream": True, "seed": i})
            response.read(200)
            response.connection.sock.close()
            response.close()
        if i % 2:
            return only_receipt(server.stream(bodies[i])[-1])
        return only_receipt(server.complete(bodies[i]))

    with ThreadPoolExecutor(40) as pool:
        together = list(pool.map(ask, range(len(bodies))))
    assert together == alone
    assert {name: server.receipt(name) for name in alone} == files


def wait_for(condition, patience=30):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_whoever_leaves_costs_nothing(server):
    made = server.metric("generation_tokens_total")
    cancelled = server.metric("requests_cancelled_total")
    for body in ({**LONG, "stream": True}, LONG, {**LONG, "prompt": ["KING"] * 80}):
        raw = json.dumps(body).encode()
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(raw), raw)
        )
        wait_for(lambda: server.metric("num_requests_running") > 0)
        s.close()
        wait_for(lambda: server.metric("num_requests_running") == 0)
        assert server.metric("num_requests_waiting") == 0
    assert server.metric("requests_cancelled_total") == cancelled + 3
    assert server.metric("generation_tokens_total") == made


def test_a_receipt_is_computed_again(server):
    for body in (GREEDY, DRAWN, {**DRAWN, "stop": "\n"}):
        receipt = server.receipt(only_receipt(server.complete(body)))
        verdict = server.ask("/v1/receipts/verify", receipt)
        assert verdict["ok"] and verdict["verdict"] == "VERIFIED", verdict
    chat = server.complete({"messages": HELLO, "max_tokens": 8, "temperature": 0}, chat=True)
    assert server.ask("/v1/receipts/verify", server.receipt(only_receipt(chat)))["ok"]
    changed = json.loads(receipt)
    changed["output"]["tokens"][0] ^= 1
    verdict = server.ask("/v1/receipts/verify", json.dumps(changed).encode())
    assert verdict["verdict"] == "NOT VERIFIED" and verdict["findings"]


def test_a_receipt_that_looks_for_much(server):
    receipt = json.loads(server.receipt(only_receipt(server.complete({**DRAWN, "stop": "\n"}))))
    receipt["input"]["stop_strings"] = sorted(f"{i}\n" for i in range(1025))
    error = server.ask("/v1/receipts/verify", json.dumps(reseal(receipt)).encode(), 400)["error"]
    assert error["code"] == "not_covered" and "invar verify" in error["message"]


def test_a_lie_with_right_hashes_is_found(server):
    """What nobody computed, in receipts whose own hashes hold."""
    honest = json.loads(server.receipt(only_receipt(server.complete(GREEDY))))
    other = json.loads(
        server.receipt(only_receipt(server.complete({**GREEDY, "prompt": "JULIET:"})))
    )
    for path, value in (
        (("output", "logits"), other["output"]["logits"]),
        (("output", "text"), "another text"),
        (("input", "prompt"), "JULIET:"),
        (("program", "digest"), "0" * 64),
        (("input", "max_new_tokens"), 25),
    ):
        lie = json.loads(json.dumps(honest))
        assert path[1] in lie[path[0]]
        lie[path[0]][path[1]] = value
        verdict = server.ask("/v1/receipts/verify", reseal(lie))
        assert verdict["verdict"] == "NOT VERIFIED" and verdict["findings"], (path, verdict)


BAD = [  # body, status, words of the message
    (b"{", 400, "not JSON"),
    (b"[]", 400, "an object is needed"),
    (b'{"prompt":"\xff"}', 400, "UTF-8"),
    (b'{"prompt":"a","prompt":"b"}', 400, "twice"),
    (b"[" * 100000, 400, "JSON"),
    ({}, 400, "prompt"),
    ({"prompt": 3}, 400, "prompt"),
    ({"prompt": []}, 400, "prompt"),
    ({"prompt": [[]]}, 400, "empty"),
    ({"prompt": ["a", 3]}, 400, "prompt"),
    ({"prompt": [1, "a"]}, 400, "token ids"),
    ({"prompt": [-1]}, 400, "token ids"),
    ({"prompt": [99999]}, 400, "vocabulary"),
    ({"prompt": [1.5]}, 400, "token ids"),
    ({**GREEDY, "model": "gpt-4"}, 404, "gpt-4"),
    ({**GREEDY, "frobnicate": 1}, 400, "frobnicate"),
    ({**GREEDY, "two\nlines": 1}, 400, "two\\x0alines"),
    ({**GREEDY, "messages": HELLO}, 400, "messages"),
    ({**GREEDY, "max_tokens": 0}, 400, "max_tokens"),
    ({**GREEDY, "n": 0}, 400, "n:"),
    ({**GREEDY, "logprobs": True}, 400, "logprobs"),
    ({**GREEDY, "logprobs": 21}, 400, "logprobs"),
    ({**GREEDY, "logit_bias": {"a": 1}}, 400, "logit_bias"),
    ({**GREEDY, "logit_bias": {"1": 101}}, 400, "logit_bias"),
    ({**GREEDY, "logit_bias": {"1": 1, " 1": 2}}, 400, "logit_bias"),
    ({**GREEDY, "logit_bias": {"99999": 1}}, 400, "logit_bias"),
    ({**GREEDY, "presence_penalty": 3}, 400, "presence_penalty"),
    ({**GREEDY, "max_tokens": "8"}, 400, "max_tokens"),
    ({**GREEDY, "max_tokens": 1e30}, 400, "max_tokens"),
    ({**GREEDY, "max_tokens": 5000}, 400, "512"),
    ({**GREEDY, "prompt": "a " * 5000}, 400, "512"),
    ({**GREEDY, "temperature": -1}, 400, "temperature"),
    ({**GREEDY, "temperature": True}, 400, "temperature"),
    ({**GREEDY, "top_p": 2}, 400, "top_p"),
    ({**GREEDY, "seed": -1}, 400, "from 0 to 18446744073709551615"),
    ({**GREEDY, "stream": True, "stream_options": {"include_usage": "yes"}}, 400, "include_usage"),
    ({**GREEDY, "stop": [1]}, 400, "stop"),
    ({**GREEDY, "stop": [""]}, 400, "stop"),
    ({**GREEDY, "stop": [str(i) for i in range(1025)]}, 400, "1025"),
    ({**GREEDY, "bad_words": ["a" * 16385]}, 400, "bad_words"),
    ({**GREEDY, "tools": []}, 400, "tools"),
    ({**GREEDY, "stream_options": {"include_usage": True}}, 400, "stream"),
    ({**GREEDY, "suffix": "x"}, 400, "suffix"),
    ({**GREEDY, "response_format": {"type": "yaml"}}, 400, "response_format"),
    ({**GREEDY, "min_tokens": 30}, 400, "30"),
]


def test_bad_input(server):
    for body, status, words in BAD:
        error = server.ask("/v1/completions", body, status)["error"]
        assert words in error["message"] and "\n" not in error["message"], (body, error)
        assert error["type"] == "invalid_request_error"
    for body, words in (
        ({"messages": []}, "message"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [3]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "image_url",
        ),
        ({"messages": HELLO, "tool_choice": "required"}, "tool_choice"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [*HELLO, {"role": "user", "content": ["a"]}]}, "messages[2].content"),
        ({"messages": [{"content": "a"}]}, "messages[0].role"),
        ({"messages": HELLO, "prompt": "a"}, "prompt"),
        ({"messages": HELLO, "max_tokens": 3, "max_completion_tokens": 4}, "max_tokens says 3"),
    ):
        error = server.ask("/v1/chat/completions", body, 400)["error"]
        assert words in error["message"], error
    long = server.ask("/v1/completions", {**GREEDY, "prompt": "a " * 5000}, 400)["error"]
    assert long["code"] == "context_length_exceeded"
    for path, body, status in (
        ("/nothing", None, 404),
        ("/v1/completions", None, 405),
        ("/v1/receipts/../../etc/passwd", None, 404),
        ("/v1/receipts/" + "0" * 64, None, 404),
        ("/v1/receipts/verify", b"{}", 400),
        ("/tokenize", {"prompt": 3}, 400),
        ("/tokenize", {"prompt": "a", "messages": HELLO}, 400),
        ("/detokenize", {"tokens": [99999]}, 400),
        ("/v1/models/gpt-4", None, 404),
    ):
        assert "message" in server.ask(path, body, status)["error"]
    values = b'{"prompt":[' + b"1," * 2**20 + b"1]}"
    for path in ("/v1/completions", "/tokenize", "/v1/receipts/verify"):
        assert "1048576 values" in server.ask(path, values, 400)["error"]["message"]
    commas = server.ask("/v1/completions", {**GREEDY, "prompt": '\\",[{' * 2**20}, 400)["error"]
    assert commas["code"] == "context_length_exceeded"
    connection = server.connect()
    connection.request("OPTIONS", "/v1/receipts/" + "0" * 64)
    assert connection.getresponse().getheader("allow") == "GET, POST"
    connection.close()
    server.ask("/v1/completions", GREEDY, 415, {"Content-Type": "text/plain"})
    server.ask("/v1/models", None, 421, {"Host": "evil.example"})
    server.ask("/v1/models", None, 403, {"Origin": "http://evil.example"})
    assert server.ask("/ready") == {"status": "ready"}


def test_what_a_server_says_of_itself(server):
    (model,) = server.ask("/v1/models")["data"]
    assert model["id"] == "shakespeare-4m" and model["max_model_len"] == 512
    assert server.ask("/v1/models/shakespeare-4m") == model
    receipt = json.loads(server.receipt(only_receipt(server.complete(GREEDY))))
    assert model["weights"] == receipt["model"]["weights"]
    texts = server.ask("/tokenize", {"prompt": "ROMEO:", "return_token_strs": True})["token_strs"]
    assert "".join(texts[1:]) == "ROMEO:"
    response = server.open("/health", headers={"x-request-id": "mine-1"})
    assert response.getheader("x-request-id") == "mine-1"


def test_the_client_of_openai(server):
    try:
        import openai
    except ImportError:
        pytest.skip("the client openai is not installed")
    client = openai.OpenAI(
        base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0
    )
    name = client.models.list().data[0].id
    whole = client.completions.create(model=name, **GREEDY)
    assert whole.invar["receipts"] == server.complete(GREEDY)["invar"]["receipts"]
    pieces = client.completions.create(model=name, **GREEDY, stream=True)
    assert "".join(p.choices[0].text for p in pieces) == whole.choices[0].text
    asked = {"messages": HELLO, "max_completion_tokens": 8, "seed": 1, "model": name, "n": 2}
    asked |= {"logprobs": True, "top_logprobs": 2, "extra_body": {"top_k": 5, "min_p": 0.01}}
    chat = client.chat.completions.create(**asked)
    assert [c.index for c in chat.choices] == [0, 1]
    assert len(chat.choices[0].logprobs.content) == chat.usage.completion_tokens // 2
    with client.chat.completions.create(**asked, stream=True) as events:
        texts = ["", ""]
        for event in events:
            texts[event.choices[0].index] += event.choices[0].delta.content or ""
    assert texts == [c.message.content for c in chat.choices]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.completions.create(model=name, prompt="a", max_tokens=100000)
    assert refusal.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="gpt-4", prompt="a")
