"""What `--model-name` may be, and what people are told who have something else."""

import json
import os
import shutil

import pytest
from conftest import MODEL, SHARDS, invar, refused

RUN = ["run", "--prompt-text", "x", "--max-new-tokens", "2"]


def no(name, *names, code=2, options=()):
    return refused(*RUN, "--model-name", name, *options, code=code, names=names)


def test_a_gguf_file(tmp_path):
    (tmp_path / "tiny.Q4_K_M.gguf").write_bytes(b"GGUF\x03\0\0\0")
    for name in (tmp_path / "tiny.Q4_K_M.gguf", tmp_path):
        no(name, ".gguf: the file ends within the number of tensors", "truncated")
    no(tmp_path / "tiny.Q4_K_M.gguf", "no revisions", options=["--revision", "main"])
    for name in ("elsewhere/tiny.gguf", "org/tiny.gguf", tmp_path / "none.gguf"):
        no(name, ".gguf: no such file", "GGUF", "safetensors", "org/name")


def test_other_files(tmp_path):
    for name, told in [
        ("model.safetensors", "pass the folder of the checkpoint"),
        ("config.json", "pass the folder of the checkpoint"),
    ]:
        (tmp_path / name).write_bytes(b"x")
        no(tmp_path / name, name, told)


@pytest.mark.parametrize(
    "name",
    [
        "nowhere",
        "a/b/c",
        "../x/y",
        "a--b/c",
        "-a/b",
        "a/b.",
        "a/b\nc",
        "a/b@",
        "a/b@c d",
        "/",
        "a/",
        "/b",
        "@",
        "",
    ],
)
def test_no_names(name):
    refused(*RUN, "--model-name=" + name)


def test_revisions_are_of_the_hub(tmp_path):
    no(MODEL, "a folder has no revisions", options=["--revision", "main"])
    no("a/b/c", "--revision", options=["--revision", "main"])
    no("a/b", "no branch, tag or commit", options=["--revision", "../x"])
    no("a/b@x", "give one", options=["--revision", "y"])


def test_a_folder_comes_before_a_name(tmp_path):
    shutil.copytree(MODEL, tmp_path / "org/tiny@x")
    encode = ["encode", "--prompt-text", "x", "--model-name"]
    invar(*encode, "org/tiny@x", cwd=tmp_path)
    refused(*encode, "org/tiny@y", cwd=tmp_path, names=["not in the Hugging Face cache"])


def test_no_tokenizer(model):
    (model / "tokenizer.json").unlink()
    no(model, "no tokenizer.json", "AutoTokenizer", "save_pretrained")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 123456\n".format(
    "4" * 64
)


@pytest.mark.parametrize("name", [SHARDS[1], "tokenizer.json", "config.json"])
def test_a_clone_without_git_lfs(model, name):
    (model / name).write_text(POINTER)
    no(model, f"{model}: {name} is a pointer of git LFS", "git lfs pull", "invar download")


def test_pointers_that_nobody_reads(model, tmp_path):
    for name in ("pytorch_model.bin", "consolidated.safetensors"):
        (model / name).write_text(POINTER)
    invar(*RUN, "--model-name", model, "--receipt-path", tmp_path / "r.json")


def test_folders_that_are_no_checkpoint(model, tmp_path):
    no(tmp_path, f"{tmp_path}: no config.json in it", "safetensors")
    config = json.loads((model / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "aqlm", "bits": 4}
    (model / "config.json").write_text(json.dumps(config))
    no(model, "aqlm", "GGUF", "bfloat16", code=3)
    (model / "config.json").unlink()
    (model / "adapter_config.json").write_text("{}")
    no(model, "PEFT", "--adapter")


def test_a_cache_by_its_variables(tmp_path):
    """Each place that huggingface_hub knows, the first before the others."""
    places = {
        "HF_HUB_CACHE": tmp_path / "1",
        "HUGGINGFACE_HUB_CACHE": tmp_path / "2",
        "HF_HOME": tmp_path / "3",
        "XDG_CACHE_HOME": tmp_path / "4",
        "HOME": tmp_path / "5",
    }
    folders = [
        tmp_path / "1",
        tmp_path / "2",
        tmp_path / "3/hub",
        tmp_path / "4/huggingface/hub",
        tmp_path / "5/.cache/huggingface/hub",
    ]
    env = {k: v for k, v in os.environ.items() if k not in places} | {
        k: str(v) for k, v in places.items()
    }
    for variable, folder in zip(places, folders):
        refused(*RUN, "--model-name", "a/b", env=env, names=[f"Hugging Face cache {folder}: "])
        env[variable] = ""  # counts as absent
    env["HF_HOME"], env["HOME"] = "~/x", str(tmp_path)
    refused(*RUN, "--model-name", "a/b", env=env, names=[f"cache {tmp_path}/x/hub: "])


def test_an_incomplete_snapshot_names_what_is_missing(tmp_path):
    repository = tmp_path / "models--a--b"
    shutil.copytree(MODEL, repository / "snapshots/abc")
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("abc")
    (repository / "snapshots/abc/model-00002-of-00003.safetensors").unlink()
    env = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    refused(*RUN, "--model-name", "a/b", env=env, names=["model-00002-of-00003.safetensors"])
