"""What a producer does about errors, held to the tables of KIP-691's acceptance list.

The tables are those of the specification, letter by letter, and not what the client makes of them:
``F`` fatal, ``A`` abort, ``Ab`` abort and take a new epoch, ``r`` repeat, ``c`` find the
coordinator and repeat, ``-`` an answer that no broker gives.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.client.delivery import reactions as of_batches
from ottla.client.transactions.reactions import APIS, Reaction, reaction

# code: InitProducerId, AddPartitions, AddOffsets, TxnOffsetCommit, EndTxn, FindCoordinator
TRANSACTIONAL = {
    15: "c c c c c r",
    16: "c c c c c r",
    7: "r r r c r r",
    14: "r r r r r r",
    51: "r r r r r r",
    47: "F F F F F -",
    90: "F F F F F -",
    53: "F F F F F F",
    31: "F - - - - -",
    48: "F F F F F -",
    49: "F Ab Ab Ab Ab -",
    59: "F Ab Ab Ab Ab -",
    29: "- F - - - -",
    30: "- - F F - F",
    82: "- - - F - -",
    25: "- - - F - -",
    22: "- - - F - -",
    43: "- - - F - -",
    120: "A A A A A A",
    55: "- A - - - -",
    17: "- A - - - -",
    50: "F - - - - -",
    58: "F F F F F F",
    35: "F F F F F F",
    999: "F A F F F F",
    -1: "F A F F F F",
}

# Where Kafka's own client does otherwise, which the policy ``kafka`` restores.
KAFKAS = {
    29: "- A - - - -",
    30: "- - A A - A",
    82: "- - - A - -",
    25: "- - - A - -",
    22: "- - - A - -",
}

LETTERS: dict[str, set[Reaction]] = {
    "F": {Reaction.FATAL, Reaction.FENCED, Reaction.REMOVED},
    "A": {Reaction.ABORT},
    "Ab": {Reaction.BUMP},
    "r": {Reaction.RETRY},
    "c": {Reaction.FIND},
}


def cells(table: dict[int, str]) -> list[tuple[int, str, str]]:
    return [
        (code, api, letter)
        for code, row in table.items()
        for api, letter in zip(APIS, row.split(), strict=True)
        if letter != "-"
    ]


@pytest.mark.parametrize(("code", "api", "letter"), cells(TRANSACTIONAL))
def test_a_cell_is_as_the_specification_has_it(code: int, api: str, letter: str) -> None:
    assert reaction(api, code) in LETTERS[letter]


@pytest.mark.parametrize(("code", "api", "letter"), cells({**TRANSACTIONAL, **KAFKAS}))
def test_a_cell_is_as_kafkas_own_client_has_it_where_that_is_wished(
    code: int, api: str, letter: str
) -> None:
    found = reaction(api, code, "kafka")
    if letter == "A" and found is Reaction.REMOVED:
        return  # Under this policy, it aborts: `test_reactions` holds what becomes of a producer.
    assert found in LETTERS[letter]


@pytest.mark.parametrize("api", APIS)
def test_a_fenced_producer_is_told_so_whatever_the_coordinator_calls_it(api: str) -> None:
    if api != "FindCoordinator":
        assert reaction(api, 47) is Reaction.FENCED


# Codes of a batch's answer, and what becomes of it without ids, with them, in a transaction: `r`
# repeat, `u` look the leader up and repeat, `d` done, `s` split, `p` fail the records that are
# named, `x` fail the batch, `A`, `Ab` and `F` as above, `b` take a new epoch and repeat, `?` ask
# what the leader still knows.
BATCHES = {
    (0, 46): "d d d",
    (7, 13, 19, 20, 14, 75, 78, 89, 2): "r r r",
    (3, 5, 6, 9, 56, 100, 103, 74): "u u u",
    (10,): "s s s",
    (18,): "x x A",
    (87, 32): "p p p",
    (42, 21, 17, -1, 999): "x x A",
    (43, 35): "x F F",
    (29,): "x x F",
    (31, 53): "x F F",
    (45, 59): "x ? ?",
    (47,): "x b Ab",
    (90,): "x F F",
    (49,): "x x Ab",
    (48,): "x x F",
    (51,): "x x r",
    (120,): "x x A",
}

OF_BATCHES = of_batches.Reaction
BATCH_LETTERS: dict[str, of_batches.Reaction] = {
    "d": OF_BATCHES.DONE,
    "r": OF_BATCHES.RETRY,
    "u": OF_BATCHES.REFRESH,
    "s": OF_BATCHES.SPLIT,
    "p": OF_BATCHES.DROP,
    "x": OF_BATCHES.FAIL,
    "A": OF_BATCHES.ABORT,
    "Ab": OF_BATCHES.ABORT_BUMP,
    "F": OF_BATCHES.FATAL,
    "b": OF_BATCHES.BUMP,
    "?": OF_BATCHES.STATE,
}


@pytest.mark.parametrize(
    ("code", "kind", "letter"),
    [
        (code, kind, letter)
        for codes, row in BATCHES.items()
        for code in codes
        for kind, letter in zip(of_batches.KINDS, row.split(), strict=True)
    ],
)
def test_a_batch_fares_as_the_specification_has_it(code: int, kind: Any, letter: str) -> None:
    assert of_batches.reaction(code, kind) is BATCH_LETTERS[letter]


def test_a_missing_acl_of_a_topic_aborts_as_in_kafkas_own_client_where_that_is_wished() -> None:
    assert of_batches.reaction(29, "transactional", "kafka") is OF_BATCHES.ABORT
