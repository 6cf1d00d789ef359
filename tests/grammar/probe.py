"""The masks under test as a process that answers requests (main.cc), and random schemas."""

import json
import os
import random
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("INVAR_BUILD", Path(__file__).resolve().parents[2] / "build"))
KEYS = ["a", "b", "é", 'q"', "long name", "a b", ""]


class Probe:
    def __init__(self):
        self.process = subprocess.Popen(
            [BUILD / "bin/invar_grammar_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, asked, texts=(), tokens=None, **more):
        """Texts and tokens are bytes; what fits, masks and walks."""
        request = {"asked": asked, "texts": [t.hex() for t in texts], **more}
        if tokens is not None:
            request["tokens"] = [t.hex() for t in tokens]
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "walks" in answer:
            answer["walks"] = [None if w is None else bytes.fromhex(w) for w in answer["walks"]]
        return answer

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()


class Schemas:
    """Random schemas of the keywords of grammar.4, and values in the form of grammar.3."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def schema(self, depth=3):
        r = self.random
        kind = r.choice(
            ["string", "integer", "number", "boolean", "null", "enum", "object", "array", "anyOf"]
            if depth
            else ["string", "integer", "number", "boolean", "enum"]
        )
        made = {"title": "a label"} if r.random() < 0.1 else {}
        if kind == "enum":
            return made | {"enum": r.sample(["a", "é\n", 1, -2.5, None, True, {"k": [1]}, []], 3)}
        if kind == "anyOf":
            return made | {"anyOf": [self.schema(depth - 1) for _ in range(r.randint(1, 3))]}
        made["type"] = kind if r.random() < 0.8 else [kind, "null"]
        if kind == "string":
            if r.random() < 0.2:
                return made | {"pattern": r.choice(["^[a-c]{2}$", "x+", "^\\d{1,3}-\\w*$", "^$|y"])}
            least = r.randint(0, 4)
            made |= {"minLength": least} if r.random() < 0.4 else {}
            made |= {"maxLength": least + r.randint(0, 9)} if r.random() < 0.4 else {}
        if kind == "integer":
            least = r.choice([-1000, -7, 0, 3, 10**12])
            made |= {r.choice(["minimum", "exclusiveMinimum"]): least} if r.random() < 0.4 else {}
            most = least + r.choice([2, 30, 10**6])
            made |= {r.choice(["maximum", "exclusiveMaximum"]): most} if r.random() < 0.4 else {}
        if kind == "array":
            made |= {"items": self.schema(depth - 1)} if r.random() < 0.8 else {}
            least = r.randint(0, 2)
            if r.random() < 0.3:
                made["prefixItems"] = [self.schema(depth - 1) for _ in range(r.randint(1, 2))]
            made |= {"minItems": least} if r.random() < 0.4 else {}
            made |= {"maxItems": least + r.randint(0, 3)} if r.random() < 0.4 else {}
        if kind == "object":
            keys = r.sample(KEYS, r.randint(0, 4))
            made["properties"] = {k: self.schema(depth - 1) for k in keys}
            made["required"] = r.sample(keys, r.randint(0, len(keys)))
            if r.random() < 0.8:
                made["additionalProperties"] = r.choice([False, False, {"type": "integer"}])
        return made

    def instance(self, schema):
        """A value that the schema accepts, its members in order; None where chance finds none."""
        r = self.random
        if "enum" in schema:
            return r.choice(schema["enum"])
        if "anyOf" in schema:
            return self.instance(r.choice(schema["anyOf"]))
        kind = schema.get("type", "null")
        kind = r.choice(kind) if isinstance(kind, list) else kind
        if kind == "boolean":
            return r.random() < 0.5
        if kind == "integer":
            least = max(schema.get("minimum", -50), schema.get("exclusiveMinimum", -51) + 1)
            most = min(
                schema.get("maximum", least + 99), schema.get("exclusiveMaximum", 10**15) - 1
            )
            return r.randint(least, max(least, most))
        if kind == "number":
            return r.choice([0, -1.5, 2e30, 7, 0.25, 1e-7])
        if kind == "string":
            if "pattern" in schema:
                return r.choice(["ab", "ccx", "12-y_", "7-", "xx", "", "y", "aby"])
            least = schema.get("minLength", 0)
            length = r.randint(least, min(schema.get("maxLength", least + 5), least + 5))
            return "".join(r.choice('aé€😀 "\\\n\x01') for _ in range(length))
        if kind == "array":
            least, prefix = schema.get("minItems", 0), schema.get("prefixItems", [])
            count = r.randint(least, min(schema.get("maxItems", least + 3), least + 3))
            rest = schema.get("items", {})
            return [self.instance(prefix[i] if i < len(prefix) else rest) for i in range(count)]
        if kind == "object":
            required = schema.get("required", [])
            made = {
                k: self.instance(s)
                for k, s in schema.get("properties", {}).items()
                if k in required or r.random() < 0.5
            }
            if schema.get("additionalProperties", {}) is not False:
                made |= {k: r.randint(0, 9) for k in ("z", "ab") if r.random() < 0.3}
            return made
        return None


def written(value):
    """The value in the form of grammar.3."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
