"""`search` of genai_config.json says how tokens are chosen where there is no generation_config.json
(onnx.32); nothing in it is ignored in silence."""

import json

import pytest
from conftest import invar
from test_onnx_decoders import PROMPT, folder

# As onnxruntime-genai 0.18 writes it, where a model says nothing of sampling.
WRITTEN = {
    "diversity_penalty": 0.0, "do_sample": False, "early_stopping": True, "length_penalty": 1.0,
    "max_length": 64, "min_length": 0, "no_repeat_ngram_size": 0, "num_beams": 1,
    "num_return_sequences": 1, "past_present_share_buffer": True, "repetition_penalty": 1.0,
    "temperature": 1.0, "top_k": 50, "top_p": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("genai") / "built", config="genai_config.json")


@pytest.fixture
def answer(built, tmp_path):
    """answer(search, *options) -> the receipt, or with `code` the refusal."""

    def f(search, *options, code=0):
        settings = json.loads((built / "genai_config.json").read_text())
        settings["search"] = search if not isinstance(search, dict) else WRITTEN | search
        (built / "genai_config.json").write_text(json.dumps(settings))
        out = tmp_path / "r.json"
        done = invar("run", "--model-name", built, "--prompt-text", PROMPT, "--receipt-path", out,
                     *options, code=code)  # fmt: skip
        return done.text if code else json.loads(out.read_text())

    return f


def test_what_the_builder_writes_changes_nothing(answer):
    assert answer({})["output"] == answer(None)["output"]


def test_settings_take_effect(answer, built, tmp_path):
    drawn = answer({"do_sample": True, "top_k": 20, "top_p": 0.5, "temperature": 0.25})
    said = {k: drawn["input"][k] for k in ("do_sample", "top_k", "top_p", "temperature")}
    assert said == {"do_sample": True, "top_k": 20, "top_p": "0.5", "temperature": "0.25"}
    assert invar("verify", tmp_path / "r.json", "--model-name", built).out.startswith(b"VERIFIED")
    assert answer({"repetition_penalty": 1.5}) != answer({})
    prompt = len(answer({})["input"]["tokens"])
    assert answer({"max_length": prompt + 3})["input"]["max_new_tokens"] == 3
    assert answer({"do_sample": True}, "--no-generation-config")["input"]["do_sample"] is False


@pytest.mark.parametrize(
    "search, code, word",
    [
        ({"num_beams": 4}, 3, "num_beams"),
        ({"num_return_sequences": 2}, 3, "num_return_sequences"),
        ({"random_seed": 7}, 3, "random_seed"),
        ({"eos_token_id": 7}, 3, "eos_token_id"),
        ({"top_p": "much"}, 2, "top_p"),
        ({"do_sample": True, "top_p": 1.5}, 2, "search"),
        ([], 2, "search"),
    ],
)
def test_what_is_not_covered_is_named(answer, search, code, word):
    refusal = answer(search, code=code)
    assert word in refusal and "genai_config.json" in refusal


def test_generation_config_comes_first(answer, built):
    path = built / "generation_config.json"
    path.write_text("{}")
    try:
        assert answer({"num_beams": 4, "do_sample": True})["input"]["do_sample"] is False
    finally:
        path.unlink()
