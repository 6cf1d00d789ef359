"""Writes adapters.json, the greedy tokens that transformers and peft give for the adapters of
test_adapters.py. Not a test: python tests/weights/make_adapters.py, with peft 0.21 installed."""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import test_adapters as made  # noqa: E402
import torch  # noqa: E402
from peft import PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


def tokens(folder, prompt):
    model = AutoModelForCausalLM.from_pretrained(made.MODEL, dtype=torch.float32)
    model = PeftModel.from_pretrained(model, folder).float().eval()
    ids = torch.tensor([prompt])
    answer = model.generate(input_ids=ids, max_new_tokens=made.ANSWER, do_sample=False)
    return answer[0, len(prompt) :].tolist()


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, make in made.ADAPTERS.items():
            found[name] = tokens(make(Path(folder) / name), made.PROMPT)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(ids)}" for name, ids in found.items())
    (HERE / "adapters.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
