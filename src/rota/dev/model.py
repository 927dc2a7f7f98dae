"""A small language model with an OpenAI-compatible HTTP API.

`python -m rota.dev.model --port N --weights FILE.gguf` runs the server of llama.cpp. That server
lets the web pages of every origin call it, so its paths begin with a secret, from MODEL_PREFIX.
"""

import argparse
import os
import signal

CONTEXT_TOKENS = 8192
PARALLEL = 2
ALIAS = "smollm2"
PREFIX_VARIABLE = "MODEL_PREFIX"


def serve(port: int, weights: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.api_prefix = os.environ.get(PREFIX_VARIABLE, "")
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = PARALLEL
    # Half the cores. The threads wait for each other by spinning, so they would slow down
    # the rest of the stack, and each other, if they used all cores.
    params.cpuparams.n_threads = max(1, min((os.cpu_count() or 1) // 2, 4))
    params.model_alias = {ALIAS}
    params.ui = False
    server = xllamacpp.Server(params)
    # The server runs in its own threads, until this name is deleted.
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--weights", required=True)
    options = parser.parse_args()
    # Blocked before any thread starts, because threads inherit the mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve(options.port, options.weights)


if __name__ == "__main__":
    main()
