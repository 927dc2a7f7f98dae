"""Files in memory that many clients read: each is compressed once, and all responses share it."""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True)
class File:
    content: bytes
    # By the name of the encoding, the smallest first.
    compressed: dict[str, bytes]
    media_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, media_type: str, *, brotli: bytes | None = None) -> "File":
        compressed = {"br": brotli} if brotli else {}
        compressed["gzip"] = gzip.compress(content, mtime=0)
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        return cls(content, compressed, media_type, etag)

    def response(
        self, request: Request, cache_control: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        headers = {
            **(headers or {}),
            "Cache-Control": cache_control,
            "ETag": self.etag,
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        content = self.content
        accepted = re.findall(r"[\w*]+", request.headers.get("accept-encoding", ""))
        for encoding, compressed in self.compressed.items():
            if encoding in accepted:
                headers["Content-Encoding"], content = encoding, compressed
                break
        return Response(content, headers=headers, media_type=self.media_type)
