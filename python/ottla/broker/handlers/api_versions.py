"""ApiVersions (key 18), versions 0 to 5: what the broker serves, and who asks.

Version 1 adds the throttle time, 2 has it honoured by the client, 3 is flexible, says what the
client is (KIP-511) and lists features (KIP-584), 4 lists features whose least version is 0
(KAFKA-17011), 5 says which broker of which cluster the client believes to speak to (KIP-1242).

A version that is not served is answered in version 0 with the range of this API alone, so that a
client of any age can read it. A name or version of the client software that is not made of
letters, digits, dots and dashes is answered with INVALID_REQUEST, and nothing is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.connection import UNKNOWN
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.api_versions import ApiVersionsRequest

__all__ = ["handle", "is_valid_name", "refuse"]

_ENDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_MIDDLE = _ENDS | {".", "-"}
_NAMES_ITSELF = 3
_LISTS_LEAST_0 = 4
_NO_NODE = -1


def is_valid_name(text: str) -> bool:
    """Whether a client may call its software so (KIP-511)."""
    return bool(text) and text[0] in _ENDS and text[-1] in _ENDS and _MIDDLE.issuperset(text)


def handle(broker: Broker, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """Answers with all APIs; remembers the client's software for the connection."""
    connection = context.connection
    if context.version >= _NAMES_ITSELF:
        name, version = request.client_software_name, request.client_software_version
        if not (is_valid_name(name) and is_valid_name(version)):
            return refuse(request, context, ErrorCode.INVALID_REQUEST, None)
        connection.software_name, connection.software_version = name, version
    else:
        connection.software_name = connection.software_version = UNKNOWN
    if request.cluster_id is None:
        if request.node_id != _NO_NODE:
            return refuse(request, context, ErrorCode.INVALID_REQUEST, None)
    elif (request.cluster_id, request.node_id) != (context.image.cluster_id, broker.node_id):
        return refuse(request, context, ErrorCode.REBOOTSTRAP_REQUIRED, None)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=api.key,
                min_version=api.advertised_min_version,
                max_version=api.max_version,
            )
            for api in broker.apis.values()
        ],
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=low, max_version=feature.highest)
            for feature in broker.features
            if (low := feature.lowest) > 0 or context.version >= _LISTS_LEAST_0
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name=feature.name,
                max_version_level=feature.level,
                min_version_level=feature.level,
            )
            for feature in broker.features
            if feature.level > 0
        ],
    )


def refuse(
    _request: ApiVersionsRequest | None, context: Context, error: int, _message: str | None
) -> ApiVersionsResponse:
    """Answers with an error; with the range of this API where the version is not served."""
    keys = []
    if error == ErrorCode.UNSUPPORTED_VERSION:
        api = context.api
        keys.append(
            ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
        )
    return ApiVersionsResponse(error_code=error, api_keys=keys)
