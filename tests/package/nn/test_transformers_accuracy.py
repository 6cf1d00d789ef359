"""Models and the Trainer of Hugging Face, unmodified, under invar.reproducible()."""

import importlib.util

import pytest
import torch
from built import digest, invar, script, whole

if (
    importlib.util.find_spec("transformers") is None
    or importlib.util.find_spec("accelerate") is None
):
    pytest.skip("transformers and accelerate are not installed", allow_module_level=True)
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

SIZES = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
IDS = torch.arange(24).reshape(2, 12) * 7 % 64


def llama(attention):
    model = LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation=attention))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(whole(p.shape, i, 2**-13) + (p.ndim == 1))
    return model


def step(model):
    found = model(input_ids=IDS, labels=IDS)
    found.loss.backward()
    return [found.loss, found.logits, *(p.grad for p in model.parameters())]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_llama_and_its_gradients(attention):
    model = llama(attention)
    with invar.reproducible():
        ours = step(model)
    for a, b in zip(ours, step(llama(attention))):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    converted = invar.from_torch_module(llama(attention))
    assert digest([converted(input_ids=IDS).logits]) == digest(ours[1:2])


TRAINER = """
import tempfile, torch
from built import digest, invar
from test_transformers_accuracy import llama
from transformers import Trainer, TrainingArguments

torch.set_num_threads(THREADS)
model = llama("sdpa")
data = [{"input_ids": torch.arange(12) * k % 64, "labels": torch.arange(12) * k % 64} for k in range(1, 33)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), use_cpu=True, max_steps=3, per_device_train_batch_size=4,
    report_to=[], save_strategy="no", logging_steps=1, learning_rate=1e-3, disable_tqdm=True,
    optim=OPTIM,
)
with invar.reproducible():
    Trainer(model, arguments, train_dataset=data).train()
print(digest(model.parameters()))
"""


def test_the_trainer_gives_the_same_bits():
    runs = [
        ("1", "'adamw_torch_fused'", "default"),
        ("2", "'adamw_torch'", "avx2"),
    ]
    found = {
        script(
            TRAINER.replace("THREADS", threads).replace("OPTIM", optimizer),
            ATEN_CPU_CAPABILITY=capability,
            HF_HUB_OFFLINE="1",
        ).splitlines()[-1]
        for threads, optimizer, capability in runs
    }
    assert len(found) == 1 and len(found.pop()) == 64
