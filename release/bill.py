"""The bill of materials that maturin writes into a wheel, without paths of this machine."""

import base64
import hashlib
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

SUFFIX = ".cyclonedx.json"


def clean(wheel: Path, root: Path) -> None:
    """Writes a wheel anew, whose bill names crates of the repository at `root` from there on."""
    with ZipFile(wheel) as opened:
        entries = {info: opened.read(info) for info in opened.infolist()}
    cleaned = {
        info.filename: data.replace(root.as_uri().encode(), b"file:///ottla")
        for info, data in entries.items()
        if info.filename.endswith(SUFFIX)
    }
    part = wheel.with_suffix(".part")
    with ZipFile(part, "w", ZIP_DEFLATED) as written:
        for info, data in entries.items():
            new = cleaned.get(info.filename, data)
            if info.filename.endswith(".dist-info/RECORD"):
                new = _with_rows(new, cleaned)
            written.writestr(info, new, compress_type=info.compress_type)
    part.replace(wheel)


def _with_rows(record: bytes, files: dict[str, bytes]) -> bytes:
    """Returns the list of the files of a wheel with hashes and sizes of new ones."""
    rows = [line.split(",") for line in record.decode().splitlines()]
    for row in rows:
        if row[0] in files:
            data = files[row[0]]
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            row[1:] = [f"sha256={digest.decode()}", str(len(data))]
    return "".join(",".join(row) + "\n" for row in rows).encode()
