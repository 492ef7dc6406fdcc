"""Damages of files: what disks, editors and killed processes leave of them."""

from __future__ import annotations

import random
from collections.abc import Iterator


def damages(whole: bytes, seed: int, count: int) -> Iterator[bytes]:
    """So many damaged forms of a file, the same for the same seed: a bit flipped, a part zeroed,
    cut out, doubled or replaced by garbage, an end cut off, and nothing but garbage."""
    known = [b"", b"\0" * len(whole), b"\xff\xfe" + whole, b"5\n", b"[1]\n", b"[" * 100_000]
    yield from known
    draw = random.Random(seed)
    for _ in range(count - len(known)):
        at = draw.randrange(len(whole))
        end = min(len(whole), at + draw.choice((1, 1, 2, 8, 100, len(whole))))
        before, part, after = whole[:at], whole[at:end], whole[end:]
        yield draw.choice([
            before + bytes([part[0] ^ 1 << draw.randrange(8)]) + whole[at + 1 :],
            before + bytes(len(part)) + after,
            before + after,
            before + part + part + after,
            before + draw.randbytes(len(part)) + after,
            before,
            draw.randbytes(draw.randrange(400)),
        ])  # fmt: skip
