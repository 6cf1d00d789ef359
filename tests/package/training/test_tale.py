"""The model that Invar trained itself (models/tale-7m): its text, its tokens, its prompts, and
steps of its training."""

import json
import subprocess
import sys

import pytest
from conftest import BIN, BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python")]
from invar import training as t  # noqa: E402
from invar.training import verification  # noqa: E402

MODEL, SCRIPT = ROOT / "models/tale-7m", ROOT / "examples/tale/train.py"


@pytest.fixture(scope="module")
def script():
    """The modules of the script, imported from beside it."""
    with verification.beside(SCRIPT):
        yield verification.script_of(SCRIPT)


def invar(*arguments, given=None):
    done = subprocess.run(
        [BIN, *map(str, arguments)], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_texts_tokens_are_those_of_the_tokenizer(script):
    text = sys.modules["text"]
    documents = "".join(text.document(1, i) for i in range(60))
    found = json.loads(
        invar("encode", "--model-name", MODEL, "--prompt-text", "-", given=documents)
    )
    assert found == text.Tokenizer(MODEL / "tokenizer.json").encode(documents)
    assert script.rows(1, 0, 1)[0] == found[:513]


@pytest.mark.parametrize("seed", range(3))
def test_the_texts_prompts_are_those_of_the_template(script, tmp_path, seed):
    text, tools = sys.modules["text"], sys.modules["talks.tools"]
    listed, messages = tools.tool_talk(text.Dice(seed), text.small)
    system = [{"role": "system", "content": "Answer briefly."}] if seed == 1 else []
    messages = system + messages[:-1]
    (tmp_path / "tools.json").write_text(json.dumps(listed))
    (tmp_path / "messages.json").write_text(json.dumps(messages))
    given = ("--messages", tmp_path / "messages.json", "--tools", tmp_path / "tools.json")
    found = invar("render", "--model-name", MODEL, *given)
    assert found.removesuffix("\n") == text.rendered(messages, listed, answer=True).removesuffix(
        "\n"
    )


def test_the_config_is_that_of_the_training(script):
    assert json.loads((MODEL / "config.json").read_text()) == sys.modules["model"].CONFIG


def test_a_first_step_has_its_bits(script):
    recorder = t.Recorder(script.training(steps=7), tensors=False)
    recorder.step()
    assert recorder.state.startswith("afd5339b44bf0c96")
