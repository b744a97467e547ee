"""Schemas by the ids of a schema registry, and the prefix that has such an id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from ottla.errors import SchemaError
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PREFIX_BYTES", "Registry", "schema_id"]

PREFIX_BYTES = 5
"""A zero and the id of a schema, in four bytes."""

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 16 << 20
MAX_REFERENCES = 1000
"""Schemas that one refers to, and those in turn."""

NOT_FOUND = 404


def schema_id(data: bytes) -> int:
    """Returns the id in the prefix of a key or a value.

    Raises:
        SchemaError: it has no prefix.
    """
    if len(data) < PREFIX_BYTES or data[0] != 0:
        begin = data[:PREFIX_BYTES].hex(" ") or "nothing"
        raise SchemaError(
            f"it has {begin} where a schema registry's prefix is a zero and four bytes of an id"
            " (position 0)"
        )
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


class Registry:
    """A schema registry.

    Args:
        url: of its root; a user and a password in it are sent and never shown.
    """

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        if split.scheme not in {"http", "https"} or not split.hostname:
            shown = visible(url.rpartition("@")[2])
            raise SchemaError(f"--registry {shown}: a URL such as http://localhost:8081 is needed")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if split.username is not None:
            from base64 import b64encode
            from urllib.parse import unquote

            user, password = unquote(split.username), unquote(split.password or "")
            token = b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        host = split.netloc.rpartition("@")[2]
        self.url = urlunsplit((split.scheme, host, split.path.rstrip("/"), "", ""))
        """Without the password."""

    def schemas(self, number: int) -> list[str]:
        """Returns the schema of an id, and before it those that it refers to.

        Raises:
            SchemaError: the id is not known, or the registry gives no schema for it.
        """
        found = self._get(f"/schemas/ids/{number}", f"schema id {number}")
        referred: dict[tuple[str, int], str] = {}
        self._refer(found, referred)
        return [*referred.values(), _schema_of(found, f"schema id {number}")]

    def _refer(self, found: dict[str, Any], referred: dict[tuple[str, int], str]) -> None:
        for subject, version in _references(found):
            if (subject, version) in referred:
                continue
            if len(referred) >= MAX_REFERENCES:
                raise SchemaError(f"a schema refers to more than {MAX_REFERENCES} others")
            what = f"version {version} of subject {visible(subject)}"
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            # A place for it first, so that a circle ends.
            referred[subject, version] = ""
            other = self._get(path, what)
            self._refer(other, referred)
            # Behind those that it refers to.
            del referred[subject, version]
            referred[subject, version] = _schema_of(other, what)

    def _get(self, path: str, what: str) -> dict[str, Any]:
        request = Request(self.url + path, headers=self._headers)  # noqa: S310 - http, as checked
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - as above
                data = answer.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            if error.code == NOT_FOUND:
                raise SchemaError(f"{what} is not known to {self.url}") from None
            raise SchemaError(f"{self.url} answers {error.code} to {what}") from None
        except (URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise SchemaError(f"{self.url} cannot be asked for {what}: {reason}") from None
        if len(data) > MAX_ANSWER_BYTES:
            raise SchemaError(f"{self.url} answers more than {MAX_ANSWER_BYTES} bytes to {what}")
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise SchemaError(f"{self.url} answers no JSON to {what}") from None
        if not isinstance(found, dict):
            raise SchemaError(f"{self.url} answers no schema to {what}")
        return found


def _schema_of(found: dict[str, Any], what: str) -> str:
    schema, kind = found.get("schema"), found.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise SchemaError(f"{what} is a schema of {visible(str(kind))}, not of Avro")
    if not isinstance(schema, str):
        raise SchemaError(f"{what} has no text of a schema")
    return schema


def _references(found: dict[str, Any]) -> Iterator[tuple[str, int]]:
    references = found.get("references") or []
    for reference in references if isinstance(references, list) else []:
        subject = reference.get("subject") if isinstance(reference, dict) else None
        version = reference.get("version") if isinstance(reference, dict) else None
        if not isinstance(subject, str) or not isinstance(version, int):
            raise SchemaError("a schema refers to another without subject and version")
        yield subject, version
