"""Wheels of both distributions, and fresh environments to install them into."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

from concurve.host import native
from concurve.version import __version__
from tests.helpers.real import PATIENCE, STEERING

ROOT = Path(__file__).resolve().parents[2]

#: What the commands of the tests need from the system: no compiler, no cargo, no Java, no Python.
TOOLS = ("cat", "env", "sh", "true", "uname")

_TAG = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
_METADATA = f"Metadata-Version: 2.1\nName: concurve-native\nVersion: {__version__}\n"
_WHEEL = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {_TAG}\n"


def programs() -> list[str]:
    """The names of the compiled programs."""
    manifest = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())
    return [program["name"] for program in manifest["bin"]]


def laboratory_wheel(folder: Path) -> Path:
    """The wheel of the laboratory, built from the checkout by the environment of the tests.

    Raises:
        AssertionError: pip fails; the message is its output.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation"),
            *("--no-deps", "--no-index", "--wheel-dir", str(folder), str(ROOT)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return next(folder.glob("concurve-*.whl"))


def programs_wheel(folder: Path) -> Path:
    """A wheel of the programs that the tests run, as maturin packs those of a release: each in the
    folder that pip installs scripts from.

    Raises:
        HostError: a program is not built.
    """
    prefix = f"concurve_native-{__version__}"
    members = {
        **{
            f"{prefix}.data/scripts/{name}": native.binary(name).read_bytes() for name in programs()
        },
        f"{prefix}.dist-info/METADATA": _METADATA.encode(),
        f"{prefix}.dist-info/WHEEL": _WHEEL.encode(),
    }
    record = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in members.items()]
    members[f"{prefix}.dist-info/RECORD"] = "\n".join(
        [*record, f"{prefix}.dist-info/RECORD,,\n"]
    ).encode()
    wheel = folder / f"{prefix}-{_TAG}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Installation:
    """A fresh virtual environment on a machine without toolchains: the ``PATH`` holds the
    environment's programs and :data:`TOOLS`, the home folder is empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        self.home = folder / "home"
        venv.create(folder / "venv")
        self.home.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        for name in TOOLS:
            (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        outer = {k: v for k, v in os.environ.items() if not k.startswith("CONCURVE")}
        unwanted = {*STEERING, "PYTHONPATH", "JAVA_HOME", "VIRTUAL_ENV"}
        self.environment = {
            **{k: v for k, v in outer.items() if k not in unwanted},
            "PATH": f"{self.bin}:{tools}",
            "HOME": str(self.home),
            "COLUMNS": "80",
            "CONCURVE_LOCK": str(folder / "lock"),
        }

    def lend_packages(self) -> None:
        """Let it import the packages of the environment of the tests: no network is needed then.
        After the wheels are installed: pip installs nothing that it finds lent. The editable
        laboratory is not among them: a ``.pth`` names it, and those of a lent folder are not
        read."""
        site = self.folder / "venv" / "lib"
        (packages,) = site.glob("python*/site-packages")
        (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pip on the environment; its own would take longer to unpack than to use."""
        pip = ("-m", "pip", "--disable-pip-version-check", "--python", str(self.bin / "python"))
        return self._run(sys.executable, *pip, *arguments)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the environment's programs, found on its ``PATH`` alone."""
        return self._run(str(self.bin / program), *arguments)

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell, with the programs of the ``PATH`` alone."""
        return self._run("/bin/sh", "-c", command)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
