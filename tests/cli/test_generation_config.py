"""generation_config.json: what it says is done, or refused by name; nothing in it is ignored in
silence."""

import json

import pytest
from conftest import MODEL, invar, refused


@pytest.fixture
def with_config(model, tasks, tmp_path):
    """with_config(generation_config, *options) -> the command of a run with this file in the
    checkpoint (None: without one)."""

    def f(config, *options, tokens=1):
        file = model / "generation_config.json"
        if config is None:
            file.unlink()
        else:
            file.write_text(config if isinstance(config, str) else json.dumps(config))
        length = [] if tokens is None else ["--max-new-tokens", tokens]
        return [
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            *length,
            "--tasks-root",
            tasks,
            "--receipt-path",
            tmp_path / "r.json",
            *options,
        ]

    return f


@pytest.fixture
def sampling_of(with_config, tmp_path):
    """-> what the receipt says of sampling and length."""

    def f(config, *options, tokens=1):
        invar(*with_config(config, *options, tokens=tokens))
        said = json.loads((tmp_path / "r.json").read_text())["input"]
        return {
            k: said[k]
            for k in ("do_sample", "temperature", "top_k", "top_p", "seed", "max_new_tokens")
        }

    return f


def sampling(do_sample, temperature="1", top_k=0, top_p="1", seed="0", max_new_tokens=1):
    return {
        "do_sample": do_sample,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    }


WRONG = (
    [("do_sample", v) for v in ("1", '"true"', "[true]")]
    + [("temperature", v) for v in ('"0.8"', "0", "-1", "1e-38", "1e39", "1e400", "true", "[0.8]")]
    + [("top_p", v) for v in ('"0.9"', "0", "1.5", "-0.1", "1e-45", "{}")]
    + [
        ("top_k", v)
        for v in (
            "0.5",
            "50.0",
            "-1",
            "2147483648",
            "4294967297",
            "9223372036854775808",
            "18446744073709551617",
            '"50"',
            "true",
            "1e1",
        )
    ]
    + [("min_p", v) for v in ("1.5", "-0.1", '"0.1"', "1e-45")]
    + [("epsilon_cutoff", v) for v in ("1", "-0.1", "true")]
    + [("repetition_penalty", v) for v in ("0", "-1", '"1.0"', "true", "1e39", "1e-40")]
    + [
        (k, v)
        for k in ("no_repeat_ngram_size", "min_length", "min_new_tokens")
        for v in ("-1", "1.5")
    ]
    + [("forced_bos_token_id", v) for v in ("-1", "[1]", "true")]
    + [("forced_eos_token_id", v) for v in ("-1", "1.5", '"</s>"')]
    + [(k, v) for k in ("suppress_tokens", "begin_suppress_tokens") for v in ("5", "true", "{}")]
    + [("bad_words_ids", v) for v in ("5", "true")]
    + [("remove_invalid_values", v) for v in ("1", '"true"')]
    + [("stop_strings", v) for v in ("5", "true")]
    + [
        (k, v)
        for k in ("max_new_tokens", "max_length")
        for v in ("0", "-1", "2.5", '"8"', "4294967297")
    ]
    + [
        ("eos_token_id", v)
        for v in ("-1", "1.5", '"</s>"', "[1,-1]", "4294967297", "true", "18446744073709551615")
    ]
)


@pytest.mark.parametrize("key,value", WRONG)
def test_values_of_the_wrong_type_or_range(with_config, key, value):
    shown = value[1:-1].split(",")[-1] if key == "eos_token_id" and value.startswith("[") else value
    done = refused(
        *with_config(
            f'{{"do_sample": true, "{key}": {value}}}'
            if key != "do_sample"
            else f'{{"do_sample": {value}}}'
        ),
        names=["generation_config.json", key],
    )
    assert shown.lower() in done.text or f"{float(value):g}" in done.text, done.text


def test_not_an_object(with_config):
    for text in [
        "[]",
        "{",
        "7",
        "",
        '{"do_sample": true,}',
        '{"top_k": 5, "top_k": 6}',
        '{"top_k": 05}',
    ]:
        refused(*with_config(text), names=["generation_config.json"])


# Keys of transformers' GenerationConfig: values that change which tokens come out, and the values
# that do not.
SWITCHES = {
    "max_time": ([1.5], []),
    "num_beams": ([4], [1]),
    "num_beam_groups": ([2], [1]),
    "diversity_penalty": ([0.5], [0, 0.0]),
    "penalty_alpha": ([0.6], [0.0]),
    "dola_layers": (["low", [1]], []),
    "constraints": ([[1]], [[]]),
    "force_words_ids": ([[[5]]], [[]]),
    "top_h": ([0.4], []),
    "typical_p": ([0.9], [1, 1.0]),
    "eta_cutoff": ([3e-4], [0.0]),
    "encoder_repetition_penalty": ([1.1], [1.0]),
    "encoder_no_repeat_ngram_size": ([3], [0]),
    "exponential_decay_length_penalty": ([[5, 1.1]], []),
    "sequence_bias": ([[[[5], 1.0]]], [{}, []]),
    "token_healing": ([True], [False]),
    "guidance_scale": ([1.5], [1, 1.0]),
    "watermarking_config": ([{"bias": 2.0}], []),
    "num_return_sequences": ([2], [1]),
    "is_assistant": ([True], [False]),
    "assistant_ensemble_weight": ([0.5], []),
    "cache_implementation": (["quantized", "mine", 1], ["static", "dynamic", "hybrid"]),
    "cache_config": ([{"nbits": 4}], [{}]),
}
HARMLESS = {
    "early_stopping": "never",
    "renormalize_logits": True,
    "length_penalty": 2.0,
    "use_cache": False,
    "max_cache_len": 99,
    "low_memory": True,
    "prefill_chunk_size": 7,
    "compile_config": {},
    "disable_compile": True,
    "continuous_batching_config": {},
    "output_attentions": True,
    "output_hidden_states": True,
    "output_scores": True,
    "output_logits": True,
    "return_dict_in_generate": True,
    "pad_token_id": 5,
    "bos_token_id": 0,
    "decoder_start_token_id": 0,
    "use_mtp": True,
    "num_assistant_tokens": 20,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.4,
    "prompt_lookup_num_tokens": 10,
    "max_matching_ngram_size": 2,
    "assistant_early_exit": 3,
    "assistant_lookbehind": 10,
    "target_lookbehind": 10,
    "speculation_type": "dflash",
    "_from_model_config": True,
    "_commit_hash": "0",
    "_original_object_hash": 1,
    "transformers_version": "5.23.0",
}


@pytest.mark.parametrize("key", SWITCHES)
def test_what_is_not_implemented_is_refused_unless_it_is_off(with_config, sampling_of, key):
    on, off = SWITCHES[key]
    for value in on:
        refused(
            *with_config({"do_sample": True, key: value}),
            code=3,
            names=["generation_config.json", f"'{key}' = "],
        )
    for value in [None, *off]:
        assert sampling_of({"do_sample": True, "top_k": 5, key: value}) == sampling(True, top_k=5)


def test_what_only_shapes_draws_matters_where_tokens_are_drawn(with_config, sampling_of):
    config = {"typical_p": 0.05}
    assert sampling_of(config) == sampling(False)
    refused(*with_config(config, "--temperature", 0.5), code=3, names=["'typical_p' = 0.05"])
    assert sampling_of({"do_sample": True, **config}, "--no-do-sample") == sampling(False)
    # What changes a greedy answer, too, is refused there.
    refused(
        *with_config({"num_beams": 4}, "--no-do-sample"),
        code=3,
        names=["num_beams"],
    )


def test_keys_that_change_no_token_pass(sampling_of):
    assert sampling_of({"do_sample": True, "top_k": 5, **HARMLESS}) == sampling(True, top_k=5)


@pytest.mark.parametrize(
    "key",
    [
        "frequency_penalty",
        "presence_penalty",
        "repetition_penality",
        "Temperature",
        "generation_kwargs",
        "",
        "\x00",
    ],
)
def test_unknown_keys_are_refused_by_name(with_config, sampling_of, key):
    refused(
        *with_config({key: 0.5}),
        code=3,
        names=["generation_config.json", f"'{json.dumps(key)[1:-1]}'", "does not know"],
    )
    assert sampling_of({key: None}) == sampling(False)


def test_defaults_are_those_of_transformers(sampling_of):
    assert sampling_of({"do_sample": True}) == sampling(True, top_k=50)
    assert sampling_of({"do_sample": True, "top_k": None}) == sampling(True, top_k=50)
    assert sampling_of({"do_sample": True, "top_k": 0}) == sampling(True)
    assert sampling_of(
        {"do_sample": True, "temperature": 0.7, "top_p": 0.9}, "--seed", 3
    ) == sampling(True, "0.7", 50, "0.9", "3")
    for absent in ({}, {"do_sample": None}, {"do_sample": False}):
        assert sampling_of(absent) == sampling(False)
    assert sampling_of({"temperature": 0.7, "top_k": 20}) == sampling(False)
    assert sampling_of({"temperature": 0.7}, "--top-p", 0.5) == sampling(True, "0.7", 50, "0.5")
    assert sampling_of(None, "--temperature", 0.7) == sampling(True, "0.7", 50)


def test_no_file_is_greedy(sampling_of):
    assert sampling_of(None) == sampling(False)


def test_a_file_may_be_left_out(sampling_of):
    config = {"do_sample": True, "num_beams": 4, "max_new_tokens": 3, "frobnicate": 1}
    assert sampling_of(config, "--no-generation-config") == sampling(False)
    assert sampling_of(config, "--no-generation-config", "--top-k", 7) == sampling(True, top_k=7)
    assert sampling_of(config, "--no-generation-config", tokens=None)["max_new_tokens"] == 128


def test_the_length_of_the_answer(with_config, sampling_of):
    """ROMEO: is 3 tokens; the context is 512."""
    assert sampling_of({}, tokens=None)["max_new_tokens"] == 128
    assert sampling_of({"max_new_tokens": 4}, tokens=None)["max_new_tokens"] == 4
    assert sampling_of({"max_new_tokens": 4}, tokens=6)["max_new_tokens"] == 6
    assert sampling_of({"max_length": 9}, tokens=None)["max_new_tokens"] == 6
    assert sampling_of({"max_length": 9, "max_new_tokens": 4}, tokens=None)["max_new_tokens"] == 4
    assert sampling_of({"max_length": 4096}, tokens=None)["max_new_tokens"] == 509
    assert sampling_of({"max_new_tokens": 4096}, tokens=None)["max_new_tokens"] == 509
    refused(*with_config({"max_length": 3}, tokens=None), names=["max_length", "--max-new-tokens"])
    refused(*with_config({}, tokens=510), names=["--max-new-tokens 509"])


def test_end_tokens(with_config, tmp_path):
    for config, stop in [
        ({"eos_token_id": 7}, [7]),
        ({"eos_token_id": [7, 9]}, [7, 9]),
        ({"eos_token_id": [9, 7, 9]}, [7, 9]),
        ({"eos_token_id": None}, [1]),
        ({}, [1]),
    ]:
        invar(*with_config(config))
        assert json.loads((tmp_path / "r.json").read_text())["input"]["stop_tokens"] == stop
        invar("verify", tmp_path / "r.json")


@pytest.mark.parametrize(
    "command", [["encode", "--prompt-text", "x"], ["decode", "--tokens", "5"]], ids=lambda c: c[0]
)
def test_commands_that_generate_nothing_do_not_ask(with_config, command):
    model = with_config({"num_beams": 4})[2]
    invar(command[0], "--model-name", model, *command[1:])


def test_every_run_says_how_it_chooses(with_config, tmp_path):
    def said(config, *options):
        lines = invar(*with_config(config, *options)).err.decode().split("\n")
        return [
            line.removeprefix("  sampling  ") for line in lines if line.startswith("  sampling  ")
        ]

    assert said(None) == ["greedy, at most 1 new tokens"]
    assert said({"do_sample": True, "temperature": 0.8}, "--seed", 7, "--top-p", "0.95") == [
        "temperature 0.8, top-k 50, top-p 0.95, seed 7, at most 1 new tokens"
    ]
    assert said(None, "--top-k", 0) == [
        "temperature 1, top-k all, top-p 1, seed 0, at most 1 new tokens"
    ]
    answer = invar(
        *with_config(
            {"do_sample": True, "temperature": 0.8}, "--json", "--seed", 18446744073709551615
        )
    ).json()
    assert answer["sampling"] == {
        "do_sample": True,
        "temperature": 0.8,
        "top_k": 50,
        "top_p": 1.0,
        "seed": 18446744073709551615,
    }
    assert answer["max_new_tokens"] == 1


def test_the_shipped_model_says_what_it_did(answer):
    assert (
        answer["receipt_hash"] == "e8032411df4cf61c8e2cebf9b15e3e447aa0a5ce9d05b77ac5073e76f003765a"
    )
    assert answer["sampling"] == {
        "do_sample": True,
        "temperature": 0.8,
        "top_k": 50,
        "top_p": 1.0,
        "seed": 0,
    }
    assert json.loads((MODEL / "generation_config.json").read_text())["top_k"] == 50
