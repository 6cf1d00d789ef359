"""seq2seq.md, as far as Whisper needs it: an encoder that hears, and a decoder, one token at a
time."""

import math

from arithmetic.library import f32, floats, operation, row
from arithmetic.mutation import active


def add(a, b):
    return operation("add", a, b, len(a), n=len(a))


class Whisper:
    recipe = "seq2seq-1"

    def __init__(self, checkpoint, profile="fp32"):
        kind = "" if profile == "fp32" else "_exact16"  # exact16.7
        self.product, self.attention = f"linear{kind}", f"attention{kind}"
        self.config = {"activation_function": "gelu"} | {
            key: value for key, value in checkpoint.config.items() if value is not None
        }
        assert self.config["activation_function"] == "gelu"
        self.weights = {name: t.values() for name, t in checkpoint.tensors.items()}
        self.tied = self.config.get("tie_word_embeddings", True)
        self.hidden = self.size("d_model", 384)
        self.heard = self.size("max_source_positions", 1500)
        self.bands = self.size("num_mel_bins", 80)
        self.positions = self.size("max_target_positions", 448)
        self.scales, self.kernels = {}, {}

    def size(self, name, absent):
        return self.config.get(name, absent)

    def heads(self, side):
        return self.size(f"{side}_attention_heads", 6)

    def layers(self, side):
        return self.size(f"{side}_layers", 4)

    def parameters(self):
        """seq2seq.4"""
        found = {
            "family": "whisper", "hidden_size": self.hidden, "norm_epsilon": f32(1e-5),
            "tie_word_embeddings": self.tied, "positions": "learned", "embedding_norm": False,
            "final_norm": True, "pre_norm": True, "key_bias": False, "num_mel_bins": self.bands,
            "max_source_positions": self.heard, "max_position_embeddings": self.positions,
        }  # fmt: skip
        for side, vocabulary in (("encoder", 0), ("decoder", self.size("vocab_size", 51865))):
            found |= {
                f"{side}_head_dim": self.hidden // self.heads(side),
                f"{side}_intermediate_size": self.size(f"{side}_ffn_dim", 1536),
                f"{side}_num_attention_heads": self.heads(side),
                f"{side}_num_layers": self.layers(side),
                f"{side}_vocab_size": vocabulary,
            }
        return found

    # Parts of both sides

    def linear(self, x, name):
        w = self.weights[f"{name}.weight"]
        rows = len(w) // len(x)
        y = operation(self.product, x, w, rows, len(x), n=rows)
        bias = self.weights.get(f"{name}.bias")
        return add(y, bias) if bias else y

    def norm(self, x, name):
        w, b = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
        return operation("layer_norm", x, w, b, len(x), f32(1e-5), n=len(x))

    def mlp(self, x, at):
        n = self.norm(x, f"{at}.final_layer_norm")
        h = self.linear(n, f"{at}.fc1")
        h = operation("gelu", h, len(h), n=len(h))
        return add(x, self.linear(h, f"{at}.fc2"))

    def attend(self, q, keys, values, last, side):
        """attention.3: q sees the keys of the places 0 to last."""
        heads = self.heads(side)
        d = len(q) // heads
        scale = f32(1 / math.sqrt(d))
        return operation(self.attention, q, keys, values, last, heads, heads, d, d, scale, n=len(q))

    def taps(self, name):
        """conv.2: the weights of a convolution, of each output tap after tap."""
        if name not in self.kernels:
            w, bias = (self.weights[f"{name}.{part}"] for part in ("weight", "bias"))
            into = len(w) // len(bias) // 3
            order = [
                w[(m * into + c) * 3 + r] for m in range(len(bias)) for r in range(3)
                for c in range(into)
            ]  # fmt: skip
            self.kernels[name] = row(*order), bias
        return self.kernels[name]

    def convolution(self, x, name, stride):
        """seq2seq.10 and conv.2, conv.3: rows of channels, with a frame of zeros at both ends"""
        w, bias = self.taps(name)
        zeros = [0.0] * len(x[0])
        padded = [zeros, *x, zeros]
        out = []
        for at in range(0, len(x), stride):
            patch = row(*(value for frame in padded[at : at + 3] for value in frame))
            y = operation(self.product, patch, w, len(bias), len(patch), n=len(bias))
            out.append(operation("gelu", add(y, bias), len(bias), n=len(bias)))
        return out

    def encoded(self, features):
        """The encoder's result at all places."""
        frames = 2 * self.heard
        x = [[features[m * frames + t] for m in range(self.bands)] for t in range(frames)]
        at = "model.encoder"
        x = self.convolution(self.convolution(x, f"{at}.conv1", 1), f"{at}.conv2", 2)
        table, n = self.weights[f"{at}.embed_positions.weight"], self.hidden
        x = [add(y, row(*table[i * n : (i + 1) * n])) for i, y in enumerate(x)]
        last = 0 if active("the_encoder_is_deaf") else len(x) - 1
        for layer in range(self.layers("encoder")):
            here = f"{at}.layers.{layer}"
            normed = [self.norm(y, f"{here}.self_attn_layer_norm") for y in x]
            q, k, v = (
                [self.linear(y, f"{here}.self_attn.{part}_proj") for y in normed] for part in "qkv"
            )
            keys, values = (row(*(value for y in rows for value in y)) for rows in (k, v))
            for i, y in enumerate(q):
                seen = i if active("the_encoder_is_causal") else last
                o = self.attend(y, keys, values, seen, "encoder")
                x[i] = self.mlp(add(x[i], self.linear(o, f"{here}.self_attn.out_proj")), here)
        return [self.norm(y, f"{at}.layer_norm") for y in x]

    def session(self, features):
        return WhisperSession(self, self.encoded(features))

    def language(self, features, start, languages):
        """speech.8: of `lang_to_id` the most likely one after the start token alone."""
        logits = self.session(features).step(start)
        return min(languages, key=lambda name: (-logits[languages[name]], languages[name]))


class WhisperSession:
    """seq2seq.6: what the layers of the decoder remember, and the keys and values of the source."""

    def __init__(self, model, source):
        self.model, self.position, self.source = model, 0, len(source)
        size = model.positions * model.hidden
        self.keys, self.values = (
            [floats(size) for _ in range(model.layers("decoder"))] for _ in range(2)
        )
        self.heard = []
        for layer in range(model.layers("decoder")):
            at = f"model.decoder.layers.{layer}.encoder_attn"
            self.heard.append([
                row(*(value for y in source for value in model.linear(y, f"{at}.{part}_proj")))
                for part in "kv"
            ])  # fmt: skip

    def to_itself(self, x, layer, at):
        model = self.model
        n = model.norm(x, f"{at}.self_attn_layer_norm")
        q, k, v = (model.linear(n, f"{at}.self_attn.{part}_proj") for part in "qkv")
        here = self.position * len(k)
        self.keys[layer][here : here + len(k)] = k
        self.values[layer][here : here + len(v)] = v
        o = model.attend(q, self.keys[layer], self.values[layer], self.position, "decoder")
        return add(x, model.linear(o, f"{at}.self_attn.out_proj"))

    def to_the_source(self, x, layer, at):
        model = self.model
        n = model.norm(x, f"{at}.encoder_attn_layer_norm")
        q = model.linear(n, f"{at}.encoder_attn.q_proj")
        o = model.attend(q, *self.heard[layer], self.source - 1, "decoder")
        return add(x, model.linear(o, f"{at}.encoder_attn.out_proj"))

    def step(self, token, logits=True):
        model, n = self.model, self.model.hidden
        side = "model.decoder"
        tables = (model.weights[f"{side}.embed_{part}.weight"] for part in ("tokens", "positions"))
        x, place = (
            row(*table[i * n : (i + 1) * n]) for table, i in zip(tables, (token, self.position))
        )
        x = add(x, place)
        for layer in range(model.layers("decoder")):
            at = f"{side}.layers.{layer}"
            x = self.to_the_source(self.to_itself(x, layer, at), layer, at)
            x = model.mlp(x, at)
        self.position += 1
        if not logits:
            return None
        head = "proj_out" if "proj_out.weight" in model.weights else f"{side}.embed_tokens"
        return model.linear(model.norm(x, f"{side}.layer_norm"), head)
