//! Processes that the runner may not end do not hold the trial.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use concurve_wire::record::OutcomeKind;
use nix::sys::signal::Signal;

use crate::common::{self, Trial, can_run_as_nobody, role};

/// What setpriv needs to run programs as the user nobody, who may still become another user.
fn nobody() -> Vec<&'static str> {
    let stays = |argument: &&str| *argument != "--no-new-privs";
    common::NOBODY.into_iter().filter(stays).collect()
}

#[test]
fn a_process_of_another_user_is_named_and_left() {
    if !can_run_as_nobody() {
        return;
    }
    // As sudo does: a program that becomes another user, whom the runner may not signal.
    let folder = common::folder_for_all();
    let path = Command::new("sh")
        .args(["-c", "command -v setpriv"])
        .output();
    let path = String::from_utf8(path.unwrap().stdout).unwrap();
    let sudo = common::copy_of(path.trim(), &folder.path().join("become"));
    std::fs::set_permissions(&sudo, PermissionsExt::from_mode(0o4755)).unwrap();
    let sudo = sudo.to_str().unwrap();
    let mut id = Command::new("setpriv");
    id.args(nobody()).args([sudo, "--reuid=0", "id", "-ru"]);
    if id.output().unwrap().stdout != b"0\n" {
        return; // the folder is mounted without set-user-ID
    }
    let mut trial = Trial::of([role("target", [sudo, "--reuid=0", "sleep", "1079"])]);
    trial.0["time_limit_ns"] = 300_000_000.into();
    let record = common::record_as(&nobody(), "true", trial);
    let target = &record.roles[0];
    let pid = target.pid.unwrap();
    concurve_probe::process::kill(pid, Signal::SIGKILL).unwrap();
    assert_eq!(record.outcome.kind, OutcomeKind::TimedOut);
    let message = record.outcome.message.unwrap();
    assert!(
        message.contains(&format!("may not end process {pid}, left")),
        "{message}"
    );
    assert_eq!((target.exit, target.ended_by), (None, None));
    assert_eq!(target.usage.rss_bytes_max, None, "nobody has waited for it");
    assert!(target.usage.absent.contains_key("rss_bytes_max"));
}
