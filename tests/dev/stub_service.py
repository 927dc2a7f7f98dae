"""A stub of the service and the worker, which answers requests and has a child process.

With the argument `crash` it exits after its first response.
"""

import http.server
import os
import subprocess
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["ROTA_DATABASE_URL"].encode())
        if sys.argv[1:] == ["crash"]:
            self.wfile.flush()
            os._exit(7)


if __name__ == "__main__":
    subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True
    )
    # The stub of the worker answers on the metrics port.
    port = int(os.environ.get("ROTA_METRICS_PORT") or os.environ["ROTA_PORT"])
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
