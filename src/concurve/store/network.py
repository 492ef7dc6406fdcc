"""Whether a file lies on a network file system, which several machines may have."""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

#: The types of such file systems, as proc(5) has them; those of FUSE begin with ``fuse.``.
_NETWORK = re.compile(
    r"(nfs4?|cifs|smb3|smbfs|9p|ceph|afs|lustre|beegfs|gpfs|ocfs2|gfs2|virtiofs|wekafs|panfs|pvfs2"
    r"|vboxsf|davfs.*|fuse\.(sshfs|glusterfs|ceph.*|s3fs|juicefs|mfs|moosefs|lizardfs|davfs.*"
    r"|gcsfuse|rclone))"
)


def is_on_network(file: Path, mounts: Path = MOUNTS) -> bool:
    """By the mount that holds the file; where that cannot be told, it is not."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        place = str(file.resolve())
    except OSError:
        return False
    found = ("", "")
    for line in lines:
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        is_below = place == point or place.startswith(f"{point.rstrip('/')}/")
        # Of two mounts at one point the later one is seen.
        if is_below and len(point) >= len(found[0]):
            found = point, after.split(" ")[0]
    return _NETWORK.fullmatch(found[1]) is not None
