"""EndTxn (key 26), versions 0 to 5: commit or abort (KIP-98).

Version 1 throttles after the answer, 2 knows PRODUCER_FENCED (KIP-588), 3 is flexible, 4 knows
TRANSACTION_ABORTABLE, 5 raises the producer's epoch and answers with it (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import LATER
from ottla.broker.handlers.permission import transactional_id_error
from ottla.broker.storage import STORAGE
from ottla.broker.transactions.error_codes import known_to
from ottla.broker.waiting import NEVER_MS, Waiting
from ottla.protocol.api_key import ApiKey
from ottla.protocol.messages.end_txn import EndTxnResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context, Later
    from ottla.protocol.messages.end_txn import EndTxnRequest

__all__ = ["handle", "refuse"]

_BUMPS = 5


def handle(broker: Broker, request: EndTxnRequest, context: Context) -> EndTxnResponse | Later:
    """Ends the transaction; from version 5 on with the id and epoch of the next."""
    error = transactional_id_error(broker, context, request.transactional_id)
    if error:
        return refuse(request, context, error, None)
    answer = broker.transactions.end_transaction(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        context.now_ms,
        commit=request.committed,
        transaction_version=2 if context.version >= _BUMPS else 0,
    )
    response = EndTxnResponse(
        error_code=known_to(ApiKey.END_TXN, context.version, answer.error_code),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )
    if answer.error_code or not broker.transactions.is_ending(request.transactional_id):
        return response
    _answer_at_its_end(broker, request.transactional_id, context, response)
    return LATER


def _answer_at_its_end(
    broker: Broker, transactional_id: str, context: Context, response: EndTxnResponse
) -> None:
    """Answers once the outcome is on the disk, and mostly the next transaction may begin."""

    def attempt(_is_due: bool, _now_ms: int) -> bool:
        if broker.transactions.is_ending(transactional_id):
            return False
        if broker.wrong.get(STORAGE):
            context.send(None)
        else:
            context.reply(response)
        return True

    broker.waiting.add(Waiting(NEVER_MS, attempt, [("transaction", transactional_id)]))


def refuse(
    _request: EndTxnRequest, _context: Context, error: int, _message: str | None
) -> EndTxnResponse:
    """Answers with an error."""
    return EndTxnResponse(error_code=error)
