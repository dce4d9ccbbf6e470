"""llama.cpp's own HTTP server, from its wheel: ``python -m tests.servers.llama MODEL PORT NAME [--metrics] [--api-key KEY]``.

Runs in the environment of llama.cpp. The options are those of ``llama-server``, which the wheel has without its command line.
"""

from __future__ import annotations

import argparse
import threading

from xllamacpp import CommonParams, Server


def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("port", type=int)
    parser.add_argument("name")
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--api-key")
    asked = parser.parse_args()
    options = CommonParams()
    options.model.path = asked.model
    options.model_alias = {asked.name}
    options.port = asked.port
    options.n_ctx, options.n_parallel = 4_096, 4  # 1,024 tokens for each of four requests at once
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    options.endpoint_metrics = asked.metrics
    options.api_keys = [asked.api_key] if asked.api_key else []
    server = Server(options)
    print("serving on", server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
