//! Roles that serve, and the order of roles.

use std::time::{Duration, Instant};

use concurve_wire::record::{EndedBy, OutcomeKind};
use serde_json::json;

use crate::common::{Trial, record, role};

#[test]
fn roles_start_in_order_and_servers_are_stopped() {
    let mut server = role(
        "server",
        [
            "sh",
            "-c",
            "trap 'echo bye; exit 0' TERM; sleep 0.1; echo '{\"ready\":true}' >&3; while :; do sleep 0.01; done",
        ],
    );
    server["end"] = "serve".into();
    server["ready"] = "report".into();
    let load = role("load", ["sleep", "0.05"]);
    let mut verify = role("verify", ["true"]);
    verify["after"] = json!(["load"]);
    let record = record(Trial::of([server, load, verify]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let [server, load, verify] = &record.roles[..] else {
        panic!()
    };
    assert_eq!(server.ended_by, Some(EndedBy::Stopped));
    assert_eq!(server.stdout.head, "bye\n");
    assert!(load.released_ns >= 100_000_000);
    assert!(verify.released_ns >= load.released_ns + load.wall_ns);
    assert_eq!(record.wall_ns, verify.released_ns + verify.wall_ns);
}

#[test]
fn a_server_that_resists_is_killed_after_its_grace() {
    let mut server = role(
        "server",
        ["sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"],
    );
    server["end"] = "serve".into();
    let mut trial = Trial::of([server, role("load", ["sleep", "0.05"])]);
    trial.0["stop_grace_ns"] = 100_000_000.into();
    let record = record(trial);
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    assert_eq!(record.roles[0].ended_by, Some(EndedBy::Killed));
}

#[test]
fn a_server_that_dies_fails_the_trial() {
    let mut server = role("server", ["sh", "-c", "sleep 0.05; exit 0"]);
    server["end"] = "serve".into();
    let begun = Instant::now();
    let died = record(Trial::of([server.clone(), role("load", ["sleep", "30"])]));
    assert_eq!(died.outcome.kind, OutcomeKind::ProgramFailed);
    assert_eq!(died.outcome.role.as_deref(), Some("server"));
    assert_eq!(died.roles[1].ended_by, Some(EndedBy::Killed));
    assert!(begun.elapsed() < Duration::from_secs(25));
    server["ready"] = "report".into();
    let unready = record(Trial::of([server, role("load", ["sleep", "30"])]));
    assert_eq!(unready.outcome.kind, OutcomeKind::NotReady);
    assert_eq!(unready.roles[1].pid, None);
}
