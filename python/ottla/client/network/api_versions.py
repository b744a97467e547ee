"""Which versions a broker and the client have in common, and how they find out (KIP-35, KIP-511).

What an answer to ApiVersions leads to; each repetition is of a lower version, so there are few:

| version sent | answer | then |
|---|---|---|
| any | error 0 | ready |
| above 0 | 35, and a list with a lower highest version of ApiVersions | ask in that |
| above 0 | 35 without one | ask in version 0 |
| 0 | 35 | the broker cannot be spoken to |
| any | 42, or any other error | the broker does not speak to this client |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.client.errors import (
    ApiError,
    InvalidConfigurationError,
    InvalidRequestError,
    UnsupportedVersionError,
    error_of,
)
from ottla.errors import MalformedFrameError
from ottla.protocol.api_key import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.wire import schema

if TYPE_CHECKING:
    from ottla.protocol.wire import Message

__all__ = ["ApiVersions", "Negotiation", "check_software"]

_FIRST_ASKED: Final = 4
_KEY: Final = int(ApiKey.API_VERSIONS)


def check_software(option: str, text: str) -> None:
    """Checks the name or version that a client gives of itself, as brokers do (KIP-511).

    Raises:
        InvalidConfigurationError: a broker would refuse it.
    """
    inner = text.replace("-", "a").replace(".", "a")
    if not (inner.isascii() and inner.isalnum() and (text[0] + text[-1]).isalnum()):
        raise InvalidConfigurationError(
            f"{option} is {text!r}, expected letters, digits, dashes and dots of ASCII, with a "
            "letter or digit at both ends (KIP-511)"
        )


class ApiVersions:
    """What a broker serves.

    Attributes:
        features: levels of its finalized features.
    """

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._ranges = {
            one.api_key: range(one.min_version, one.max_version + 1) for one in response.api_keys
        }
        self.features = {one.name: one.max_version_level for one in response.finalized_features}

    def pick(self, request: type[Message], wanted: range | None = None) -> int:
        """Returns the highest version of a request that both have.

        Args:
            request: its class.
            wanted: versions that it can be made in; ``None`` for all that are known here.

        Raises:
            UnsupportedVersionError: there is none.
        """
        declared = schema(request)
        ours = declared.versions if wanted is None else wanted
        theirs = self._ranges.get(declared.api_key or 0, range(0))
        highest = min(ours.stop, declared.versions.stop, theirs.stop) - 1
        if highest < max(ours.start, declared.versions.start, theirs.start, 0):
            name = declared.name.removesuffix("Request")
            if not theirs:
                raise UnsupportedVersionError(f"the broker does not serve {name}")
            raise UnsupportedVersionError(
                f"the broker serves the versions {theirs.start} to {theirs.stop - 1} of {name}, "
                f"where {ours.start} to {ours.stop - 1} can be used here"
            )
        return highest


class Negotiation:
    """The first questions of a connection.

    Attributes:
        version: to ask in next.
    """

    def __init__(self, software_name: str, software_version: str) -> None:
        self.version = _FIRST_ASKED
        self._request = ApiVersionsRequest(
            client_software_name=software_name, client_software_version=software_version
        )

    def request(self) -> ApiVersionsRequest:
        """Returns what to ask."""
        return self._request

    def answered(self, frame: bytes, position: int) -> ApiVersions | None:
        """Returns what the broker serves; ``None`` where it has to be asked again.

        Args:
            frame: the answer.
            position: of the body in it.

        Raises:
            ApiError: it cannot be spoken to, which does not pass by itself.
            MalformedFrameError: that is no answer.
        """
        response = self._read(frame, position)
        code = response.error_code
        if code == ErrorCode.NONE:
            return ApiVersions(response)
        if code == ErrorCode.UNSUPPORTED_VERSION and self.version > 0:
            listed = [one.max_version for one in response.api_keys if one.api_key == _KEY]
            lower = listed[0] if listed else 0
            self.version = lower if 0 <= lower < self.version else 0
            return None
        raise self._refusal(code)

    def _read(self, frame: bytes, position: int) -> ApiVersionsResponse:
        response: ApiVersionsResponse
        try:
            response, _ = decode(ApiVersionsResponse, self.version)(frame, position)
        except MalformedFrameError:
            if self.version == 0:
                raise
            # A broker that does not know the version answers in version 0.
            response, _ = decode(ApiVersionsResponse, 0)(frame, position)
        return response

    def _refusal(self, code: int) -> ApiError:
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return UnsupportedVersionError("the broker serves no version of ApiVersions")
        if code == ErrorCode.INVALID_REQUEST:
            return InvalidRequestError(
                f"the broker refuses the client's software name "
                f"{self._request.client_software_name!r} or version "
                f"{self._request.client_software_version!r}: set client_software_name and "
                "client_software_version to others"
            )
        said: Any = error_of(code)
        return UnsupportedVersionError(f"the broker answered ApiVersions with {said.error}", code)
