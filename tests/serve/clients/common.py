"""What every client's program is given: URL of the server, and a file with the answers to come."""

import json
import sys
from pathlib import Path

URL, FACTS = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
PROMPTS, SAID = FACTS["prompts"], FACTS["said"]
ARGUMENTS = {"at": "é", "n": [1, 2]}
PARAMETERS = {"type": "object", "properties": {"at": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
    for name in ("look", "go")
]


def user(script):
    return [{"role": "user", "content": PROMPTS[script]}]
