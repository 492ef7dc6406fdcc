//! Programs that serve until they are stopped.

use std::time::Duration;
use std::{fs, thread};

use concurve_reporter::line::ReportLine;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::looking::until;
use crate::program::target;

#[test]
fn a_server_answers_each_request_of_its_clients_and_ends_when_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("port");
    let file = port_file.to_str().unwrap();
    let mut server = target(&format!(
        "request-server --threads 3 --operation-iterations 1000 --limit-s 60 --port-file {file}"
    ));
    let serving = server.command.spawn().unwrap();
    until("ready", || {
        let report = fs::read_to_string(server.report.path()).unwrap();
        report.contains("ready").then_some(())
    });
    for busy in ["", "--busy"] {
        let client = target(&format!(
            "slow-client --threads 2 --operations 20 --think-us 200 {busy} --port-file {file}"
        ));
        client.run().ok().measured(20.0, 2);
    }
    // A client that stays connected must not keep the server from ending.
    let port: u16 = fs::read_to_string(&port_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let _idle = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    kill(Pid::from_raw(serving.id() as i32), Signal::SIGTERM).unwrap();
    server.finish(serving).ok().measured(40.0, 3);
    assert!(!port_file.exists());

    let alone = target(&format!("slow-client --operations 1 --port-file {file}")).run();
    assert_eq!(alone.status.code(), Some(1));
    assert!(
        alone.stderr.contains("is request-server ready?"),
        "{}",
        alone.stderr
    );
}

#[test]
fn serve_reports_ready_and_serves_until_sigterm() {
    let mut program = target("serve --ready-ms 5 --limit-s 120");
    let mut child = program.command.spawn().unwrap();
    let report = program.report.path().to_owned();
    until("ready", || {
        fs::metadata(&report).unwrap().len().gt(&0).then_some(())
    });
    thread::sleep(Duration::from_millis(20));
    assert!(child.try_wait().unwrap().is_none(), "left unasked");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let ended = program.finish(child).ok();
    assert!(matches!(ended.lines()[..], [ReportLine::Ready(_)]));

    let ended = target("serve --leave-after-ms 5 --limit-s 120").run().ok();
    assert_eq!(ended.lines().len(), 1);
}
