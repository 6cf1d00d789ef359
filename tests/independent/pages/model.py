"""A checkpoint with all that a receipt binds, and the runs of its receipts."""

import hashlib
import json

from arithmetic.library import f32
from arithmetic.mutation import active
from pages import program
from pages.decoder import Decoder
from pages.files.checkpoint import opened
from pages.llama import Llama
from pages.pieces import Pieces
from pages.processors import OF_SPEECH, before, ends, processed
from pages.receipt import commitment, float_text, sealed, template_text
from pages.sampling import Parameters, draw
from pages.speech.recording import Recording
from pages.speech.whisper import Whisper
from pages.tokens import Tokenizer


class Model:
    def __init__(self, path, profile="fp32", adapter=None, recording=None):
        """recording: what a model hears, the path of a WAV file."""
        self.profile = profile
        self.checkpoint = opened(path, adapter)
        self.recording = recording and Recording(recording)
        recipes = {"llama": Llama, "whisper": Whisper}
        recipe = recipes.get(self.checkpoint.config["model_type"], Decoder)
        self.decoder = recipe(self.checkpoint, profile)
        # tokens.16: tokenizer.model counts where there is no tokenizer.json.
        pieces = not self.checkpoint.has("tokenizer.json")
        self.tokenizer_file = "tokenizer.model" if pieces else "tokenizer.json"
        file = self.checkpoint.bytes_of(self.tokenizer_file)
        self.tokenizer = Pieces(file, self.checkpoint) if pieces else Tokenizer(file)
        names = sorted(self.checkpoint.tensors, key=str.encode)
        self.tensors = {name: self.checkpoint.tensors[name] for name in names}
        self.defaults = self.generation_config()

    def generation_config(self):
        """Its keys; one that is null counts as absent."""
        name = "generation_config.json"
        there = self.checkpoint.has(name)
        found = json.loads(self.checkpoint.bytes_of(name)) if there else {}
        return {key: value for key, value in found.items() if value is not None}

    def stop_tokens(self, settings):
        """onnx.8 and sampling.31"""
        more = [] if active("further_stop_tokens_go_on") else settings.get("stop_token_ids", [])
        if settings.get("ignore_eos") and not active("ends_are_not_ignored"):
            return sorted(set(more))
        stop = self.defaults.get("eos_token_id", self.checkpoint.config.get("eos_token_id"))
        found = stop if isinstance(stop, list) else [] if stop is None else [stop]
        return sorted({*found, *more})  # receipt.21

    def program_text(self):
        found = self.decoder.parameters()
        if self.checkpoint.adapter:
            found |= self.checkpoint.adapter.parameters()
        return program.program_text(self.decoder.recipe, found, self.profile)

    def description(self):
        """The sections `model` and `program` of its receipts."""
        text = self.program_text()
        tensors = [
            {"name": t.name, "dtype": t.dtype, "shape": t.shape, "sha256": t.sha256}
            for t in self.tensors.values()
        ]
        files = {"config": "config.json", "tokenizer": self.tokenizer_file}
        sha256 = {
            name: hashlib.sha256(self.checkpoint.bytes_of(file)).hexdigest()
            for name, file in files.items()
        }
        return {
            "model": {
                "name": self.checkpoint.name,
                "revision": "",
                "weights": program.weights_digest(self.tensors),
                **sha256,
                "chat_template": hashlib.sha256(
                    template_text(self.checkpoint).encode()
                ).hexdigest(),
                "tensors": tensors,
                **(self.checkpoint.adapter.bound() if self.checkpoint.adapter else {}),
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

    def session(self, given):
        if not self.recording:
            return self.decoder.session()
        begin, model = given.get("audio_start", 0), self.decoder
        return model.session(self.recording.features(begin, model.heard, model.bands))

    def rows(self, given, answer):
        """For each token of the answer the logits that it is chosen from. `answer` may grow
        meanwhile."""
        session, prompt = self.session(given), before(given)
        for token in prompt[:-1]:
            session.step(token, logits=False)
        yield session.step(prompt[-1])
        taken = 0
        while taken < len(answer):
            taken += 1
            yield session.step(answer[taken - 1])

    def run(self, prompt, limit, parameters, execution, settings=None):
        """The receipt of a run. settings: optional fields of its `input`, as it spells them."""
        settings = settings or {}
        stop = self.stop_tokens(settings)
        given = {
            "prompt": prompt,
            "tokens": [] if self.recording else self.tokenizer.encode(prompt),
            "max_new_tokens": limit,
            "stop_tokens": stop,
            "do_sample": parameters.do_sample,
            "temperature": float_text(parameters.temperature),
            "top_k": parameters.top_k,
            "top_p": float_text(parameters.top_p),
            "seed": str(parameters.seed),
            **({"audio": self.recording.digest()} if self.recording else {}),
            **settings,
        }
        answer, commitments, reason = [], [], "length"
        for position, logits in enumerate(self.rows(given, answer)):
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

    def repeated(self, receipt):
        """The receipt that this implementation makes of the same input."""
        given = receipt["input"]
        settings = {name: given[name] for name in OF_SPEECH if name in given}
        prompt, limit = given.get("prompt", ""), given["max_new_tokens"]
        return self.run(prompt, limit, Parameters.of(given), receipt["execution"], settings)

    def findings(self, receipt):
        """receipt.11 and receipt.13 to receipt.16: what does not hold, first things first."""
        body = {k: receipt[k] for k in ("schema", "model", "program", "input", "output")}
        hashed = sealed(body, receipt["execution"])
        yield from (f"{k}: other" for k in hashed if hashed[k] != receipt[k])
        for section, own in self.description().items():
            for name in own:
                if name in ("name", "revision", "adapter_name"):
                    continue
                if own[name] != receipt[section].get(name):
                    yield f"{section}.{name}: other"
        given, output = receipt["input"], receipt["output"]
        if given["stop_tokens"] != self.stop_tokens(given):
            yield "input.stop_tokens: other"
        if self.recording:
            if self.recording.digest() != given["audio"]:
                yield "input.audio: other"
        elif self.tokenizer.encode(given["prompt"]) != given["tokens"]:
            yield "input.tokens: other"
        if self.tokenizer.decode(output["tokens"]) != output["text"]:
            yield "output.text: other"
        yield from self.steps(given, output)

    def steps(self, given, output):
        parameters = Parameters.of(given)
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
        for i, logits in enumerate(self.rows(given, answer[:-1])):
            if commitment(logits) != output["logits"][i]:
                yield f"output.logits[{i}]: other"
            if draw(processed(logits, given, answer[:i]), parameters, i) != answer[i]:
                yield f"output.tokens[{i}]: other"
