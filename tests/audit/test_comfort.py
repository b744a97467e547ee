"""What an audit calls sound has every record that was written, however a log was changed.

`pytest tests/audit/test_comfort.py -m slow` tries two thousand changes; a failure names its seed.
"""

import random
import shutil
from pathlib import Path
from typing import Any

import ottla
import pytest
from support.mutated_directories import EXAMPLES, change_bytes

# Sound partitions with data, of one segment and of several, compacted and not.
PARTITIONS = (
    "__consumer_offsets-0",
    "__transaction_state-0",
    "audit-log-0",
    "clickstream-0",
    "customers-0",
    "orders-0",
    "orders-1",
    "payments-0",
)


def write_sound_directory(directory: Path, name: str) -> None:
    """Write the log directory of a broker that stopped cleanly, with one partition."""
    shutil.copytree(EXAMPLES / name, directory / name)
    shutil.copy(EXAMPLES / "meta.properties", directory)
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    topic, _, partition = name.rpartition("-")
    for checkpoint in EXAMPLES.glob("*-offset-checkpoint"):
        version, _, *entries = checkpoint.read_text().splitlines()
        own = [entry for entry in entries if entry.startswith(f"{topic} {partition} ")]
        lines = [version, str(len(own)), *own]
        (directory / checkpoint.name).write_text("\n".join(lines) + "\n")


def records(directory: Path, name: str) -> list[tuple[Any, ...]]:
    found = ottla.read_partition(directory / name, isolation="read_uncommitted")
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found]


def change(directory: Path, name: str, rng: random.Random) -> None:
    """Change one file, mostly a segment: its bytes, its place, or whether it is there."""
    files = sorted((directory / name).glob(rng.choice(("*.log", "*.log", "*"))))
    file = rng.choice(files)
    match rng.randrange(4):
        case 0:
            file.unlink()
        case 1:
            other = rng.choice(files)
            first, second = file.read_bytes(), other.read_bytes()
            file.write_bytes(second)
            other.write_bytes(first)
        case _:
            change_bytes(file, rng)


def next_start(directory: Path, name: str) -> tuple[bool, int | None, int | None]:
    """Whether the next start opens the log, and where it then begins and ends."""
    after = ottla.predict_recovery(directory / name, clean=True, recovery_point=None)
    return after.opens, after.log_start_offset, after.log_end_offset


@pytest.fixture(scope="module", params=PARTITIONS)
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp(request.param) / "kafka"
    directory.mkdir()
    write_sound_directory(directory, request.param)
    assert ottla.audit(directory).summary.verdict == "SOUND"
    return directory


def check(sound: Path, seeds: range, tmp_path: Path) -> None:
    (name,) = (path.name for path in sound.iterdir() if path.is_dir())
    written, start = records(sound, name), next_start(sound, name)
    assert start[0]
    directory = tmp_path / "kafka"
    for seed in seeds:
        shutil.copytree(sound, directory)
        change(directory, name, random.Random(seed))
        result = ottla.audit(directory)
        if result.summary.verdict == "SOUND":
            assert records(directory, name) == written, seed
            assert next_start(directory, name) == start, seed
        shutil.rmtree(directory)


@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
def test_a_changed_log_that_is_called_sound_has_every_record(sound: Path, tmp_path: Path) -> None:
    check(sound, range(12), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ottla.errors.DamageWarning")
def test_each_of_many_changed_logs_that_is_called_sound_has_every_record(
    sound: Path, tmp_path: Path
) -> None:
    check(sound, range(1000, 1250), tmp_path)
