"""The samples in `tests/samples`: chosen from the corpora beside the repository by what they show.

    python -m support.sampling SHARED

Each case has traits: its class, the answer of Kafka, and what the engine says of it, sentence by
sentence. Of each trait a sample holds as many cases as it has room for, the smallest first, so
that no rule, refusal or finding that the corpora show is missing.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla
import ottla.audit
from support import damage, vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SAMPLES = Path(__file__).parents[1] / "samples"
Case = dict[str, Any]
Traits = set[tuple[object, ...]]

# At least as many cases of each file, after every trait is held once.
DECIDE, READ, HISTORY, DAMAGE = 1500, 700, 240, 100
WIDE_DECIDE, WIDE_READ = 1000, 500


def chosen(sizes: list[int], traits: list[Traits], at_least: int) -> list[int]:
    """Return the places of the smallest cases that hold every trait, and more up to a number."""
    order = sorted(range(len(sizes)), key=lambda place: (sizes[place], place))
    held: Counter[tuple[object, ...]] = Counter()
    taken: set[int] = set()
    times = 0
    while times == 0 or len(taken) < min(at_least, len(sizes)):
        times += 1
        for place in order:
            if place not in taken and any(held[trait] < times for trait in traits[place]):
                taken.add(place)
                held.update(traits[place])
    return sorted(taken)


def sentence(text: object) -> str:
    """Return an error's text without its figures: the rule that it states."""
    return re.sub(r"'[^']*'|-?\b(?=[a-f]*\d)[0-9a-f]+\b", "#", str(text))


def traits_of_decision(case: Case) -> Traits:
    """Return what a decision shows: rules by their sentences, in both profiles, and settings."""
    out, cfg = case["out"], case.get("cfg", {})
    records = base64.b64decode(case["in"])
    answer = (out["code"], out.get("exception"), out.get("scope"))
    traits: Traits = {
        ("class", case["class"]),
        ("class and code", case["class"], out["code"]),
        ("answer", *answer, out.get("in_place"), out.get("metrics")),
        ("culprits", out["code"], min(len(out.get("record_errors", [])), 3)),
        ("kept or not", out.get("in_place"), bool(out.get("converted"))),
        ("3.9 differs", "kafka_3_9" in case, case["class"].partition(".")[0]),
    }
    traits |= {
        ("setting", name, value if isinstance(value, str | bool) else "other", out["code"])
        for name, value in cfg.items()
    }
    if version := cfg.get("api_version"):
        traits.add(("version", version, *answer))
    for batch in out.get("stored", []):
        traits.add(("stored attributes", batch[2], out["in_place"], batch[6] >= 0))
    for profile in ("kafka", "strict"):
        verdict = vectors.verdict_of(records, cfg, profile)
        traits.add(
            ("sentence", profile, out["code"], verdict.error, sentence(verdict.error_message))
        )
        for error in verdict.record_errors:
            traits.add(("record", profile, error.error, sentence(error.message)))
    return traits


def traits_of_wide_decision(case: Case) -> Traits:
    """Return what a decision over a seldom shape shows: the same by codec."""
    out, records = case["out"], base64.b64decode(case["in"])
    codec = records[22 if records[16:17] == b"\2" else 17] & 7 if len(records) > 22 else None
    answer = (out["code"], out.get("in_place"), out.get("content", "")[:1] == "!")
    return traits_of_decision(case) | {
        ("codec", case["class"], codec, *answer),
        ("intent", vectors.DIFFERENCES.get(case["id"])),
    }


def traits_of_reading(case: Case) -> Traits:
    """Return what a reading shows: headers, errors, ends, and the engine's sentences about them."""
    out = case["out"]
    traits: Traits = {
        ("class", case["class"]),
        ("end", out.get("end"), bool(out.get("tail"))),
        ("batches", min(len(out["batches"]), 4)),
        ("3.9 differs", "kafka_3_9" in case),
    }
    for batch in out["batches"]:
        refusal = batch.get("header", batch.get("error"))
        traits.add(("class and refusal", case["class"], refusal))
        kind = (batch.get("magic"), batch.get("control"), batch.get("txn"), batch.get("ts_type"))
        traits.add(("batch", *kind, refusal, "header" in batch, batch.get("records", 0) == 0))
    try:
        for read in ottla.read_batches(base64.b64decode(case["in"])):
            traits.add(("codec", read.magic, read.compression))
            try:
                sum(1 for _ in read.records())
                read.verify()
            except ottla.RecordBatchError as error:
                traits.add(("sentence", error.kind, sentence(error)))
    except ottla.RecordBatchError as error:
        traits.add(("sentence", error.kind, sentence(error)))
    return traits


def traits_of_history(case: Case) -> Traits:
    """Return what a history shows: operations with their answers, and each after another."""
    traits: Traits = {
        ("class", case["class"]),
        ("settings", *(case["cfg"][name] for name in ("verification", "auto_high_watermark"))),
        ("3.9 differs", "kafka_3_9" in case),
        ("aborted", min(len(case["final"]["aborted"]), 3)),
        ("producers", min(len(case["final"]["producers"]), 3)),
        ("remembered", *sorted({len(p["batches"]) for p in case["final"]["producers"]})),
    }
    before: tuple[object, ...] = ()
    for op, answer in zip(case["ops"], case["answers"], strict=True):
        flags = tuple(op.get(flag) for flag in ("guard", "origin", "v2", "commit", "clean"))
        what = (op["op"], *flags, answer.get("exception"), answer.get("duplicate"))
        traits |= {("step", *what, answer.get("guard")), ("steps", *before, *what[:1], *what[-2:])}
        before = (what[0], *what[-2:])
    return traits


def traits_of_damage(root: Path, name: str) -> Traits:
    """Return what a damaged log shows: injuries, what is expected, what is found, how it starts."""
    truth = damage.truth_of(root / name)
    traits: Traits = {("state", truth["state"], truth["control"])}
    for injury in truth["injuries"]:
        traits.add(("injury", injury["kind"]))
        for expected in injury["expect"]:
            traits.add(("expected", expected["kind"], expected["severity"], expected["must"]))
            traits.add(("cause", expected.get("cause"), bool(expected.get("lost"))))
    for found in damage.audited(root / name).findings:
        traits.add(("found", found["name"], found["severity"], found["cause"]))
    return traits


def lines_of(path: Path) -> list[str]:
    """Return the lines of a packed file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return lines.readlines()


def packed(lines: Iterable[str]) -> bytes:
    """Return lines packed, the same bytes every time."""
    return gzip.compress("".join(lines).encode(), 9, mtime=0)


def sample_of_vectors(path: Path, traits_of: Callable[[Case], Traits], at_least: int) -> bytes:
    """Return a sample of a file of vectors."""
    lines = lines_of(path)
    traits = [traits_of(json.loads(line)) for line in lines]
    return packed(lines[place] for place in chosen([*map(len, lines)], traits, at_least))


def sample_of_damage(root: Path, at_least: int) -> bytes:
    """Return some of the damaged logs, with what Kafka makes of them, as an archive."""
    names = sorted(path.name for path in (root / "cases").iterdir())
    sizes = [sum(1 + file.stat().st_size for file in files_of(root / "cases" / n)) for n in names]
    traits = [traits_of_damage(root / "cases", name) for name in names]
    taken = {names[place] for place in chosen(sizes, traits, at_least)}
    starts = [
        line
        for line in (root / "recovery.jsonl").read_text().splitlines(keepends=True)
        if (row := json.loads(line))["case"] in taken and row["dir"].startswith("cases/")
    ]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", format=tarfile.GNU_FORMAT) as tar:
        add(tar, "recovery.jsonl", "".join(starts).encode())
        for name in sorted(taken):
            for file in files_of(root / "cases" / name):
                add(tar, str(file.relative_to(root)), file.read_bytes())
    return archive.getvalue()


def files_of(directory: Path) -> Iterator[Path]:
    """Return the files of a damaged log, in order."""
    return (path for path in sorted(directory.rglob("*")) if path.is_file())


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file to an archive that knows no time and no owner."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    member.mode = 0o644
    tar.addfile(member, io.BytesIO(data))


def main(shared: Path) -> None:
    """Choose every sample anew."""
    SAMPLES.mkdir(exist_ok=True)
    for name, corpus, traits_of, at_least in (
        ("decide", "vectors/decide", traits_of_decision, DECIDE),
        ("read", "vectors/read", traits_of_reading, READ),
        ("history", "vectors/history", traits_of_history, HISTORY),
        ("wide-decide", "vectors-wide/decide", traits_of_wide_decision, WIDE_DECIDE),
        ("wide-read", "vectors-wide/read", traits_of_reading, WIDE_READ),
    ):
        sample = sample_of_vectors(shared / f"{corpus}.jsonl.gz", traits_of, at_least)
        (SAMPLES / f"{name}.jsonl.gz").write_bytes(sample)
    (SAMPLES / "damage.tar.xz").write_bytes(sample_of_damage(shared / "damage", DAMAGE))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m support.sampling SHARED")
    main(Path(sys.argv[1]))
