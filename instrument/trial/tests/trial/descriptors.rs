//! A runner that may open few files measures programs with many threads, and ends them.

use concurve_wire::record::{Exit, OutcomeKind};
use serde_json::json;

use crate::common::{self, Trial, python, role};

/// Has 300 threads that wait, and marks a phase.
const MANY_THREADS: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
def mark(edge):
    os.write(3, b'{\"phase\":\"measure\",\"edge\":\"%s\"}\\n' % edge)
for _ in range(300):
    thread = ctypes.c_ulong()
    if libc.pthread_create(ctypes.byref(thread), None, libc.pause, None): raise OSError
mark(b'begin')
mark(b'end')
libc.pause()
";

#[test]
fn the_time_limit_ends_a_program_with_more_threads_than_files_may_be_open() {
    let mut trial = Trial::from(role("target", [python(), "-c", MANY_THREADS]));
    trial.0["time_limit_ns"] = 3_000_000_000u64.into();
    trial.0["sampling"] = json!({"interval_ns_min": 1_000_000, "cpu_share_max": 1.0});
    let record = common::record_under("ulimit -n 200", trial);
    assert_eq!(
        record.outcome.kind,
        OutcomeKind::TimedOut,
        "{:?}",
        record.outcome
    );
    let target = &record.roles[0];
    assert_eq!(target.exit, Some(Exit::Signal(libc::SIGKILL)));
    assert!(target.threads.peak >= Some(301), "{:?}", target.threads);
    let usage = &target.phases[0].usage;
    assert!(usage.slices.is_some() || usage.absent.contains_key("slices"));
}

#[test]
fn programs_get_the_limit_that_the_runner_was_started_with() {
    let mut server = role(
        "server",
        ["sh", "-c", "ulimit -Sn; ulimit -Hn; exec sleep 1081"],
    );
    server["end"] = "serve".into();
    let asked = "test \"$(ulimit -Sn)\" = 190";
    server["ready_probe"] = json!({"command": ["sh", "-c", asked]});
    let trial = Trial::of([server, role("client", ["true"])]);
    let record = common::record_under("ulimit -Sn 190; ulimit -Hn 400", trial);
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    assert_eq!(record.roles[0].stdout.head, "190\n400\n");
}
