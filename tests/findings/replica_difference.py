"""Three replicas, one of them with other records for the same offsets."""

from pathlib import Path

from support.finding_case import Case, Found
from support.logs import META_PROPERTIES
from support.small_log import FIRST_LOG, SIZE, batch, overwrite, write_orders

CHANGED = f"broker-2/{FIRST_LOG}"


def clean(directory: Path) -> None:
    for node in (1, 2, 3):
        broker = directory / f"broker-{node}"
        write_orders(broker)
        (broker / "meta.properties").write_text(
            META_PROPERTIES.replace("node.id=1", f"node.id={node}")
        )


def broken(directory: Path) -> None:
    clean(directory)
    overwrite(directory / CHANGED, SIZE, batch(3, value=b"other"))


CASE = Case(
    clean=clean,
    broken=broken,
    found=[Found("replica-difference", "warning", CHANGED, position=SIZE, offsets=(3, 5))],
)
