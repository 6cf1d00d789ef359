"""A checkpoint with all that a receipt binds, and the runs of its receipts."""

import hashlib
import json

from arithmetic.library import f32
from pages import program
from pages.checkpoint import Checkpoint
from pages.decoder import Decoder
from pages.llama import Llama
from pages.processors import ends, processed
from pages.receipt import commitment, float_text, sealed, template_text
from pages.sampling import Parameters, draw
from pages.tokens import Tokenizer


class Model:
    def __init__(self, folder, profile="fp32"):
        self.profile = profile
        self.checkpoint = Checkpoint(folder)
        recipe = Llama if self.checkpoint.config["model_type"] == "llama" else Decoder
        self.decoder = recipe(self.checkpoint, profile)
        self.tokenizer = Tokenizer(self.checkpoint.bytes_of("tokenizer.json"))
        names = sorted(self.checkpoint.tensors, key=str.encode)
        self.tensors = {name: self.checkpoint.tensors[name] for name in names}
        self.defaults = self.generation_config()

    def generation_config(self):
        """Its keys; one that is null counts as absent."""
        path = self.checkpoint.folder / "generation_config.json"
        found = json.loads(path.read_bytes()) if path.exists() else {}
        return {key: value for key, value in found.items() if value is not None}

    def stop_tokens(self):
        """onnx.8"""
        stop = self.defaults.get("eos_token_id", self.checkpoint.config.get("eos_token_id"))
        found = stop if isinstance(stop, list) else [] if stop is None else [stop]
        return sorted(set(found))  # receipt.21

    def program_text(self):
        return program.program_text(self.decoder.recipe, self.decoder.parameters(), self.profile)

    def description(self):
        """The sections `model` and `program` of its receipts."""
        text = self.program_text()
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
                "weights": program.weights_digest(self.tensors),
                **sha256,
                "chat_template": hashlib.sha256(
                    template_text(self.checkpoint).encode()
                ).hexdigest(),
                "tensors": tensors,
            },
            "program": {
                "recipe": self.decoder.recipe,
                "digest": hashlib.sha256(text.encode()).hexdigest(),
                "numerics": "invar-1",
                "profile": self.profile,
                "operation_set": "reproducible",
                "unicode": "16.0.0",
            },
        }

    def rows(self, prompt, answer):
        """For each token of the answer the logits that it is chosen from. `answer` may grow
        meanwhile."""
        session = self.decoder.session()
        for token in prompt[:-1]:
            session.step(token, logits=False)
        yield session.step(prompt[-1])
        taken = 0
        while taken < len(answer):
            taken += 1
            yield session.step(answer[taken - 1])

    def run(self, prompt, limit, parameters, execution, settings=None):
        """The receipt of a run. settings: optional fields of its `input`, as it spells them."""
        tokens, stop = self.tokenizer.encode(prompt), self.stop_tokens()
        given = {
            "prompt": prompt,
            "tokens": tokens,
            "max_new_tokens": limit,
            "stop_tokens": stop,
            "do_sample": parameters.do_sample,
            "temperature": float_text(parameters.temperature),
            "top_k": parameters.top_k,
            "top_p": float_text(parameters.top_p),
            "seed": str(parameters.seed),
            **(settings or {}),
        }
        answer, commitments, reason = [], [], "length"
        for position, logits in enumerate(self.rows(tokens, answer)):
            commitments.append(commitment(logits))
            answer.append(draw(processed(logits, given, answer), parameters, position))
            if answer[-1] in stop or ends(self.tokenizer, given, answer):
                reason = "stop"
                break
            if len(answer) == limit:
                break
        return sealed(
            {
                "schema": "invar-receipt 2",
                **self.description(),
                "input": given,
                "output": {
                    "text": self.tokenizer.decode(answer),
                    "finish_reason": reason,
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
            f32(float(given.get("min_p", 0))), f32(float(given.get("epsilon_cutoff", 0))),
            int(given.get("stream", "0")),
        )  # fmt: skip
        floats = ("temperature", "top_p", "min_p", "epsilon_cutoff", "repetition_penalty")
        floats += ("frequency_penalty", "presence_penalty")
        for name in (n for n in floats if n in given):  # receipt.3
            if float_text(f32(float(given[name]))) != given[name]:
                yield f"input.{name}: another spelling"
        answer = output["tokens"]
        stops = [
            t in given["stop_tokens"] or ends(self.tokenizer, given, answer[: i + 1])
            for i, t in enumerate(answer)
        ]
        if any(stops[:-1]) or output["finish_reason"] != ("stop" if stops[-1] else "length"):
            yield "output.finish_reason: other"
        if len(output["logits"]) != len(answer) or (
            not stops[-1] and len(answer) != given["max_new_tokens"]
        ):
            yield "output.tokens: another number"
        for i, logits in enumerate(self.rows(given["tokens"], answer[:-1])):
            if commitment(logits) != output["logits"][i]:
                yield f"output.logits[{i}]: other"
            if draw(processed(logits, given, answer[:i]), parameters, i) != answer[i]:
                yield f"output.tokens[{i}]: other"
