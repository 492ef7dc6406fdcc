//! Roles that are ready by what is seen of them from outside.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use concurve_wire::record::{OutcomeKind, TrialRecord};
use serde_json::{Value, json};

use crate::common::{Trial, python, record, role, run};

/// A server that waits a while, says that it listens, accepts, and writes what it is asked for.
const SERVER: &str = "\
import socket, sys, time
time.sleep(0.15)
listening = socket.create_server(('127.0.0.1', int(sys.argv[1])))
print('loading the data', flush=True)
print('listening on', sys.argv[1], file=sys.stderr, flush=True)
while True:
    listening.accept()[0].close()
";

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn server(port: u16, probe: Value) -> Value {
    let mut server = role("server", [python(), "-c", SERVER, &port.to_string()]);
    server["end"] = "serve".into();
    server["ready_probe"] = probe;
    server["ready_limit_ns"] = 20_000_000_000u64.into();
    server
}

/// A client that fails if nothing listens yet.
fn client(port: u16) -> Value {
    let code = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
    role("client", [python(), "-c", &code])
}

fn served(port: u16, probe: Value) -> TrialRecord {
    record(Trial::of([server(port, probe), client(port)]))
}

fn refused(mut role: Value, limit_ns: u64) -> String {
    role["ready_limit_ns"] = limit_ns.into();
    let begun = Instant::now();
    let record = record(Trial::of([role, self::role("client", ["sleep", "30"])]));
    assert!(begun.elapsed() < Duration::from_secs(25));
    assert_eq!(
        record.outcome.kind,
        OutcomeKind::NotReady,
        "{:?}",
        record.outcome
    );
    assert_eq!(record.outcome.role.as_deref(), Some("server"));
    assert_eq!(record.roles[1].pid, None, "the client was never started");
    record.outcome.message.unwrap()
}

#[test]
fn a_client_starts_when_its_server_is_seen_to_be_ready() {
    let connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))";
    for kind in ["tcp", "line", "command"] {
        let port = free_port();
        let probe = match kind {
            "tcp" => json!({"tcp": format!("127.0.0.1:{port}")}),
            "line" => json!({"line": format!("^listening on {port}$")}),
            _ => json!({"command": [python(), "-c", connect, port.to_string()]}),
        };
        let record = served(port, probe);
        assert_eq!(
            record.outcome.kind,
            OutcomeKind::Ok,
            "{kind}: {:?}",
            record.outcome
        );
        assert!(record.roles[1].released_ns >= 150_000_000, "{kind}");
        // The commands that asked are of no role, and are not left over as orphans of an unknown one.
        let absent = &record.instrument.absent;
        assert!(!absent.contains_key("attribution"), "{kind}: {absent:?}");
    }
}

#[test]
fn a_command_sees_the_environment_and_the_folder_of_its_role() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("here"), "").unwrap();
    let mut server = role("server", ["sleep", "60"]);
    server["end"] = "serve".into();
    server["env"] = json!({"READY": "yes"});
    server["cwd"] = folder.path().to_str().unwrap().into();
    server["ready_probe"] = json!({"command": ["sh", "-c", "[ $READY = yes ] && [ -e here ]"]});
    server["ready_limit_ns"] = 20_000_000_000u64.into();
    let record = record(Trial::of([server, role("client", ["true"])]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
}

#[test]
fn where_a_server_listens_instead_is_said() {
    let (asked, own) = (free_port(), free_port());
    // Behind a shell: what listens is a child.
    let script = format!("{} -c \"$0\" {own}; true", python());
    let mut server = role("server", ["sh", "-c", &script, SERVER]);
    server["end"] = "serve".into();
    server["ready_probe"] = json!({"tcp": format!("127.0.0.1:{asked}")});
    let said = refused(server, 5_000_000_000);
    let within = format!(
        "accepted no TCP connection at 127.0.0.1:{asked} (the last attempt: connection refused) within 5 s; \
         it listens at 127.0.0.1:{own}; "
    );
    assert!(said.starts_with(&within), "{said}");
}

#[test]
fn a_role_that_is_not_ready_in_time_says_what_was_awaited() {
    let quiet = |probe: Value| {
        let script = "echo 'no configuration' >&2; exec sleep 60";
        let mut server = role("server", ["sh", "-c", script]);
        server["end"] = "serve".into();
        server["ready_probe"] = probe;
        server
    };
    let port = free_port();
    for (probe, expected) in [
        (
            json!({"tcp": format!("127.0.0.1:{port}")}),
            "connection refused",
        ),
        (
            json!({"line": "ready"}),
            "wrote no line that matches \"ready\"",
        ),
        (
            json!({"command": ["sh", "-c", "exit 3"]}),
            "it exited with 3",
        ),
        (json!({"command": ["sleep", "60"]}), "which runs still"),
    ] {
        let message = refused(quiet(probe.clone()), 300_000_000);
        assert!(message.contains(expected), "{probe}: {message}");
        assert!(message.contains("within 0.3 s"), "{message}");
        assert!(message.contains("no configuration"), "{message}");
    }
    let mut reporting = role("server", ["sleep", "60"]);
    reporting["end"] = "serve".into();
    reporting["ready"] = "report".into();
    let message = refused(reporting, 100_000_000);
    assert!(message.contains("{\"ready\":true}"), "{message}");
}

#[test]
fn a_role_that_ends_before_it_is_ready_is_not_awaited() {
    let mut server = role("server", ["sh", "-c", "echo bad port >&2; exit 4"]);
    server["end"] = "serve".into();
    server["ready_probe"] = json!({"line": "ready"});
    let message = refused(server, 60_000_000_000);
    assert!(
        message.contains("exited with 4 before it was ready"),
        "{message}"
    );
    assert!(message.contains("bad port"), "{message}");
}

#[test]
fn another_servers_port_is_no_readiness() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut server = role("server", ["sleep", "60"]);
    server["end"] = "serve".into();
    server["ready_probe"] = json!({"tcp": format!("127.0.0.1:{port}")});
    let message = refused(server, 60_000_000_000);
    assert!(message.contains("before the role was started"), "{message}");
}

/// The runner blocks signals to wait for them; a command that does so too cannot be ended.
#[test]
fn a_command_may_end_what_it_starts() {
    let port = free_port();
    let ask = "timeout 0.1 sleep 1077; [ $? = 124 ]";
    let record = served(port, json!({"command": ["sh", "-c", ask]}));
    let client = &record.roles[1];
    assert!(client.pid.is_some(), "{:?}", record.outcome);
}

#[test]
fn a_command_that_is_not_there_is_found_by_the_check() {
    let mut target = role("target", ["true"]);
    target["ready_probe"] = json!({"command": ["/no/such/command"]});
    let output = run(&["check"], &Trial::from(target).0.to_string());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &report["roles"][0]["problem"];
    assert_eq!(problem["kind"], "not_found", "{report}");
    assert!(
        problem["message"]
            .as_str()
            .unwrap()
            .contains("/no/such/command")
    );
}
