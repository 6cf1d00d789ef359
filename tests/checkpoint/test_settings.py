"""Settings of a generation: each changes the answer as spec/sampling.md says, stands in the
receipt, and `verify` replays it."""

import json

import pytest
from conftest import execute, invar, refused
from receipt_oracle import SETTINGS, reseal


@pytest.fixture
def settled(model, tasks, tmp_path):
    """settled(generation_config, *options, prompt=, tokens=) -> (the receipt, its path)."""

    def f(config, *options, prompt="ROMEO:", tokens=16, code=0):
        (model / "generation_config.json").write_text(json.dumps(config))
        path = tmp_path / "r.json"
        command = ["run", "--model-name", model, "--prompt-text", prompt, "--tasks-root", tasks]
        command += ["--max-new-tokens", tokens, "--receipt-path", path, *options]
        if code:
            return execute(command)
        invar(*command)
        return json.loads(path.read_text()), path

    return f


def stated(receipt):
    return {k: v for k, v in receipt["input"].items() if k in SETTINGS}


def answer(receipt):
    return receipt["output"]["tokens"]


# generation_config.json, what the receipt says of it, and another value that a forger may claim.
DRAWN = {"do_sample": True, "temperature": 2.0}
CASES = {
    "min_p": (DRAWN | {"min_p": 0.3}, {"min_p": "0.3"}, "0.9"),
    "epsilon_cutoff": (DRAWN | {"epsilon_cutoff": 0.05}, {"epsilon_cutoff": "0.05"}, "0.9"),
    "repetition_penalty": ({"repetition_penalty": 1.3}, {"repetition_penalty": "1.3"}, "2"),
    "no_repeat_ngram_size": ({"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 2}, 1),
}


def claims_are_refused(receipt, path, model, name, other):
    """Another value of the setting, and none, do not choose the receipt's tokens."""
    for forged in (other, None):
        changed = json.loads(json.dumps(receipt))
        changed["input"][name] = forged
        if forged is None:
            del changed["input"][name]
        path.write_text(json.dumps(reseal(changed)))
        done = execute(["verify", path, "--model-name", model])
        assert done.code == 1 and "output.tokens[" in done.text, done.text


@pytest.mark.parametrize("name", CASES)
def test_a_setting_is_stated_and_replayed(settled, model, name):
    config, says, other = CASES[name]
    without = settled({k: v for k, v in config.items() if k != name}, tokens=40)[0]
    receipt, path = settled(config, tokens=40)
    assert stated(receipt) == says and stated(without) == {}
    assert answer(receipt) != answer(without)
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    claims_are_refused(receipt, path, model, name, other)
    changed = json.loads(json.dumps(receipt))
    changed["input"][name] = other
    path.write_text(json.dumps(changed))
    done = execute(["validate", path])
    assert done.code == 1 and f"input.{name}" in done.text


# Settings that are options alone: what the receipt says, and another value that a forger may claim.
COLD = ["--temperature", "0.9", "--seed", 7]
OPTIONS = {
    "stream": ([*COLD, "--stream", 2**64 - 1], str(2**64 - 1), "3"),
    "logit_bias": (
        ["--logit-bias", "297:-4.5,13:3", "--logit-bias", "7:0.1"],
        [[7, "0.1"], [13, "3"], [297, "-4.5"]],
        [[7, "0.1"], [13, "3"]],
    ),
    "frequency_penalty": (["--frequency-penalty", "1.7"], "1.7", "-2"),
    "presence_penalty": ([*COLD, "--presence-penalty", "-1.1"], "-1.1", "2"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_stated_and_replayed(settled, model, name):
    options, says, other = OPTIONS[name]
    cold = COLD if options[: len(COLD)] == COLD else []
    without = settled({}, *cold, tokens=40)[0]
    receipt, path = settled({}, *options, tokens=40)
    assert stated(receipt) == {name: says} and stated(without) == {}
    assert answer(receipt) != answer(without)
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    claims_are_refused(receipt, path, model, name, other)


def test_what_adds_nothing_is_off(settled):
    plain = settled({})[0]
    options = ["--logit-bias", "5:0,7:-0.0", "--frequency-penalty", "-0", "--presence-penalty", 0]
    for more in ([], ["--stream", 9], ["--stop-in-answer"]):  # nothing is drawn, nothing stops
        assert settled({}, *options, *more)[0]["receipt_hash"] == plain["receipt_hash"]


@pytest.mark.parametrize(
    "option, value",
    [("frequency-penalty", v) for v in ("2.1", "-3", "nan", "1e-40", "x")]
    + [("presence-penalty", v) for v in ("2.1", "inf")]
    + [
        ("logit-bias", v)
        for v in ("5:100.5", "5:1,5:2", "-1:3", "5", "5:x", "5:1e-40", "99999:1", "")
    ]
    + [("stream", v) for v in ("-1", str(2**64), "1.5")],
)
def test_values_out_of_range(settled, option, value):
    done = settled({}, f"--{option}", value, tokens=1, code=2)
    names = (option, option.replace("-", "_"))
    assert done.code == 2 and len(done.errors) == 1 and any(n in done.errors[0] for n in names)


def test_tokens_that_are_suppressed(settled, model):
    plain = answer(settled({})[0])
    at = next(i for i, t in enumerate(plain) if i > 2 and t not in plain[:i])
    first, later = plain[0], plain[at]
    for config, gone in [
        ({"suppress_tokens": [later, 3]}, later),
        ({"bad_words_ids": [[later]]}, later),
        ({"bad_words_ids": [plain[at - 1 : at + 1]]}, later),
        ({"begin_suppress_tokens": [first]}, first),
    ]:
        receipt, path = settled(config)
        at = plain.index(gone)
        assert answer(receipt)[:at] == plain[:at] and answer(receipt)[at] != gone, config
        assert "VERIFIED" in invar("verify", path, "--model-name", model).text
        (name,) = config
        path.write_text(json.dumps(reseal(receipt | {"input": without(receipt["input"], name)})))
        done = execute(["verify", path, "--model-name", model])
        assert done.code == 1 and f"output.tokens[{at}]" in done.text


def without(members, name):
    return {k: v for k, v in members.items() if k != name}


def test_the_end_of_an_answer(settled, model):
    plain = answer(settled({})[0])
    receipt, path = settled({"forced_eos_token_id": [9, 5]})
    assert stated(receipt) == {"forced_eos_token_id": [5, 9]}
    assert answer(receipt) == [*plain[:-1], 5]
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    stop = {"eos_token_id": plain[2]}
    assert answer(settled(stop)[0]) == plain[:3]
    for least in ({"min_new_tokens": 9}, {"min_length": 12}):  # the prompt has 3 tokens
        receipt, path = settled(stop | least)
        assert stated(receipt) == {"min_new_tokens": 9}
        assert len(answer(receipt)) > 8 and plain[2] not in answer(receipt)[:9]
        assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    assert stated(settled(stop | {"min_new_tokens": 99})[0]) == {"min_new_tokens": 16}
    receipt = settled(stop, "--min-new-tokens", 2)[0]
    assert answer(receipt) == plain[:3]
    done = settled(stop, "--min-new-tokens", 17, code=2)
    assert done.code == 2 and "--min-new-tokens 17" in done.text


def test_the_first_token_behind_a_prompt_of_one(settled, model):
    config = {"forced_bos_token_id": 7, "begin_suppress_tokens": [8]}
    receipt, path = settled(config, prompt="")
    assert stated(receipt) == config and answer(receipt)[0] == 7
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    assert stated(settled(config)[0]) == {"begin_suppress_tokens": [8]}


def test_what_is_invalid_becomes_finite(settled, model):
    config = {"remove_invalid_values": True, "no_repeat_ngram_size": 1}
    receipt, path = settled(config)
    assert stated(receipt) == config
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text


def test_stop_strings(settled, model):
    plain = settled({})[0]
    text = plain["output"]["text"]
    for stop in (text[3:6], text[7]):
        receipt, path = settled({"stop_strings": stop})
        out = receipt["output"]
        assert out["finish_reason"] == "stop" and stated(receipt) == {"stop_strings": [stop]}
        assert stop in out["text"] and text.startswith(out["text"])
        assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    # It may begin in the prompt.
    receipt, path = settled({}, "--stop", ":" + text[:2], "--stop", "\x01")
    assert len(answer(receipt)) <= 2 and receipt["output"]["finish_reason"] == "stop"
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text


def test_stop_strings_that_begin_in_the_answer(settled, model):
    text = settled({})[0]["output"]["text"]
    stop = ["--stop", ":" + text[:2], "--stop", text[3:6]]
    assert len(answer(settled({}, *stop)[0])) <= 2
    receipt, path = settled({}, *stop, "--stop-in-answer")
    assert stated(receipt)["stop_in_answer"] is True and text[3:6] in receipt["output"]["text"]
    assert "VERIFIED" in invar("verify", path, "--model-name", model).text
    del receipt["input"]["stop_in_answer"]
    path.write_text(json.dumps(reseal(receipt)))
    done = execute(["verify", path, "--model-name", model])
    assert done.code == 1 and "output.tokens" in done.text, done.text


def test_a_forged_end_is_found(settled, model):
    """`validate` cannot know where a stop string ends; `verify` does."""
    receipt, path = settled({}, "--stop", "never said")
    assert receipt["output"]["finish_reason"] == "length"
    receipt["output"]["tokens"].pop(), receipt["output"]["logits"].pop()
    receipt["output"]["finish_reason"] = "stop"
    path.write_text(json.dumps(reseal(receipt)))
    assert execute(["validate", path]).code == 0
    done = execute(["verify", path, "--model-name", model])
    assert done.code == 1 and "output.finish_reason" in done.text
    text = receipt["output"]["text"]
    receipt = settled({})[0]
    receipt["input"]["stop_strings"] = [text[3:6]]
    path.write_text(json.dumps(reseal(receipt)))
    done = execute(["verify", path, "--model-name", model])
    assert done.code == 1 and "output.tokens" in done.text


def test_a_run_says_what_is_set(settled):
    config = {"suppress_tokens": [9], "repetition_penalty": 1.25, "stop_strings": ["zzz"]}
    done = settled(config, "--json", tokens=2, code=True)
    said = json.loads(done.out)["sampling"]
    assert {k: said[k] for k in config} == config and "min_p" not in said
    assert "greedy, repetition penalty 1.25, without 1 token, 1 stop string, at most 2" in (
        settled(config, tokens=2, code=True).text
    )


def test_an_option_stands_before_the_checkpoint(settled):
    config = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "suppress_tokens": [5]}
    assert stated(settled(config)[0]) == {
        "repetition_penalty": "1.3",
        "no_repeat_ngram_size": 2,
        "suppress_tokens": [5],
    }
    options = ["--repetition-penalty", 1, "--no-repeat-ngram-size", 3, "--suppress-tokens", "9,4,9"]
    assert stated(settled(config, *options)[0]) == {
        "no_repeat_ngram_size": 3,
        "suppress_tokens": [4, 9],
    }
    assert stated(settled(config, "--no-generation-config")[0]) == {}
    receipt = settled({"min_p": 0.2}, "--min-p", 0.1)[0]
    assert stated(receipt) == {"min_p": "0.1"} and receipt["input"]["do_sample"]
    assert stated(settled({"min_p": 0.2})[0]) == {}, "nothing is drawn"


def test_a_token_that_the_model_does_not_have(settled):
    for config in ({"bad_words_ids": [[99999]]}, {"forced_eos_token_id": 99999}):
        done = settled(config, code=2, tokens=1)
        (name,) = config
        assert done.code == 2 and name in done.text and "99999" in done.text
    assert stated(settled({"suppress_tokens": [99999]})[0]) == {"suppress_tokens": [99999]}


def test_config_json_may_not_say_it(model, tmp_path):
    (model / "generation_config.json").unlink()
    file = model / "config.json"
    config = json.loads(file.read_text())
    for key, value in {"repetition_penalty": 1.1, "suppress_tokens": [5]}.items():
        file.write_text(json.dumps(config | {key: value}))
        refused(
            "run",
            *("--model-name", model, "--prompt-text", "a", "--receipt-path", tmp_path / "r.json"),
            code=3,
            names=["config.json", key, "generation_config.json"],
        )


def test_infer_takes_the_options_that_need_no_text(answer, tasks):
    plan = next(tasks.glob("*/plan.invar"))
    options = ["--max-new-tokens", 8, "--tokens", "0,5,7", "--tokens", "0,9"]
    plain = invar("infer", plan, *options).out
    assert invar("infer", plan, *options, "--no-repeat-ngram-size", 1).out != plain
    assert invar("infer", plan, *options, "--repetition-penalty", 1).out == plain
