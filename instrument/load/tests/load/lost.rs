//! Connections that are lost: the session is counted, the others go on, and the figures are kept.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Ended, Server, load, request};

const OK: &[u8] = b"+OK\r\n";

/// Answers so many requests of the connections that ask for session 3's key, and all of the others;
/// then `end` has the connection.
fn ends_session_3(answers: u64, end: fn(&TcpStream)) -> Server {
    ends_session_3_slowly(answers, end, Duration::ZERO)
}

/// As [`ends_session_3`], with a pause before each answer.
fn ends_session_3_slowly(answers: u64, end: fn(&TcpStream), pause: Duration) -> Server {
    Server::start_with(move |stream, counter| {
        let (mut reader, mut own) = (BufReader::new(stream), 0);
        while let Some(words) = request(&mut reader) {
            let number = counter.fetch_add(1, Ordering::SeqCst);
            let is_third = words.iter().any(|it| it.ends_with("key:000000000003"));
            if is_third && own == answers {
                return end(stream);
            }
            own += 1;
            std::thread::sleep(pause);
            let _ = (number, (&mut &*stream).write_all(OK));
        }
    })
}

fn close(_: &TcpStream) {}

/// One of the sessions did nine of its share, and lost its connection at the tenth.
fn assert_one_lost(ended: &Ended, share: f64) {
    let said = ended.stdout();
    assert_eq!(ended.indicator("sessions_lost"), 1.0, "{said}");
    assert_eq!(ended.indicator("operations"), 4.0 * share + 9.0);
    assert_eq!(ended.indicator("errors"), 1.0);
    assert_eq!(ended.indicator("transactions_lost"), 1.0);
    assert_eq!(ended.indicator("unanswered"), 0.0, "it is counted once");
    let due = ended.indicator("operations") + 1.0 + ended.indicator("skipped");
    assert_eq!(ended.indicator("due"), due);
    assert!(
        said.contains("0 errors)"),
        "those that were answered: {said}"
    );
    assert!(said.contains("lost         1 with their connections"));
    assert_eq!(ended.indicator("in_doubt"), 1.0);
    assert_eq!(ended.indicator("not_begun"), share - 10.0);
    assert_eq!(
        *ended.fact("errors_by_kind"),
        json!({"connection lost: closed by the server": 1})
    );
    assert_eq!(
        *ended.fact("sessions_lost_by_reason"),
        json!({"closed by the server": 1})
    );
    let warning =
        "1 of 5 sessions lost their connection and did no more (1 × closed by the server)";
    assert!(said.contains(warning), "{said}");
    assert!(said.contains("transactions asked for were not begun"));
}

#[test]
fn a_session_that_is_lost_leaves_its_share_undone_and_the_others_go_on() {
    for workers in ["--threads 1", "--threads 5", "--processes", "--think 1ms"] {
        let server = ends_session_3(9, close);
        let arguments = format!("--sessions 5 --keys session --transactions 500 {workers}");
        let ended = load(&server.address, &arguments).ok();
        assert_one_lost(&ended, 100.0);
        assert_eq!(server.requests(), 410);
    }
}

#[test]
fn an_open_loop_goes_on_with_the_sessions_that_are_left() {
    let server = ends_session_3(9, close);
    let arguments = "--sessions 5 --keys session --transactions 500 --rate 5000";
    let ended = load(&server.address, arguments).ok();
    assert_one_lost(&ended, 100.0);

    let server = ends_session_3(9, close);
    let arguments = "--sessions 5 --keys session --duration 3s --rate 500";
    let ended = load(&server.address, arguments).ok();
    assert_eq!(ended.indicator("sessions_lost"), 1.0);
    assert!(ended.indicator("operations") > 9.0);
}

#[test]
fn an_answer_that_is_cut_in_the_middle_is_in_doubt() {
    static CLOSED: AtomicBool = AtomicBool::new(false);
    let server = ends_session_3(9, |mut stream| {
        stream.write_all(b"$10\r\nabc").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // The other half stays open until the client lets go of it.
        let rest = stream.read(&mut [0; 1]);
        CLOSED.store(matches!(rest, Ok(0)), Ordering::SeqCst);
    });
    let ended = load(
        &server.address,
        "--sessions 5 --keys session --transactions 500",
    )
    .ok();
    assert_one_lost(&ended, 100.0);
    let deadline = Instant::now() + Duration::from_secs(120);
    while !CLOSED.load(Ordering::SeqCst) {
        assert!(Instant::now() < deadline, "the client closes its half");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_session_that_is_lost_while_it_pauses_begins_nothing_any_more() {
    for pace in ["--think 20ms", "--rate 200"] {
        let server = Server::start_with(|stream, _| {
            let mut reader = BufReader::new(stream);
            // Each connection is let go behind its last answer.
            for _ in 0..5 {
                if request(&mut reader).is_none() || (&mut &*stream).write_all(OK).is_err() {
                    return;
                }
            }
        });
        let arguments = format!("--sessions 3 --transactions 60 {pace}");
        let ended = load(&server.address, &arguments);
        assert_eq!(ended.output.status.code(), Some(1), "all are lost");
        assert_eq!(ended.indicator("sessions_lost"), 3.0, "{pace}");
        assert_eq!(ended.indicator("operations"), 15.0, "{pace}");
        // A session may have begun a transaction before it notices the loss.
        let errors = ended.indicator("errors");
        assert_eq!(ended.indicator("in_doubt"), errors);
        assert_eq!(ended.indicator("not_begun"), 45.0 - errors);
    }
}

#[test]
fn all_that_a_lost_session_has_under_way_is_in_doubt() {
    let server = ends_session_3(9, close);
    let arguments = "--sessions 5 --keys session --transactions 500 --pipeline 4";
    let ended = load(&server.address, arguments).ok();
    assert_eq!(ended.indicator("sessions_lost"), 1.0);
    // A server that has not read everything resets the connection: then answers may be lost too.
    let in_doubt = ended.indicator("in_doubt");
    assert!((1.0..=4.0).contains(&in_doubt), "{in_doubt}");
    assert_eq!(ended.indicator("errors"), in_doubt);
    let all = ended.indicator("operations") + in_doubt + ended.indicator("not_begun");
    assert_eq!(all, 500.0);
}

/// Lets all connections go at once, when so many requests have come.
fn dies_after(requests: u64) -> Server {
    let dead = Arc::new(AtomicBool::new(false));
    Server::start_with(move |stream, counter| {
        let mut reader = BufReader::new(stream);
        while request(&mut reader).is_some() && !dead.load(Ordering::SeqCst) {
            if dies(counter, requests) {
                dead.store(true, Ordering::SeqCst);
                return;
            }
            let _ = (&mut &*stream).write_all(OK);
        }
    })
}

fn dies(counter: &AtomicU64, requests: u64) -> bool {
    counter.fetch_add(1, Ordering::SeqCst) >= requests
}

#[test]
fn a_server_that_dies_ends_the_run_with_the_figures_until_then() {
    for workers in ["--threads 2", "--processes", "--rate 5000"] {
        let server = dies_after(200);
        let arguments = format!("--sessions 4 --duration 1h --json {workers}");
        let ended = load(&server.address, &arguments);
        assert_eq!(ended.output.status.code(), Some(1));
        let said = ended.stderr();
        assert!(
            said.contains("no session is left: all 4 lost their connection to 127.0.0.1"),
            "{said}"
        );
        let figures: Value = serde_json::from_str(&ended.stdout()).unwrap();
        assert_eq!(figures["sessions_lost"], 4);
        assert_eq!(figures["operations"], 200);
        assert_eq!(ended.indicator("acknowledged"), 200.0);
        assert_eq!(ended.indicator("in_doubt"), 4.0);
        assert_eq!(ended.edges(), ["measure begin", "measure end"]);
    }
}

#[test]
fn a_server_that_dies_while_it_warms_up_leaves_no_figures() {
    let server = dies_after(50);
    let arguments = "--sessions 4 --warm-up 1h --transactions 10 --json";
    let ended = load(&server.address, arguments);
    assert_eq!(ended.output.status.code(), Some(1));
    assert_eq!(ended.indicator("operations"), 0.0);
    assert_eq!(ended.indicator("acknowledged"), 50.0);
    assert!(ended.stderr().contains("no session is left"));
    let figures: Value = serde_json::from_str(&ended.stdout()).unwrap();
    for time in ["measured_from_ns", "measured_to_ns"] {
        assert!(figures.get(time).unwrap().is_null(), "{figures}");
    }
}

#[test]
fn a_server_that_never_answers_has_no_table_of_figures() {
    let server = dies_after(0);
    let ended = load(&server.address, "--sessions 4 --duration 1h");
    assert_eq!(ended.output.status.code(), Some(1));
    assert_eq!(ended.stdout(), "");
    let said = ended.stderr();
    assert!(said.contains("not one answer came"), "{said}");
    assert!(said.contains("is it the right port?"), "{said}");
}

#[test]
fn a_search_ends_with_what_it_knows() {
    let server = dies_after(500);
    let ended = load(&server.address, "--slo p99=1s --sessions 4 --duration 400s");
    assert_eq!(ended.output.status.code(), Some(1));
    assert_eq!(ended.indicator("sessions_lost"), 4.0);
    assert!(ended.stderr().contains("no session is left"));
    assert!(
        ended.stdout().contains("it cannot be said what rate keeps"),
        "{}",
        ended.stdout()
    );
}

#[test]
fn a_search_goes_on_with_the_sessions_that_are_left() {
    // Slow, so that the search does not take all CPUs.
    let server = ends_session_3_slowly(9, close, Duration::from_millis(1));
    let arguments = "--slo p99=10ms --sessions 5 --keys session --duration 4s --threads 5";
    let ended = load(&server.address, arguments).ok();
    assert_eq!(ended.indicator("sessions_lost"), 1.0);
    assert!(ended.stdout().contains("1 of 5 sessions lost"));
    let why = "because sessions lost their connection; see the server's log";
    assert!(ended.stdout().contains(why), "{}", ended.stdout());
}
