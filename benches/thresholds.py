"""How many times faster than its base each race at 1 MiB must be, for each level of kernels.

Thresholds lie below what was found on two machines: an AMD EPYC with AVX-512, on which every level
of x86 was measured (`OTTLA_KERNELS`), and one without it and half as fast per core. They are 0.6 to
0.85 of the lower figure, since a shared machine and another CPU move a ratio by a third. What they
catch is a kernel that is no longer chosen or a copy that came in; smaller steps show in the
instructions.

No machine with `arm64` was measured. Its walk is the portable one and its checksum is faster, so it
is held to what the portable level reaches.
"""

LEVELS = ("avx512", "bmi2", "sse42", "portable")

# Title of the case: the threshold at each of these levels.
_BY_LEVEL: dict[str, tuple[float, float, float, float]] = {
    "check 100B-x1000": (24, 18, 14, 2.2),
    "check 100B-x1": (16.8, 14, 12, 3.8),
    "check 1KiB-x1000": (21, 13.5, 12.5, 1.1),
    "check 100B-x1000-4h": (24, 20, 18, 3.8),
    "call 100B-x1": (4.8, 4.5, 4.5, 2),
    "numbers 100B-x1000": (30, 25, 22, 4.5),
    "numbers 1KiB-x1000": (18, 15, 14, 1.45),
    "views 100B-x1000": (21, 17.5, 14, 3.4),
    "views 1KiB-x1000": (16.8, 12.5, 11.5, 1.6),
    # Its bytes lie about where malloc begins to map pages: what these cost is the machine's.
    "build 100B-x1000": (5, 5, 5, 5),
    "build 1KiB-x1000": (6, 6, 6, 6),
    "append 100B-x100": (9, 8, 7, 1.9),
    "append 100B-x8000": (9, 9, 9, 2.2),
    "append 1KiB-x1000": (9, 9, 9, 1.15),
    "accept 100B-x8000": (0.6, 0.74, 0.74, 0.74),
    "accept 1KiB-x1000": (0.7, 0.74, 0.74, 0.74),
    "append-inflate 1KiB-x1000-gzip": (0.765, 0.765, 0.765, 0.7),
    "append-inflate 1KiB-x1000-snappy": (0.765, 0.765, 0.765, 0.6),
    "append-inflate 1KiB-x1000-zstd": (0.765, 0.765, 0.765, 0.65),
    "append-inflate 1KiB-x1000-lz4": (0.765, 0.765, 0.74, 0.43),
}
# What the base does is most of both sides, or the case names its level: one threshold for all.
_AT_ANY_LEVEL: dict[str, float] = {
    "check 100B-x1000 (bmi2)": 12,
    "check 100B-x1000 (sse42)": 7.2,
    "check 100B-x1000-gzip": 0.765,
    "check 100B-x1000-snappy": 0.765,
    "check 100B-x1000-zstd": 0.765,
    "check 100B-x1000-lz4": 0.68,
    "accept 100B-x1": 0.2,
}
GUARDED = frozenset({*_BY_LEVEL, *_AT_ANY_LEVEL})


def threshold(title: str, level: str) -> float:
    """Return the least ratio of a case at a level of kernels."""
    if title in _AT_ANY_LEVEL:
        return _AT_ANY_LEVEL[title]
    return _BY_LEVEL[title][LEVELS.index("portable" if level == "arm64" else level)]
