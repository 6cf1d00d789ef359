"""The program llm, by its file of further models."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import PROMPTS, SAID, URL

folder = Path(tempfile.mkdtemp())
(folder / "extra-openai-models.yaml").write_text(
    f"- model_id: mine\n  model_name: scripted\n  api_base: {URL}/v1\n"
)
environment = {**os.environ, "LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "none"}
for script, options in (("emoji", []), ("plain", ["--no-stream"])):
    command = [sys.executable, "-m", "llm", "-m", "mine", "-o", "temperature", "0", *options]
    done = subprocess.run(
        [*command, PROMPTS[script]], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == SAID[script], done
