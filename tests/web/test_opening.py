"""A browser is started without the token on its command line, which all users see."""

from __future__ import annotations

import errno
import tempfile
import urllib.parse
import webbrowser
from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.web.opening import opening

ADDRESS = "http://127.0.0.1:8377/#token=Sesam-&<Open>-1"


def test_the_browser_gets_a_file_of_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with opening() as open_address:
        open_address(ADDRESS)
        (url,) = opened
        assert "Sesam" not in url
        file = Path(urllib.parse.urlparse(url).path)
        text = file.read_text(encoding="utf-8")
        assert "url=http://127.0.0.1:8377/#token=Sesam-&amp;&lt;Open&gt;-1" in text
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
    assert not file.parent.exists()


def test_without_a_place_for_it_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    with pytest.raises(HostError, match="No space left") as raised, opening():
        pass
    assert "--open" in raised.value.remedy
