"""HTTP/1.1, as far as an endpoint for machines needs it: requests out of a stream, answers into it.

No socket is in here. A request has a head of `MAX_HEAD_BYTES` and a body with a Content-Length, of
a size that the endpoint sets; whatever RFC 9112 leaves open to two readings is refused, so that
nobody in between reads another request than we do. After a refusal nothing more is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NOT_OF_THIS_MACHINE",
    "HttpRefusal",
    "HttpRequest",
    "HttpRequests",
    "http_answer",
    "is_of_this_machine",
]

MAX_HEAD_BYTES = 16_384
"""Of the request line and all headers; a browser's is a tenth of it."""

MAX_HEADERS = 100

_MAX_DIGITS = 12
_VERSIONS = ("HTTP/1.0", "HTTP/1.1")
_TOKEN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~")
_REASONS = {
    200: "OK",
    201: "Created",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


NOT_OF_THIS_MACHINE = "this endpoint answers to 127.0.0.1, [::1] and localhost alone"


def is_of_this_machine(host: str) -> bool:
    """Whether a host is what clients on this machine call it.

    >>> is_of_this_machine("[::1]"), is_of_this_machine("::1"), is_of_this_machine("0.0.0.0")
    (True, True, False)
    """
    return host in {"127.0.0.1", "localhost", "::1", "[::1]"}


class HttpRequest(NamedTuple):
    """A request.

    Attributes:
        method: as in ``GET``.
        path: without the query, as it was sent: nothing in it is decoded.
        query: what is behind the question mark.
        headers: by name in small letters; of one that is there twice, both values with a comma.
        body: as many bytes as its Content-Length says.
        is_last: whether the connection ends with its answer.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    is_last: bool

    @property
    def is_of_this_machine(self) -> bool:
        """Whether its Host is a name of the machine itself.

        A page of a stranger in a browser can have a name of its own lead here, and no other Host.
        """
        name = self.headers.get("host", "").lower()
        if name.rpartition(":")[2].isdigit():
            name = name.rpartition(":")[0]
        return is_of_this_machine(name)


class HttpRefusal(Exception):  # noqa: N818 - it is an answer
    """What is no request that can be served.

    Attributes:
        status: to answer with.
        message: what is wrong, in a sentence.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class HttpRequests:
    """Cuts requests out of what a connection receives.

    It holds no more than what was fed and not taken yet; take until there is nothing before more is
    fed, and that is a head and a body at most.
    """

    __slots__ = ("_buffer", "_head", "_is_over", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        """Of a body."""
        self._buffer = bytearray()
        self._head: tuple[HttpRequest, int, int] | None = None
        """A request whose body is to come, where that begins, and its size."""
        self._is_over = False

    @property
    def missing_bytes(self) -> int:
        """Nothing that is large: a body has a bound."""
        return 0

    @property
    def held_bytes(self) -> int:
        """How many bytes were fed and not taken yet."""
        return len(self._buffer)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is taken: a request was the last one, or refused."""
        return self._is_over

    def feed(self, received: bytes | bytearray | memoryview) -> None:
        """Take in what was received next."""
        if not self._is_over:
            self._buffer += received

    def take(self) -> HttpRequest | HttpRefusal | None:
        """The next request, or why what was received is none; nothing while it is not whole."""
        if self._is_over:
            return None
        try:
            request = self._request()
        except HttpRefusal as refusal:
            self._end()
            return refusal
        if request is not None and request.is_last:
            self._end()
        return request

    def _end(self) -> None:
        self._is_over = True
        self._buffer.clear()

    def _request(self) -> HttpRequest | None:
        if self._head is None:
            # A client may end a body with a line of its own (RFC 9112, section 2.2).
            while self._buffer[:2] == b"\r\n":
                del self._buffer[:2]
            end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
            if end < 0:
                if len(self._buffer) >= MAX_HEAD_BYTES:
                    raise HttpRefusal(431, f"a head has at most {MAX_HEAD_BYTES:,} bytes")
                return None
            request = _head(bytes(self._buffer[:end]))
            size = _body_size(request.headers)
            if size > self.max_bytes:
                raise HttpRefusal(413, f"a body has at most {self.max_bytes:,} bytes, not {size:,}")
            self._head = request, end + 4, size
        request, begin, size = self._head
        if len(self._buffer) < begin + size:
            return None
        body = bytes(self._buffer[begin : begin + size])
        del self._buffer[: begin + size]
        self._head = None
        return request._replace(body=body)


def _head(data: bytes) -> HttpRequest:
    try:
        first, *lines = data.decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        raise HttpRefusal(400, "a head is ASCII") from None
    words = first.split(" ")
    if len(words) != 3 or not _is_token(words[0]) or not _is_target(words[1]):  # noqa: PLR2004
        raise HttpRefusal(400, "the first line is: a method, a path, HTTP/1.1")
    method, target, version = words
    if version not in _VERSIONS:
        raise HttpRefusal(505, "HTTP/1.1 and HTTP/1.0 are spoken here")
    headers = _headers(lines)
    if version == "HTTP/1.1" and "host" not in headers:
        raise HttpRefusal(400, "the header Host is missing")
    tokens = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    keeps = version == "HTTP/1.1" or "keep-alive" in tokens
    path, _, query = target.partition("?")
    return HttpRequest(method, path, query, headers, b"", "close" in tokens or not keeps)


def _headers(lines: list[str]) -> dict[str, str]:
    if len(lines) > MAX_HEADERS:
        raise HttpRefusal(431, f"a request has at most {MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        if not colon or not _is_token(name) or not _is_text(value):
            raise HttpRefusal(400, "a header is: a name, a colon, a value")
        name = name.lower()
        if name in headers:
            if name in {"content-length", "host", "authorization"}:
                raise HttpRefusal(400, f"the header {name} is there twice")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _body_size(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise HttpRefusal(501, "a body has a Content-Length, and no Transfer-Encoding")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise HttpRefusal(400, "a Content-Length is a number")
    if len(text) > _MAX_DIGITS:
        raise HttpRefusal(413, "a body is not as large as that")
    return int(text)


def _is_token(text: str) -> bool:
    return bool(text) and _TOKEN.issuperset(text)


def _is_target(text: str) -> bool:
    return text.startswith("/") and _is_text(text)


def _is_text(text: str) -> bool:
    return text.isprintable() or all(char == "\t" or char.isprintable() for char in text)


def http_answer(
    status: int,
    body: bytes = b"",
    content_type: str = "text/plain; charset=utf-8",
    *,
    is_last: bool = False,
    without_body: bool = False,
    headers: Mapping[str, str] | None = None,
) -> list[bytes]:
    """Returns the parts of an answer.

    Args:
        is_last: whether the connection ends with it.
        without_body: as the answer to a HEAD, which says what a GET would be answered with.
        headers: further ones.
    """
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
    ]
    if body:
        lines.append(f"Content-Type: {content_type}")
    if is_last:
        lines.append("Connection: close")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    head = "\r\n".join([*lines, "", ""]).encode("ascii")
    return [head] if without_body or not body else [head, body]
