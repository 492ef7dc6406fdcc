//! Loads that search together: a leader and those that follow it, as processes. Nothing here depends on the
//! rate that is found.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{PROGRAM, Server, load};

const TOKEN: &str = "a token of these tests only";

/// Answers all, slowly enough that a search does not take all CPUs.
fn server() -> Server {
    Server::start(|_, words| {
        thread::sleep(Duration::from_millis(1));
        Some(match words[0].as_str() {
            "PING" => "+PONG\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        })
    })
}

/// An address of this machine where nothing listens now.
fn meeting() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn spawn(server: &Server, arguments: &str, token: &str) -> Child {
    Command::new(PROGRAM)
        .arg(&server.address)
        .args(arguments.split_whitespace())
        .args(["--token-from", "TOKEN"])
        .env("TOKEN", token)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

fn stop(child: &Child) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
}

#[test]
fn all_loads_of_a_search_send_their_share_and_are_judged_together() {
    let (server, at) = (server(), meeting());
    // A follower may be there before the leader is.
    let follow = format!("--follow {at} --json --workload ping");
    let few = spawn(&server, &format!("{follow} --sessions 4"), TOKEN);
    let many = spawn(
        &server,
        &format!("{follow} --sessions 8 --processes"),
        TOKEN,
    );
    let lead = format!(
        "--slo p99=10ms --rate 400 --sessions 4 --workload ping --duration 5s --json --lead 2 --listen {at}"
    );
    let (code, said, errors) = ended(spawn(&server, &lead, TOKEN));
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said} {errors}"));
    // Whether so few are answered in time is for the machine to say.
    assert!(matches!(code, Some(0 | 10 | 11)), "{code:?} {said}");
    assert_eq!(found["sessions"], 16);
    let loads = found["loads"].as_array().unwrap();
    let requests = |it: &Value| it["requests"].as_u64().unwrap();
    let sent: u64 = loads.iter().map(requests).sum();
    let windows = found["windows"].as_array().unwrap();
    assert_eq!(windows.iter().map(requests).sum::<u64>(), sent);
    for load in loads {
        let share = requests(load) as f64 / sent as f64;
        let due = load["sessions"].as_f64().unwrap() / 16.0;
        assert!((share - due).abs() < 0.08, "{share} {found}");
    }
    for (child, sessions) in [(few, 4), (many, 8)] {
        let (code, said, errors) = ended(child);
        assert_eq!(code, Some(0), "{errors}");
        let part: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(part["outcome"], "followed");
        assert_eq!(part["leader"], at);
        let same = |it: &&Value| it["sessions"] == sessions && requests(it) == requests(&part);
        assert_eq!(loads.iter().filter(same).count(), 1, "{part} {found}");
    }
}

#[test]
fn a_search_with_others_finds_a_rate_of_all_of_them() {
    let (server, at) = (server(), meeting());
    let other = spawn(&server, &format!("--follow {at} --sessions 2"), TOKEN);
    let lead = format!("--slo p99=15ms --sessions 2 --duration 6s --json --lead 1 --listen {at}");
    let (_, said, errors) = ended(spawn(&server, &lead, TOKEN));
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said} {errors}"));
    assert!(found["closed_rate_per_second"].as_f64().unwrap() > 0.0);
    assert!(!found["windows"].as_array().unwrap().is_empty(), "{found}");
    assert_eq!(found["loads"].as_array().unwrap().len(), 2);
    let (code, said, errors) = ended(other);
    assert_eq!(code, Some(0), "{errors}");
    assert!(said.contains("which has the answer"), "{said}");
}

/// Waits until the load that leads has begun to send.
fn begun(server: &Server) {
    server.wait_for(20);
}

#[test]
fn a_load_that_is_killed_ends_the_search_by_name() {
    let (server, at) = (server(), meeting());
    let mut other = spawn(&server, &format!("--follow {at} --sessions 2"), TOKEN);
    let lead = format!("--slo p99=15ms --sessions 2 --duration 60s --lead 1 --listen {at}");
    let leader = spawn(&server, &lead, TOKEN);
    begun(&server);
    other.kill().unwrap();
    other.wait().unwrap();
    let (code, _, errors) = ended(leader);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("127.0.0.1:") && errors.contains("was lost"),
        "{errors}"
    );
}

#[test]
fn a_leader_that_is_killed_ends_the_others() {
    let (server, at) = (server(), meeting());
    let other = spawn(&server, &format!("--follow {at} --sessions 2"), TOKEN);
    let lead = format!("--slo p99=15ms --sessions 2 --duration 60s --lead 1 --listen {at}");
    let mut leader = spawn(&server, &lead, TOKEN);
    begun(&server);
    leader.kill().unwrap();
    leader.wait().unwrap();
    let (code, _, errors) = ended(other);
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains(&format!("the load that leads at {at} was lost")),
        "{errors}"
    );
}

#[test]
fn who_is_stopped_says_so_on_both_sides() {
    let (server, at) = (server(), meeting());
    let follow = format!("--follow {at} --sessions 2");
    let lead = format!("--slo p99=15ms --sessions 2 --duration 60s --lead 1 --listen {at}");
    // The leader has figures so far, and its follower has done its part.
    let other = spawn(&server, &follow, TOKEN);
    let leader = spawn(&server, &lead, TOKEN);
    begun(&server);
    stop(&leader);
    let (code, said, errors) = ended(leader);
    assert_eq!(code, Some(130), "{errors}");
    assert!(
        said.contains("it ended before there were enough windows"),
        "{said}"
    );
    let (code, _, errors) = ended(other);
    assert_eq!(code, Some(0), "{errors}");
    // Without the follower there is no search.
    let (other, before) = (spawn(&server, &follow, TOKEN), server.requests());
    let leader = spawn(&server, &lead, TOKEN);
    server.wait_for(before + 20);
    stop(&other);
    assert_eq!(ended(other).0, Some(130));
    let (code, _, errors) = ended(leader);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("failed: it was stopped"), "{errors}");
}

#[test]
fn strangers_are_sent_away_and_the_search_goes_on() {
    let (server, at) = (server(), meeting());
    let lead =
        format!("--slo p99=10ms --rate 50 --sessions 2 --duration 5s --lead 1 --listen {at}");
    let leader = spawn(&server, &lead, TOKEN);
    let mut silent = connected(&at);
    connected(&at).write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    drop(connected(&at));
    let (code, _, errors) = ended(spawn(
        &server,
        &format!("--follow {at}"),
        "another token, longer",
    ));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("refused: another token"), "{errors}");
    let other = spawn(&server, &format!("--follow {at} --sessions 2"), TOKEN);
    let (code, said, errors) = ended(leader);
    assert!(matches!(code, Some(0 | 10 | 11)), "{errors}");
    assert!(said.contains("(2 sessions)"), "{said}");
    assert_eq!(ended(other).0, Some(0));
    let _ = silent.write_all(b"too late");
}

/// A connection to a leader, which may not listen yet.
fn connected(at: &str) -> TcpStream {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match TcpStream::connect(at) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_load_that_comes_too_late_is_told() {
    let (server, at) = (server(), meeting());
    let lead =
        format!("--slo p99=10ms --rate 50 --sessions 2 --duration 60s --lead 1 --listen {at}");
    let leader = spawn(&server, &lead, TOKEN);
    let other = spawn(&server, &format!("--follow {at} --sessions 2"), TOKEN);
    begun(&server);
    let (code, _, errors) = ended(spawn(
        &server,
        &format!("--follow {at} --sessions 2"),
        TOKEN,
    ));
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.contains("the search has its 2 loads already"),
        "{errors}"
    );
    stop(&leader);
    assert_eq!(ended(leader).0, Some(130));
    assert_eq!(ended(other).0, Some(0));
}

#[test]
fn what_leads_no_search_is_not_followed_for_long() {
    let server = server();
    let redis = format!("--follow {} --sessions 2", server.address);
    let (code, _, errors) = ended(spawn(&server, &redis, TOKEN));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("no load that searches"), "{errors}");
}

#[test]
fn loads_of_a_search_have_keys_of_their_own() {
    // A lock that a session takes while another one has it would be refused.
    let (server, at) = (Server::start(locks), meeting());
    let own = "--workload set-nx-del --keys session --sessions 2";
    let other = spawn(&server, &format!("--follow {at} {own}"), TOKEN);
    // Windows that are so long that no machine is too busy for them to be at the same time.
    let lead = format!("--slo errors=1% {own} --duration 60s --lead 1 --listen {at}");
    let leader = spawn(&server, &lead, TOKEN);
    server.wait_for(200);
    stop(&leader);
    let (code, _, errors) = ended(leader);
    assert_eq!(code, Some(130), "{errors}");
    let (code, _, errors) = ended(other);
    assert_eq!(code, Some(0), "{errors}");
    let mut keys = KEYS.lock().unwrap().clone();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4, "{keys:?}");
}

static KEYS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// Grants every lock, and notes its key.
fn locks(_: u64, words: &[String]) -> Option<String> {
    if words[0] == "SET" {
        KEYS.lock().unwrap().push(words[1].clone());
    }
    thread::sleep(Duration::from_millis(1));
    Some("+OK\r\n".to_owned())
}

#[test]
fn loads_that_send_something_else_are_refused() {
    let (server, at) = (server(), meeting());
    let other = spawn(&server, &format!("--follow {at} --workload ping"), TOKEN);
    let lead = format!("--slo p99=15ms --workload get --duration 60s --lead 1 --listen {at}");
    let (code, _, errors) = ended(spawn(&server, &lead, TOKEN));
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("other transactions (ping; here get)"),
        "{errors}"
    );
    let (code, _, errors) = ended(other);
    assert_eq!(code, Some(1));
    assert!(errors.contains("other transactions"), "{errors}");
}

#[test]
fn who_waits_in_vain_says_for_whom() {
    let (server, at) = (server(), meeting());
    let lead =
        format!("--slo p99=15ms --sessions 1 --connect-timeout 300ms --lead 2 --listen {at}");
    let (code, _, errors) = ended(spawn(&server, &lead, TOKEN));
    assert_eq!(code, Some(1));
    let wanted = format!("--lead 2: 0 came to {at} within 300 ms; start each with --follow {at}");
    assert!(errors.contains(&wanted), "{errors}");
    let follow = format!("--follow {at} --connect-timeout 300ms");
    let (code, _, errors) = ended(spawn(&server, &follow, TOKEN));
    assert_eq!(code, Some(1));
    assert!(
        errors.contains(&format!("--follow {at}: no load leads there")),
        "{errors}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let lead = format!("--slo p99=15ms --lead 1 --listen {at}");
    let (code, _, errors) = ended(spawn(&server, &lead, TOKEN));
    assert_eq!(code, Some(1));
    assert!(errors.contains("a port that is free"), "{errors}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let server = server();
    for (arguments, words) in [
        ("--lead 1 --listen 127.0.0.1:7100", "--slo"),
        ("--slo p99=2ms --lead 1", "--listen"),
        ("--slo p99=2ms --listen 127.0.0.1:7100", "--lead"),
        ("--slo p99=2ms --token-from TOKEN", "--lead"),
        ("--slo p99=2ms --lead 0 --listen 127.0.0.1:7100", "1..="),
        (
            "--slo p99=2ms --lead 1 --listen 7100",
            "such as 10.0.0.1:7100",
        ),
        (
            "--slo p99=2ms --lead 1 --listen 10.99.99.1:7100",
            "--token-from",
        ),
        ("--follow 10.99.99.1:7100", "--token-from"),
        ("--follow 127.0.0.1:7100 --token-from NOT_SET", "NOT_SET"),
        (
            "--follow 127.0.0.1:7100 --token-from secret!",
            "not the token itself",
        ),
        ("--follow 127.0.0.1:7100 --hdr x", "--hdr"),
    ] {
        let refused = load(&server.address, arguments);
        assert_eq!(refused.output.status.code(), Some(2), "{arguments}");
        let said = refused.stderr();
        assert!(said.contains(words), "{arguments}: {said}");
        assert!(!said.contains("secret!"), "{said}");
    }
}
