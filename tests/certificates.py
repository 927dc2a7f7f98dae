"""Loads the certificates of the system once in each process.

That takes 40 ms of processor time. Without this, each HTTP client does it, and tests create
thousands of clients for servers on this machine.
"""

import os
import ssl
from functools import cache
from typing import Any

import certifi
import httpcore2


def load_once() -> None:
    load = ssl.create_default_context
    load_system = cache(load)
    files = {None, certifi.where(), os.environ.get("SSL_CERT_FILE")}

    def create(*purpose: ssl.Purpose, **options: Any) -> ssl.SSLContext:
        is_system = set(options) <= {"cafile"} and options.get("cafile") in files
        return (load_system if is_system else load)(*purpose, **options)

    ssl.create_default_context = create
    httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
