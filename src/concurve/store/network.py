"""Whether a file lies on a network file system, which several machines may have."""

from __future__ import annotations

import re
from pathlib import Path

from concurve.host.mounts import Mount, mount_of

#: The types of such file systems, as proc(5) has them; those of FUSE begin with ``fuse.``.
_NETWORK = re.compile(
    r"(nfs4?|cifs|smb3|smbfs|9p|ceph|afs|lustre|beegfs|gpfs|ocfs2|gfs2|virtiofs|wekafs|panfs|pvfs2"
    r"|vboxsf|davfs.*|fuse\.(sshfs|glusterfs|ceph.*|s3fs|juicefs|mfs|moosefs|lizardfs|davfs.*"
    r"|gcsfuse|rclone))"
)


def is_on_network(file: Path) -> bool:
    """By the mount that holds the file; where that cannot be told, it is not."""
    try:
        mount = mount_of(file)
    except OSError:
        return False
    return mount is not None and is_of_network(mount)


def is_of_network(mount: Mount) -> bool:
    """By the type of its file system."""
    return _NETWORK.fullmatch(mount.kind) is not None
