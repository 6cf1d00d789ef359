"""Fine-tunes the model that ships with low-rank adapters (LoRA) on a text: the same weights, logits
and losses on every machine.

python examples/finetune_lora.py [--steps 60] [--device cuda] [--micro-batch 2] [--workers 4]"""

import invar
import torch
from invar import ops, optim
from invar import training as t
from llama import CHECKPOINT, Config, Llama, loss, sequences, text_tokens

LENGTH, UNITS, RANK, SCALE = 32, 4, 4, 2.0


class Adapted(torch.nn.Module):
    """A linear layer that stays, and the product of two small matrices that are trained."""

    def __init__(self, linear, generator):
        super().__init__()
        self.linear = linear
        drawn = ops.rand(RANK, linear.in_features, generator=generator)
        bound = torch.tensor(linear.in_features**-0.5, dtype=torch.float32)
        self.a = torch.nn.Parameter(ops.mul(ops.sub(ops.mul(drawn, 2.0), 1.0), bound))
        self.b = torch.nn.Parameter(torch.zeros(linear.out_features, RANK))

    def forward(self, x):
        low = ops.linear(ops.linear(x, self.a), self.b)
        return ops.add(self.linear(x), ops.mul(low, SCALE))


def checkpoint():
    """The model that ships, its weights widened to f32."""
    model = Llama(Config.of(CHECKPOINT))
    stored = {}
    for file in sorted(CHECKPOINT.glob("*.safetensors")):
        stored |= t.load_tensors(file)
    model.load_state_dict(
        {n.removeprefix("model."): x.to(torch.float32) for n, x in stored.items()}, strict=True
    )
    return model.requires_grad_(False)


def training(device="cpu", lr=2e-3):
    model, generator = checkpoint(), invar.Generator(0)
    for layer in model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name), generator))
    model.to(device)
    return t.Trainer(
        model,
        optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=0.0),
        sequences(text_tokens(), LENGTH, UNITS, device),
        loss,
    )


def logits(trainer):
    """Those of the first sequences of the text."""
    (tokens,) = trainer.batches(0)
    return trainer.model(tokens[:, :-1])


def main(arguments=None):
    return t.main(training, logits, script=__file__, steps=60, short=2, arguments=arguments)


if __name__ == "__main__":
    main()
