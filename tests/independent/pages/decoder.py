"""spec/decoder.md, as far as hybrid models need it: layers of the gated delta rule and state spaces
beside attention and experts. One position at a time, as llama.py."""

import math

from arithmetic.library import LIBRARY, f32, floats, linear_memory, operation, row
from pages import program
from pages.families import ALWAYS, NAMES, NEUTRAL, switches
from pages.llama import Session, ignore
from pages.rotary import inverse_frequencies


def joined(*parts):
    return row(*(x for part in parts for x in part))


def parts_of(x, *sizes):
    """split: neighbouring parts of these sizes."""
    begin = 0
    for n in sizes:
        yield row(*x[begin : begin + n])
        begin += n


def heads_of(x, n):
    return list(parts_of(x, *[n] * (len(x) // n)))


def mul(a, b):
    return operation("mul", a, b, len(a), n=len(a))


def add(a, b):
    return operation("add", a, b, len(a), n=len(a))


def times(x, factor):
    """mul by one number."""
    return mul(x, row(*[factor] * len(x)))


def scaled(x, factor):
    """times, left out where the factor is neutral."""
    return x if factor == 1 else times(x, factor)


def repeated(x, n):
    """Each element n times: a number for each head of n elements."""
    return row(*(one for one in x for _ in range(n)))


def each(name, x):
    """A function of each element."""
    return operation(name, x, len(x), n=len(x))


def minus_exp(x):
    return row(*(-y for y in each("exps", x)))


def weights_of_one(n):
    return row(*[1.0] * n)


class Decoder:
    recipe = "decoder-1"

    def __init__(self, checkpoint, profile="fp32"):
        kind = "" if profile == "fp32" else "_exact16"  # exact16.7
        self.product, self.attention = f"linear{kind}", f"attention{kind}"
        self.config = checkpoint.config
        self.rotates = self.config["model_type"] != "mamba2"
        self.switches = switches(self.config)
        self.names = NAMES[self.switches["family"]]
        self.inv_freq, self.factor = row(), 1
        if self.rotates:
            size = self.switch("rotary_dim") or self.switch("head_dim")
            self.inv_freq, self.factor = inverse_frequencies(self.config, size)
        self.weights = {name: t.values() for name, t in checkpoint.tensors.items()}
        self.scales = {}  # adapters are of llama.py alone
        self.positions = self.config.get("max_position_embeddings", 1024)

    def switch(self, name):
        return self.switches.get(name, NEUTRAL.get(name, 0))

    def parameters(self):
        """decoder.13"""
        found = {
            name: value
            for name, value in self.switches.items()
            if name in ALWAYS or value != NEUTRAL.get(name, 0)
        }
        if found.get("rotary_dim") == found["head_dim"]:
            del found["rotary_dim"]
        return found | (program.rotary_parameters(self.config) if self.rotates else {})

    def session(self):
        return DecoderSession(self)


class DecoderSession(Session):
    """llama.10, decoder.11, decoder.53: what layers remember, and a step for each token."""

    def __init__(self, model):
        self.model, self.position, self.watch = model, 0, ignore
        self.switch = model.switch
        size = model.positions * self.switch("num_key_value_heads") * self.switch("head_dim")
        layers = range(self.switch("num_hidden_layers"))
        self.keys, self.values = ([floats(size) for _ in layers] for _ in range(2))
        self.inputs = [[] for _ in layers]  # of convolutions, the last ones
        self.memories = [None for _ in layers]  # of linear attention

    def name(self, part):
        return self.model.names.get(part, part)

    def norm(self, x, name):
        """decoder.5"""
        w = self.model.weights[f"{name}.weight"]
        if self.switch("norm_offset"):
            w = add(w, weights_of_one(len(w)))
        return self.rms(x, w)

    def rms(self, x, w, epsilon=None):
        epsilon = self.switch("norm_epsilon") if epsilon is None else epsilon
        return operation("rms_norm", x, w, len(x), epsilon, n=len(x))

    def convolution(self, y, layer, name, taps):
        """causal_conv.2 and causal_conv.3, with the memory of causal_conv.4"""
        past = self.inputs[layer]
        past.append(y)
        del past[:-taps]
        w, n = self.model.weights[f"{name}.weight"], len(y)
        made = operation("causal_conv", joined(*past), len(past), w, taps, n, n=n)
        bias = self.model.weights.get(f"{name}.bias")
        return add(made, bias) if bias else made

    def linear_attention(self, layer, q, k, v, g, beta, key_heads, value_heads, scale):
        """linear_attention.1"""
        d, d_v = len(q) // key_heads, len(v) // value_heads
        if self.memories[layer] is None:
            self.memories[layer] = linear_memory(value_heads, d, d_v, 1)
        return operation(
            "linear_attention", q, k, v, g, beta, self.position, key_heads, value_heads, d, d_v, 1,
            scale, *self.memories[layer], n=len(v),
        )  # fmt: skip

    def delta_rule(self, n, layer, name):
        """decoder.51 and decoder.52, `delta_layout` = by_key_head"""
        heads, dim = self.switch("delta_key_heads"), self.switch("delta_key_dim")
        values, width = self.switch("delta_value_heads"), self.switch("delta_value_dim")
        of = values // heads  # heads of values that use a head of keys
        found = self.linear(n, f"{name}.in_proj_qkvz"), self.linear(n, f"{name}.in_proj_ba")
        groups = [heads_of(x, len(x) // heads) for x in found]
        split = [
            list(parts_of(x, dim, dim, of * width, of * width)) + list(parts_of(rates, of, of))
            for x, rates in zip(*groups)
        ]
        q, k, v, z, b, a = (joined(*parts) for parts in zip(*split))
        taps = self.switch("delta_taps")
        y = each("silu", self.convolution(joined(q, k, v), layer, f"{name}.conv1d", taps))
        q, k, v = parts_of(y, len(q), len(k), len(v))
        one, epsilon = row(*[1 / math.sqrt(dim)] * dim), f32(1e-6 / dim)
        q, k = (
            joined(*(self.rms(x, one, epsilon) for x in heads_of(part, dim))) for part in (q, k)
        )
        weights = self.model.weights
        decay = minus_exp(weights[f"{name}.A_log"])
        g = mul(each("softplus", add(a, weights[f"{name}.dt_bias"])), decay)
        scale = f32(1 / math.sqrt(dim))
        o = self.linear_attention(layer, q, k, v, g, each("sigmoid", b), heads, values, scale)
        norm, epsilon = weights[f"{name}.norm.weight"], self.switch("delta_norm_epsilon")
        o = joined(*(self.rms(x, norm, epsilon) for x in heads_of(o, width)))
        return self.linear(mul(o, each("silu", z)), f"{name}.out_proj")

    def state_space(self, n, layer, name):
        """decoder.62"""
        heads, dim = self.switch("ssm_num_heads"), self.switch("ssm_head_dim")
        inner, groups = heads * dim, self.switch("ssm_num_groups")
        state = groups * self.switch("ssm_state_size")
        weights = self.model.weights
        sizes = inner, inner, state, state, heads
        p = self.linear(scaled(n, self.switch("ssm_in_scale")), f"{name}.in_proj")
        p = list(parts_of(p, *sizes))
        if self.switch("ssm_scales") != [1] * 5:
            p = [times(x, s) for x, s in zip(p, self.switch("ssm_scales"))]
        z, t = p[0], p[4]
        taps = self.switch("ssm_conv_width")
        y = each("silu", self.convolution(joined(*p[1:4]), layer, f"{name}.conv1d", taps))
        x, b, c = parts_of(y, *sizes[1:4])
        delta = each("softplus", add(t, weights[f"{name}.dt_bias"]))
        low, high = self.switch("ssm_dt_minimum"), self.switch("ssm_dt_maximum")
        if low:
            delta = row(*(LIBRARY.maximum(one, low) for one in delta))
        if high:
            delta = row(*(-LIBRARY.maximum(-one, -high) for one in delta))
        g = mul(delta, minus_exp(weights[f"{name}.A_log"]))
        v = mul(x, repeated(delta, dim))
        o = self.linear_attention(layer, c, b, v, g, None, groups, heads, 1.0)
        o = add(o, mul(x, repeated(weights[f"{name}.D"], dim)))
        silu = mul(z, each("sigmoid", z))
        if self.switch("ssm_norm_before_gate"):
            r = mul(self.group_norm(o, groups, name), silu)
        else:
            r = mul(o, silu)
            r = self.group_norm(r, groups, name) if self.switch("ssm_norm") else r
        return scaled(self.linear(r, f"{name}.out_proj"), self.switch("ssm_out_scale"))

    def group_norm(self, x, groups, name):
        n = len(x) // groups
        y = joined(*(self.rms(part, weights_of_one(n)) for part in heads_of(x, n)))
        return mul(y, self.model.weights[f"{name}.norm.weight"])

    def full_attention(self, n, layer, name):
        """decoder.7, decoder.54 and decoder.63"""
        heads, kv_heads = self.switch("num_attention_heads"), self.switch("num_key_value_heads")
        d = self.switch("head_dim")
        n = scaled(n, self.switch("attention_in_scale"))
        q, k, v = (self.linear(n, f"{name}.{p}_proj") for p in "qkv")
        if self.switch("attention_gate"):
            halves = [list(parts_of(x, d, d)) for x in heads_of(q, 2 * d)]
            q, gate = (joined(*parts) for parts in zip(*halves))
        k = scaled(k, self.switch("key_scale"))
        if self.switch("qk_norm") == "head":
            q, k = (
                joined(*(self.norm(x, f"{name}.{p}_norm") for x in heads_of(part, d)))
                for p, part in (("q", q), ("k", k))
            )
        r = self.switch("rotary_dim") or d
        q = operation("rope", q, *self.turn, heads, d, r, n=len(q))
        k = operation("rope", k, *self.turn, kv_heads, d, r, n=len(k))
        here = self.position * len(k)
        self.keys[layer][here : here + len(k)] = k
        self.values[layer][here : here + len(v)] = v
        o = operation(
            self.model.attention, q, self.keys[layer], self.values[layer], self.position, heads,
            kv_heads, d, d, f32(1 / math.sqrt(d)), n=len(q),
        )  # fmt: skip
        if self.switch("attention_gate"):
            o = mul(o, each("sigmoid", gate))
        return scaled(self.linear(o, f"{name}.o_proj"), self.switch("attention_out_scale"))

    def mlp(self, n, name):
        """decoder.9"""
        gate = scaled(self.linear(n, f"{name}.gate_proj"), self.switch("mlp_gate_scale"))
        h = mul(each("silu", gate), self.linear(n, f"{name}.up_proj"))
        return scaled(self.linear(h, f"{name}.down_proj"), self.switch("mlp_scale"))

    def experts(self, n, name):
        """decoder.15 and decoder.17 with the switches of qwen3_next"""
        s = each("softmax", self.linear(n, f"{name}.gate"))
        k = self.switch("num_experts_per_tok")
        chosen = sorted(range(len(s)), key=lambda e: (-s[e], e))[:k]
        w = row(*(s[e] for e in chosen))
        if self.switch("norm_topk_prob"):
            total = LIBRARY.store(LIBRARY.sum_of_row(w, len(w)))
            w = row(*(LIBRARY.store(f32(x / total)) for x in w))
        z = [times(self.mlp(n, f"{name}.experts.{e}"), x) for e, x in zip(chosen, w)]
        r = row(*(LIBRARY.store(LIBRARY.sum_of_row(row(*c), len(c))) for c in zip(*z)))
        u = self.mlp(n, f"{name}.shared_expert")
        gate = each("sigmoid", self.linear(n, f"{name}.shared_expert_gate"))
        return add(r, times(u, gate[0]))

    def mixed(self, n, layer, at):
        """decoder.60"""
        kind = self.switch("layer_mixers")[layer]
        if kind == "d":
            return self.delta_rule(n, layer, f"{at}.linear_attn")
        if kind == "s":
            return self.state_space(n, layer, f"{at}.{self.name('mamba')}")
        attention = self.full_attention(n, layer, f"{at}.self_attn")
        if kind == "a":
            return attention
        return add(self.state_space(n, layer, f"{at}.mamba"), attention)

    def step(self, token, logits=True):
        """decoder.8 and decoder.10"""
        n, weights = self.switch("hidden_size"), self.model.weights
        prefix = self.model.names.get("prefix", "model.")
        self.turn = self.rotation() if self.model.rotates else None
        table = f"{prefix}{self.name('embed_tokens')}"
        x = row(*weights[f"{table}.weight"][token * n : (token + 1) * n])
        x = scaled(x, self.switch("embedding_scale"))
        for layer in range(self.switch("num_hidden_layers")):
            at = f"{prefix}layers.{layer}"
            y = self.norm(x, f"{at}.{self.name('input_layernorm')}")
            x = add(x, self.mixed(y, layer, at))
            if self.switch("block") == "single":
                continue
            y = self.norm(x, f"{at}.{self.name('post_attention_layernorm')}")
            sparse = self.switch("layer_experts") and self.switch("layer_experts")[layer] == "e"
            x = add(x, (self.experts if sparse else self.mlp)(y, f"{at}.{self.name('mlp')}"))
        self.position += 1
        if not logits:
            return None
        y = self.norm(x, f"{prefix}{self.name('norm')}")
        y = self.linear(y, "lm_head" if "lm_head.weight" in weights else table)
        return scaled(y, self.switch("logits_scale"))
