"""A checkpoint with all that a receipt binds, and the runs of its receipts."""

import hashlib
import json
import struct

from arithmetic.library import f32
from pages import plan
from pages.checkpoint import Checkpoint, Tensor
from pages.llama import Llama
from pages.receipt import commitment, float_text, sealed, template_text
from pages.sampling import Parameters, draw
from pages.tokens import Tokenizer


class Model:
    def __init__(self, folder):
        self.checkpoint = Checkpoint(folder)
        self.llama = Llama(self.checkpoint)
        self.tokenizer = Tokenizer(self.checkpoint.bytes_of("tokenizer.json"))
        used = dict(self.checkpoint.tensors)
        tables = {"inv_freq": list(self.llama.inv_freq)}
        if self.llama.factor != 1:
            tables["attention_factor"] = [self.llama.factor]
        for name, table in tables.items():
            data = struct.pack(f"<{len(table)}f", *table)
            used[name] = Tensor(name, "f32", [len(table)], data)
        self.tensors = {name: used[name] for name in sorted(used, key=str.encode)}
        self.defaults = self.generation_config()

    def generation_config(self):
        """Its keys; one that is null counts as absent."""
        path = self.checkpoint.folder / "generation_config.json"
        found = json.loads(path.read_bytes()) if path.exists() else {}
        return {key: value for key, value in found.items() if value is not None}

    def stop_tokens(self):
        """onnx.8"""
        stop = self.defaults.get("eos_token_id", self.checkpoint.config.get("eos_token_id"))
        return stop if isinstance(stop, list) else [] if stop is None else [stop]

    def program(self):
        return plan.Plan(self.llama.shape, self.tensors).text()

    def description(self):
        """The sections `model` and `program` of its receipts."""
        tensors = [
            {"name": t.name, "dtype": t.dtype, "shape": t.shape, "sha256": t.sha256}
            for t in self.tensors.values()
        ]
        sha256 = {
            name: hashlib.sha256(self.checkpoint.bytes_of(f"{name}.json")).hexdigest()
            for name in ("config", "tokenizer")
        }
        return {
            "model": {
                "name": self.checkpoint.folder.name,
                "revision": "",
                "weights": plan.weights_digest(self.tensors),
                **sha256,
                "chat_template": hashlib.sha256(
                    template_text(self.checkpoint).encode()
                ).hexdigest(),
                "tensors": tensors,
            },
            "program": {
                "digest": plan.program_digest(self.program()),
                "numerics": "invar-1",
                "operation_set": "reproducible",
                "unicode": "16.0.0",
            },
        }

    def rows(self, prompt, answer):
        """For each token of the answer the logits that it is chosen from. `answer` may grow
        meanwhile."""
        session = self.llama.session()
        for token in prompt[:-1]:
            session.step(token, logits=False)
        yield session.step(prompt[-1])
        taken = 0
        while taken < len(answer):
            taken += 1
            yield session.step(answer[taken - 1])

    def run(self, prompt, limit, parameters, execution):
        """The receipt of a run."""
        tokens = self.tokenizer.encode(prompt)
        stop, answer, commitments = self.stop_tokens(), [], []
        for position, logits in enumerate(self.rows(tokens, answer)):
            commitments.append(commitment(logits))
            answer.append(draw(logits, parameters, position))
            if answer[-1] in stop or len(answer) == limit:
                break
        return sealed(
            {
                "schema": "invar-receipt 1",
                **self.description(),
                "input": {
                    "prompt": prompt,
                    "tokens": tokens,
                    "max_new_tokens": limit,
                    "stop_tokens": stop,
                    "do_sample": parameters.do_sample,
                    "temperature": float_text(parameters.temperature),
                    "top_k": parameters.top_k,
                    "top_p": float_text(parameters.top_p),
                    "seed": str(parameters.seed),
                },
                "output": {
                    "text": self.tokenizer.decode(answer),
                    "finish_reason": "stop" if answer[-1] in stop else "length",
                    "tokens": answer,
                    "logits": commitments,
                },
            },
            execution,
        )

    def findings(self, receipt):
        """receipt.11 and receipt.13 to receipt.16: what does not hold, first things first."""
        body = {k: receipt[k] for k in ("schema", "model", "program", "input", "output")}
        hashed = sealed(body, receipt["execution"])
        yield from (f"{k}: other" for k in hashed if hashed[k] != receipt[k])
        for section, own in self.description().items():
            for name in own:
                if name not in ("name", "revision") and own[name] != receipt[section][name]:
                    yield f"{section}.{name}: other"
        given, output = receipt["input"], receipt["output"]
        if self.tokenizer.encode(given["prompt"]) != given["tokens"]:
            yield "input.tokens: other"
        if self.tokenizer.decode(output["tokens"]) != output["text"]:
            yield "output.text: other"
        yield from self.steps(given, output)

    def steps(self, given, output):
        parameters = Parameters(
            given["do_sample"], f32(float(given["temperature"])), given["top_k"],
            f32(float(given["top_p"])), int(given["seed"]),
        )  # fmt: skip
        for name in ("temperature", "top_p"):  # receipt.3
            if float_text(getattr(parameters, name)) != given[name]:
                yield f"input.{name}: another spelling"
        answer = output["tokens"]
        ends = [t in given["stop_tokens"] for t in answer]
        if any(ends[:-1]) or output["finish_reason"] != ("stop" if ends[-1] else "length"):
            yield "output.finish_reason: other"
        if len(output["logits"]) != len(answer) or (
            not ends[-1] and len(answer) != given["max_new_tokens"]
        ):
            yield "output.tokens: another number"
        for i, logits in enumerate(self.rows(given["tokens"], answer[:-1])):
            if commitment(logits) != output["logits"][i]:
                yield f"output.logits[{i}]: other"
            if draw(logits, parameters, i) != answer[i]:
                yield f"output.tokens[{i}]: other"
