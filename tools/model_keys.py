#!/usr/bin/env python3
"""Lists the keys of a checkpoint's four JSON files that transformers and tokenizers know.

model_keys.py tests/keys/known_keys.json

It needs both packages, and asks their classes and their sources. Nothing else needs it: the list is
committed, and tests/keys/test_keys.py compares it with tests/keys/keys.toml."""

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
from pathlib import Path

import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from transformers.modeling_rope_utils import RopeParameters, RotaryEmbeddingConfigMixin
from transformers.models.llama.tokenization_llama import LlamaTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.tokenization_utils_tokenizers import TokenizersBackend

SOURCES = Path(transformers.__file__).parent
# What a Llama checkpoint passes through on its way to an answer.
READERS = [
    "models/llama/modeling_llama.py",
    "modeling_utils.py",
    "masking_utils.py",
    "cache_utils.py",
    "generation/utils.py",
    "modeling_rope_utils.py",
    "modeling_flash_attention_utils.py",
    "configuration_utils.py",
    "quantizers/auto.py",
    *(f"integrations/{n}_attention.py" for n in ("sdpa", "flash", "flex")),
]
OBJECTS = {"config", "text_config", "model_config", "_config"}


def is_object(node, names):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "get_text_config"
    return getattr(node, "id", getattr(node, "attr", None)) in names


def attributes(tree, names=OBJECTS):
    """X of config.X, getattr(config, X) and hasattr(config, X)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_object(node.value, names):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            if is_object(node.args[0], names) and isinstance(node.args[1], ast.Constant):
                yield node.args[1].value


def keywords(function, variable="kwargs"):
    """X of kwargs.pop(X), kwargs[X] and X in kwargs."""
    function = getattr(function, "__func__", function)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        name, key = None, None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ("pop", "get", "setdefault"):
                name, key = node.func.value, node.args[0]
        elif isinstance(node, ast.Subscript):
            name, key = node.value, node.slice
        elif isinstance(node, ast.Compare):
            name, key = node.comparators[0], node.left
        if getattr(name, "id", "") == variable and isinstance(key, ast.Constant):
            yield key.value


def parameters(cls):
    return [
        n
        for n, p in inspect.signature(cls.__init__).parameters.items()
        if n != "self" and p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL
    ]


def config_keys():
    cls = transformers.LlamaConfig
    read = {key for file in READERS for key in attributes(ast.parse((SOURCES / file).read_text()))}
    mine = {
        n for c in cls.__mro__ for n, v in vars(c).items() if isinstance(v, property) and v.fset
    } | {"attribute_map"}
    # A method or a constant of the class is no key, unless the class has a setter for it.
    keys = {k for k in read if not hasattr(cls, k) or k in mine} | mine
    keys |= {f.name for f in dataclasses.fields(cls)}
    keys |= {n for n in vars(cls) if n.startswith("base_model_")} | {"model_type"}
    keys |= set(keywords(transformers.PreTrainedConfig.__post_init__))
    keys |= set(keywords(transformers.AutoConfig.from_pretrained, "config_dict"))
    keys |= {
        k
        for k in attributes(ast.parse(inspect.getsource(RotaryEmbeddingConfigMixin)), {"self"})
        if not hasattr(cls, k) and k[0] != "_"
    }
    keys |= {"decoder", "generator", "text_config", "text_encoder"}  # of get_text_config
    keys |= {f"rope_parameters.{n}" for n in RopeParameters.__annotations__}
    return keys


def generation_keys():
    cls = transformers.GenerationConfig
    return set(vars(cls())) | set(keywords(cls.__init__))


def tokenizer_config_keys():
    return {
        *PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES,
        *keywords(PreTrainedTokenizerBase.__init__),
        *keywords(TokenizersBackend.__init__),
        *keywords(PreTrainedTokenizerBase._from_pretrained, "init_kwargs"),
        *keywords(transformers.AutoTokenizer.from_pretrained, "tokenizer_config"),
        *parameters(LlamaTokenizer),
    }


ARGUMENTS = {
    "normalizer.Sequence": ([],),
    "normalizer.Replace": ("a", "b"),
    "pre_tokenizer.CharDelimiterSplit": ("a",),
    "pre_tokenizer.Sequence": ([],),
    "pre_tokenizer.Split": ("a", "isolated"),
    "post_processor.BertProcessing": (("a", 0), ("b", 1)),
    "post_processor.RobertaProcessing": (("a", 0), ("b", 1)),
    "post_processor.Sequence": ([],),
    "decoder.Sequence": ([],),
    "decoder.Replace": ("a", "b"),
}
# Without a value that could be made here, or no component: the last is a stream of text.
PLAIN = {"normalizer.Precompiled", "decoder.DecodeStream"}


def tokenizer_keys():
    made = tokenizers.Tokenizer(models.BPE())
    made.enable_truncation(1)
    made.enable_padding()
    made.add_tokens(["a"])
    whole = json.loads(made.to_str())
    keys = set(whole)
    for part in ("truncation", "padding"):
        keys |= {f"{part}.{n}" for n in whole[part]}
    keys |= {f"added_tokens.{n}" for n in whole["added_tokens"][0]}
    for part, module, base in (
        ("model", models, models.Model),
        ("normalizer", normalizers, normalizers.Normalizer),
        ("pre_tokenizer", pre_tokenizers, pre_tokenizers.PreTokenizer),
        ("post_processor", processors, processors.PostProcessor),
        ("decoder", decoders, decoders.Decoder),
    ):
        for name, cls in vars(module).items():
            key = f"{part}.{name}"
            if not inspect.isclass(cls) or cls is base or key == "decoder.DecodeStream":
                continue
            keys.add(key)
            if key in PLAIN:
                continue
            state = json.loads(cls(*ARGUMENTS.get(key, ())).__getstate__())
            keys |= {f"{key}.{n}" for n in state if n != "type"}
    return keys


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    known = {
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "config.json": sorted(config_keys()),
        "generation_config.json": sorted(generation_keys()),
        "tokenizer_config.json": sorted(tokenizer_config_keys()),
        "tokenizer.json": sorted(tokenizer_keys()),
    }
    Path(sys.argv[1]).write_text(json.dumps(known, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
