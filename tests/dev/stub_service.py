"""Stands in for the service: ready when asked, and with a child of its own.

With `crash` as its argument it ends as soon as it has been ready once.
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
    http.server.HTTPServer(("127.0.0.1", int(os.environ["ROTA_PORT"])), Handler).serve_forever()
