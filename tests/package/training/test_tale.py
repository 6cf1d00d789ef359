"""The model that Invar trained itself (models/tale-7m): its text, its tokens, its prompts, and
steps of its training."""

import json
import subprocess
import sys

import pytest
from conftest import BIN, BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests/serve")]
from invar import training as t  # noqa: E402
from invar.training import verification  # noqa: E402
from server import Server  # noqa: E402

MODEL, SCRIPT = ROOT / "models/tale-7m", ROOT / "examples/tale/train.py"
RECEIPT = MODEL / "training.json"


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


def state_of(folder):
    """The weights of the checkpoint as the training's state: f32, without an optimiser's."""
    read = t.load_tensors(folder / "model.safetensors")
    return {name: tensor.float() for name, tensor in read.items()}


def test_the_receipt_is_valid():
    assert len(t.Receipt.read(RECEIPT)) > 100


def test_the_first_step_has_the_receipts_bits():
    verdict = t.verify(RECEIPT, SCRIPT, 0)
    assert verdict.holds and verdict.executed == 1, verdict.text


def test_the_weights_are_the_receipts():
    """Those after the last step but one."""
    receipt = t.Receipt.read(RECEIPT)
    state = state_of(MODEL)
    assert t.state_digest(state) == receipt.state(len(receipt) - 1)
    state["model.norm.weight"][0] += 2**-7
    assert t.state_digest(state) != receipt.state(len(receipt) - 1)


def test_the_step_after_the_weights_has_the_receipts_bits(tmp_path):
    data = json.loads(RECEIPT.read_text())
    last = len(data["steps"]) - 1
    data["states"] = [last]
    copy = tmp_path / "training.json"
    copy.write_text(json.dumps(data))
    t.save_tensors(tmp_path / f"training.json.states/{last:08}.safetensors", state_of(MODEL))
    verdict = t.verify(copy, SCRIPT, last)
    assert verdict.holds and verdict.executed == 1, verdict.text


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    tasks, receipts = tmp_path_factory.mktemp("tasks"), tmp_path_factory.mktemp("receipts")
    made = Server(MODEL, tasks, receipts)
    yield made
    assert made.stop() == 0


@pytest.mark.parametrize("seed", [100, 101, 103])
def test_it_calls_the_tool_and_says_what_the_tool_answers(script, server, seed):
    text, tools = sys.modules["text"], sys.modules["talks.tools"]
    listed, messages = tools.tool_talk(text.Dice(seed), text.small)
    asked = next(i for i, message in enumerate(messages) if message.get("tool_calls"))
    body = {"tools": listed, "temperature": 0, "max_tokens": 100}
    (choice,) = server.complete({"messages": messages[:asked], **body}, chat=True)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    made = call["function"] | {"arguments": json.loads(call["function"]["arguments"])}
    assert [made] == [c["function"] for c in messages[asked]["tool_calls"]]
    said = [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "37"}]
    (choice,) = server.complete({"messages": messages[:asked] + said, **body}, chat=True)["choices"]
    assert choice["finish_reason"] == "stop" and choice["message"]["content"].endswith(".")


def test_a_story_is_the_same_everywhere(tmp_path):
    """The receipt of a sampled story, which any machine computes."""
    path = tmp_path / "r.json"
    asked = "Tell me a story about a fox who lost a ball."
    drawn = ("--user", asked, "--seed", 1, "--max-new-tokens", 400)
    invar("run", "--model-name", MODEL, *drawn, "--receipt-path", path)
    assert "fox" in json.loads(path.read_text())["output"]["text"]
    assert json.loads(path.read_text())["receipt_hash"].startswith("f5b502b29561521f")
