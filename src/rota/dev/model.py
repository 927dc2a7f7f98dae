"""A small real language model behind an OpenAI-compatible HTTP server.

`python -m rota.dev.model --port N --weights FILE.gguf` runs llama.cpp's own server.
"""

import argparse
import os
import signal

CONTEXT_TOKENS = 8192
PARALLEL = 2
ALIAS = "smollm2"


def serve(port: int, weights: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = PARALLEL
    # Half the cores: its threads wait for each other by spinning, so with none to spare
    # for the rest of the stack they would mostly wait.
    params.cpuparams.n_threads = max(1, min((os.cpu_count() or 1) // 2, 4))
    params.model_alias = {ALIAS}
    params.ui = False
    server = xllamacpp.Server(params)
    # The server has threads of its own; it lives as long as this name does.
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--weights", required=True)
    options = parser.parse_args()
    # Blocked before any thread exists, so that the threads inherit it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve(options.port, options.weights)


if __name__ == "__main__":
    main()
