"""gguf.2 and gguf.6: how config.json is spelled, and the tokens that end an answer."""

import json

from arithmetic.mutation import active


def spelled(value, level=0):
    """gguf.2"""
    inner, line = "\n" + "  " * (level + 1), "\n" + "  " * level
    if isinstance(value, float):
        return number(value)
    if not value or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(inner + spelled(x, level + 1) for x in value) + line + "]"
    members = (f"{json.dumps(k)}: {spelled(value[k], level + 1)}" for k in sorted(value))
    return "{" + ",".join(inner + m for m in members) + line + "}"


def number(x):
    """gguf.2: Python's shortest digits, which are fixed up to 10^16."""
    if 1e15 <= abs(x) < 1e16:
        digits = repr(abs(x)).split(".")[0]
        rest = digits[1:].rstrip("0")
        return ("-" if x < 0 else "") + digits[0] + ("." + rest if rest else "") + "e+15"
    return repr(x)


ENDS = set(
    "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|eom_id|> <end_of_turn> <turn|> <EOT> _<EOT> "
    "<|endoftext|> [EOT] [EOS] <|end_of_text|>".split()
)


def end_tokens(keys):
    """gguf.6"""
    names = (f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))
    ids = {keys[name] for name in names if name in keys}
    if not active("end_tokens_by_key_alone"):
        kinds = keys.get("tokenizer.ggml.token_type", [])
        named = zip(keys["tokenizer.ggml.tokens"], kinds)
        ids |= {i for i, (name, kind) in enumerate(named) if kind == 3 and name in ENDS}
    return sorted(ids)
