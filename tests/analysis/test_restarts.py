"""An attached server that was another process in some trials."""

from __future__ import annotations

from concurve.definition.study import Hooks
from concurve.findings.run import TrialFindings
from tests.analysis.message_kinds import attached


def test_a_restart_is_told_unless_a_hook_may_be_what_did_it() -> None:
    """``--prepare 'systemctl restart …'`` has a server anew for each trial on purpose."""
    for hooks, is_told in ((None, True), (Hooks(prepare="systemctl restart redis"), False)):
        found = attached(hooks)
        assert isinstance(found, TrialFindings)
        said = [item.sentence for item in found.sentences if "was restarted" in item.sentence]
        assert bool(said) is is_told
