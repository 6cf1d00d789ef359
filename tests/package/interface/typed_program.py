"""A program of a user, which mypy --strict reads (test_annotations.py) and nobody runs."""

import invar
import numpy as np
import torch
from invar import bitexact, nn, ops, optim, primitives, training

x = torch.randn(4, 8)
y: torch.Tensor = ops.softmax(x, dim=-1)
z: np.ndarray = ops.sum(np.ones((2, 3), np.float32), dim=1)
m = ops.matmul(x, x.T)
values, indices = ops.topk(x, 2)
loss = ops.cross_entropy(x, torch.zeros(4, dtype=torch.int64))
w: torch.Tensor = bitexact.rms_norm(x, torch.ones(8), eps=1e-6)
v: torch.Tensor = bitexact.var(x, dim=-1)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.LayerNorm(4))
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.body(x)
        out: torch.Tensor = self.head(hidden)
        return out


model = Network()
optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
optim.clip_grad_norm_(model.parameters(), 1.0)
schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
exact = training.ExactGradients(model)
exact.zero()
exact.backward(ops.mse_loss(model(x), torch.zeros(4, 2), reduction="none").mean(1))
exact.write(divisor=4)
optimizer.step()


def batches(step: int) -> tuple[torch.Tensor, ...]:
    return (x,)


def loss_of(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = model(x)
    return out.mean(1)


trainer = training.Trainer(model, optimizer, batches, loss_of)
training.Recorder(trainer, "r.json", script=__file__).run(3)
verdict = training.verify("r.json", steps="1:2")
ok: bool = verdict.holds

with invar.reproducible():
    torch.matmul(x, x.T)
other: torch.nn.Module = invar.from_torch_module(torch.nn.Linear(2, 2), inplace=False)

program = invar.compile("model.onnx", dims={"batch": 1}, threads=2)
outputs = program.run(np.ones(3, np.float32), mask=np.ones(3))
print(program.inputs[0].name, program.digest, program.isa, outputs["y"].shape)
module: torch.nn.Module = invar.convert("model.onnx", invar.CompileOptions(artifacts_dir="a"))
answer = invar.generate("models/shakespeare-4m", "ROMEO:", max_new_tokens=4, seed=3)
text: str = answer.text
for piece in answer:
    print(piece)
if not invar.verify(answer.receipt, "models/shakespeare-4m"):
    raise SystemExit(1)
session = invar.InferenceSession("m", device="cuda")
print(session.complete(prompt="a", max_new_tokens=3).receipt["receipt_hash"])
invar.set_threads(2)
invar.manual_seed(1)
g = invar.Generator()
ops.dropout(x, 0.5, generator=g)
p: torch.Tensor = primitives.matmul(x, x, trans_b=1)
invar.synchronize()
try:
    ops.matmul(x, x)
except invar.BadInput as e:
    print(e, e.exit_code)
nn.init.kaiming_uniform_(torch.empty(3, 3), a=1.0)
layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
h: torch.Tensor = layer(x)
sd = model.state_dict()
invar.set_isa("")
print(invar.__version__, invar.errors.OperandError)
