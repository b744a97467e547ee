"""UpdateFeatures (key 57), versions 0 to 2: raises or lowers levels of features (KIP-584).

Version 1 says whether a level may be lowered, and can try without doing it; 2 answers for all
features at once. All of them are changed, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.authorizer import Operation
from ottla.broker.features import FeatureError, updated
from ottla.broker.handlers.permission import cluster_error
from ottla.protocol.error_code import ErrorCode
from ottla.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

__all__ = ["handle", "refuse"]

_SAYS_WHETHER_TO_LOWER = 1
_RAISE, _LOWER = 1, 2


def handle(
    broker: Broker, request: UpdateFeaturesRequest, context: Context
) -> UpdateFeaturesResponse:
    """Changes levels that clients find in ApiVersions from then on."""
    error = cluster_error(broker, context, Operation.ALTER)
    if error:
        return refuse(request, context, error, None)
    features = broker.features
    try:
        for update in request.feature_updates:
            features = updated(
                features,
                update.feature,
                update.max_version_level,
                _kind_of(update, context.version),
            )
    except FeatureError as refusal:
        message = (
            "The update failed for all features since the following feature had an error: "
            f"{refusal}"
        )
        return refuse(request, context, ErrorCode.INVALID_UPDATE_VERSION, message)
    if not request.validate_only:
        broker.keeper.set_features(
            after
            for before, after in zip(broker.features, features, strict=True)
            if before != after
        )
        broker.features = features
        broker.transactions.follow_settings()
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ],
    )


def _kind_of(update: FeatureUpdateKey, version: int) -> int:
    if version >= _SAYS_WHETHER_TO_LOWER:
        return update.upgrade_type
    return _LOWER if update.allow_downgrade else _RAISE


def refuse(
    _request: UpdateFeaturesRequest, _context: Context, error: int, message: str | None
) -> UpdateFeaturesResponse:
    """Answers with an error."""
    return UpdateFeaturesResponse(error_code=error, error_message=message)
