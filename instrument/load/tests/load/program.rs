//! The whole program against a small server of the test's own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::common::{Answer, PROGRAM, Server, load, load_with, ok, request};

#[test]
fn a_fixed_number_is_done_exactly_by_all_sessions() {
    let server = Server::start(ok);
    let ended = load(
        &server.address,
        "--workload set --sessions 7 --threads 2 --transactions 100",
    )
    .ok();
    assert_eq!(server.requests(), 100);
    assert_eq!(ended.indicator("operations"), 100.0);
    let shares: Vec<f64> = ended
        .lines
        .iter()
        .filter(|it| it["indicator"] == "session_operations")
        .map(|it| it["value"].as_f64().unwrap())
        .collect();
    assert_eq!(shares.len(), 7);
    assert_eq!(shares.iter().sum::<f64>(), 100.0);
    assert!(shares.iter().all(|it| [14.0, 15.0].contains(it)));
    assert_eq!(ended.edges(), ["measure begin", "measure end"]);
    assert!(ended.stdout().contains("answered     100 in "));
}

#[test]
fn sessions_may_be_threads_or_processes() {
    for workers in ["--threads 6", "--processes"] {
        let server = Server::start(ok);
        let arguments = format!("--workload set --sessions 6 --transactions 200 {workers}");
        let ended = load(&server.address, &arguments).ok();
        assert_eq!(
            (server.requests(), ended.indicator("operations")),
            (200, 200.0)
        );
        assert_eq!(ended.edges(), ["measure begin", "measure end"]);
        let sessions = ended
            .lines
            .iter()
            .filter(|it| it["indicator"] == "session_operations");
        assert_eq!(sessions.count(), 6);
        assert!(ended.indicator("latency_ns_p50") > 0.0);
    }
}

#[test]
fn all_processes_of_a_load_have_its_text() {
    let texts = Arc::new(Mutex::new(BTreeSet::new()));
    let all = texts.clone();
    let server = Server::start_with(move |stream, _| {
        let (mut reader, mut writer) = (BufReader::new(stream), stream);
        while let Some(words) = request(&mut reader) {
            all.lock().unwrap().insert(words[1].clone());
            writer.write_all(b"+OK\r\n").unwrap();
        }
    });
    let arguments = "--command|SET {run} x|--sessions|3|--transactions|9|--processes";
    let arguments: Vec<&str> = arguments.split('|').collect();
    for loads in [1, 2] {
        load_with(&server.address, &arguments, &[]).ok();
        assert_eq!(texts.lock().unwrap().len(), loads, "one for each load");
    }
}

fn slowly(number: u64, words: &[String]) -> Option<String> {
    thread::sleep(Duration::from_millis(100));
    ok(number, words)
}

#[test]
fn a_client_that_spins_uses_the_cpu_while_it_waits() {
    let cpu_ns = |spin: &str, spin_ns: u64| {
        let server = Server::start(slowly);
        let arguments =
            format!("--workload set --sessions 1 --transactions 4 --spin {spin} --json");
        let ended = load(&server.address, &arguments).ok();
        let figures: Value = serde_json::from_str(&ended.stdout()).unwrap();
        assert_eq!((server.requests(), &figures["operations"]), (4, &4.into()));
        assert_eq!(figures["spin_ns"], spin_ns);
        let warnings = figures["warnings"].to_string();
        assert!(!warnings.contains("client thread"), "{warnings}");
        figures["client_cpu_ns_per_operation"].as_f64().unwrap()
    };
    // Of 100 ms it gets what others leave it, asleep it needs some tens of µs.
    let (asleep, spinning) = (cpu_ns("0s", 0), cpu_ns("1s", 1_000_000_000));
    assert!(spinning > 5.0 * asleep, "{spinning} {asleep}");
}

#[test]
fn spinning_changes_no_count() {
    for pace in ["", "--rate 4000", "--think 1ms"] {
        let server = Server::start(ok);
        let arguments =
            format!("--workload set --sessions 5 --transactions 200 --spin 50us {pace}");
        let ended = load(&server.address, &arguments).ok();
        assert_eq!(server.requests(), 200, "{pace}");
        assert_eq!(ended.indicator("operations"), 200.0, "{pace}");
        assert!(ended.stdout().contains("spinning 50.0 µs"));
    }
}

#[test]
fn a_process_that_cannot_connect_ends_all() {
    let ended = load("127.0.0.1:1", "--processes --sessions 3 --transactions 10");
    assert_eq!(ended.output.status.code(), Some(1));
    assert!(
        ended.stderr().contains("is the server up?"),
        "{}",
        ended.stderr()
    );
    assert!(
        ended.stderr().contains("client process"),
        "{}",
        ended.stderr()
    );
}

#[test]
fn a_log_of_histograms_has_every_transaction() {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    let server = Server::start(ok);
    let file = NamedTempFile::new().unwrap();
    let arguments = format!(
        "--mix get=3,set=1 --sessions 4 --threads 2 --transactions 3000 --hdr {} --json",
        file.path().display()
    );
    let ended = load(&server.address, &arguments).ok();
    let log = fs::read(file.path()).unwrap();
    let mut counts = std::collections::BTreeMap::<_, u64>::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = BASE64_STANDARD
                .decode(interval.encoded_histogram())
                .unwrap();
            let histogram = Deserializer::new()
                .deserialize::<u64, _>(&mut &bytes[..])
                .unwrap();
            let tag = interval.tag().map(|it| it.as_str().to_owned());
            *counts.entry(tag).or_default() += histogram.len();
        }
    }
    let figures: Value = serde_json::from_str(&ended.stdout()).unwrap();
    assert_eq!(figures["operations"], 3000);
    assert_eq!(counts[&None], 3000);
    for kind in figures["kinds"].as_array().unwrap() {
        let name = kind["name"].as_str().unwrap().to_owned();
        assert_eq!(kind["operations"], counts[&Some(name)]);
    }
}

#[test]
fn a_log_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let server = Server::start(ok);
    let ended = load(&server.address, "--transactions 10 --hdr /nowhere/a.hdr");
    assert_eq!(ended.output.status.code(), Some(1));
    assert!(ended.stderr().contains("/nowhere/a.hdr: the log"));
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_log_that_cannot_be_written_to_the_end_leaves_the_figures() {
    for log in ["--hdr", "--log-requests"] {
        let server = Server::start(ok);
        let arguments = format!("--transactions 100 --sessions 2 --json {log} /dev/full");
        let ended = load(&server.address, &arguments);
        let said = ended.stderr();
        assert_eq!(ended.output.status.code(), Some(1), "{said}");
        assert!(said.contains("/dev/full: the log of "), "{said}");
        let figures: Value = serde_json::from_str(&ended.stdout()).unwrap();
        assert_eq!(figures["operations"], 100);
        assert_eq!(ended.indicator("acknowledged"), 100.0);
    }
}

#[test]
fn an_interrupt_ends_it_with_the_figures_so_far() {
    use nix::sys::signal::{Signal, kill};

    for workers in ["--threads 2", "--processes"] {
        let server = Server::start(ok);
        let child = Command::new(PROGRAM)
            .arg(&server.address)
            .args("--sessions 4 --duration 1h --json".split(' '))
            .args(workers.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.wait_for(1000);
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        kill(pid, Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(figures["operations"].as_u64().unwrap() > 100, "{figures}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("the figures so far"), "{said}");
    }
}

#[test]
fn acknowledged_transactions_include_the_warm_up() {
    let server = Server::start(ok);
    let arguments = "--workload set --sessions 4 --warm-up 100ms --duration 200ms";
    let ended = load(&server.address, arguments).ok();
    let acknowledged = ended.indicator("acknowledged");
    assert!(acknowledged > ended.indicator("operations"));
    let all = acknowledged + ended.indicator("in_doubt");
    // The last ones may not have come to the server when the client is gone.
    assert!(acknowledged <= server.requests() as f64 && server.requests() as f64 <= all);
}

#[test]
fn a_pipeline_is_answered_completely() {
    let server = Server::start(ok);
    let ended = load(
        &server.address,
        "--workload get --sessions 3 --pipeline 8 --transactions 1000",
    )
    .ok();
    assert_eq!(
        (server.requests(), ended.indicator("operations")),
        (1000, 1000.0)
    );
}

#[test]
fn the_warm_up_does_not_count() {
    let server = Server::start(ok);
    let ended = load(
        &server.address,
        "--workload get --sessions 4 --warm-up 200ms --transactions 500",
    )
    .ok();
    assert!(server.requests() > 500);
    assert_eq!(ended.indicator("operations"), 500.0);
    let edges = [
        "warm-up begin",
        "warm-up end",
        "measure begin",
        "measure end",
    ];
    assert_eq!(ended.edges(), edges);
}

#[test]
fn a_transaction_of_two_round_trips_counts_once() {
    let server = Server::start(|_, words| {
        Some(match words[0].as_str() {
            "SET" => "+OK\r\n".to_owned(),
            "DEL" => ":1\r\n".to_owned(),
            other => format!("-ERR unknown {other}\r\n"),
        })
    });
    let ended = load(
        &server.address,
        "--workload set-nx-del --sessions 5 --transactions 50",
    )
    .ok();
    assert_eq!(
        (server.requests(), ended.indicator("operations")),
        (100, 50.0)
    );
    let fact = ended
        .lines
        .iter()
        .find(|it| it["fact"] == "round_trips_per_transaction");
    assert_eq!(fact.unwrap()["value"], serde_json::json!([2]));
}

#[test]
fn refusals_and_errors_are_counted_by_kind() {
    let server = Server::start(|number, _| {
        Some(match number % 4 {
            0 => "$-1\r\n".to_owned(),
            1 => "-BUSY try later\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        })
    });
    let ended = load(
        &server.address,
        "--workload set-nx-del --sessions 1 --transactions 30",
    )
    .ok();
    let (refused, errors) = (ended.indicator("refused"), ended.indicator("errors"));
    assert!(refused > 0.0 && errors > 0.0);
    assert_eq!(ended.indicator("operations") + errors, 30.0);
    assert!(ended.stdout().contains("× BUSY"));
}

/// Answers `GET` with this, and all else with `OK`.
fn to_get(words: &[String], reply: &str) -> Option<String> {
    let reply = if words[0] == "GET" { reply } else { "+OK\r\n" };
    Some(reply.to_owned())
}

/// A server that begins empty, and must first be asked to set each of ten keys.
fn filled_first(number: u64, words: &[String]) -> Option<String> {
    let is_set = words == ["SET", &format!("key:{number:012}"), "xxxxx"];
    let reply = match number {
        ..10 if is_set => "+OK\r\n",
        10.. if words[0] == "GET" => "$5\r\nxxxxx\r\n",
        _ => "-ERR unexpected\r\n",
    };
    Some(reply.to_owned())
}

#[test]
fn each_key_is_set_once_before_the_load_if_asked_for() {
    for keys in ["uniform:10", "zipf:10:1", "hot:10:2:0.5", "each:10"] {
        let server = Server::start(filled_first);
        let arguments =
            format!("--prefill --keys {keys} --value-bytes 5 --sessions 2 --transactions 30");
        let ended = load(&server.address, &arguments).ok();
        assert_eq!(server.requests(), 40, "{keys}");
        assert_eq!(ended.indicator("operations"), 30.0, "{keys}");
        assert_eq!(ended.indicator("errors"), 0.0, "{keys}");
        assert!(ended.stderr().contains("10 keys are set"), "{keys}");
        assert_eq!(ended.edges(), ["measure begin", "measure end"], "{keys}");
    }
    // A key for each session.
    let server = Server::start(ok);
    let ended = load(
        &server.address,
        "--prefill --keys session --sessions 3 --transactions 6",
    );
    assert!(ended.ok().stderr().contains("3 keys are set"));
    assert_eq!(server.requests(), 9);
    // Nothing is filled again by the processes of the sessions.
    let server = Server::start(ok);
    let arguments = "--prefill --keys each:4 --processes --sessions 2 --transactions 6";
    load(&server.address, arguments).ok();
    assert_eq!(server.requests(), 10);
}

#[test]
fn a_server_that_takes_no_keys_is_not_measured() {
    let full: Answer = |_, _| Some("-OOM command not allowed\r\n".to_owned());
    let gone: Answer = |_, _| None;
    for (answer, why) in [(full, "OOM"), (gone, "lost their connection")] {
        let server = Server::start(answer);
        let ended = load(&server.address, "--prefill --keys each:4 --transactions 6");
        assert_eq!(ended.output.status.code(), Some(1));
        let said = ended.stderr();
        assert!(said.contains("--prefill did not set all keys"), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(ended.stdout(), "");
        assert!(server.requests() <= 4);
    }
}

#[test]
fn answers_that_are_mostly_empty_are_warned_of() {
    type Answer = fn(u64, &[String]) -> Option<String>;
    let nil: Answer = |_, words| to_get(words, "$-1\r\n");
    let empty: Answer = |_, words| to_get(words, "$0\r\n\r\n");
    let text: Answer = |_, words| to_get(words, "$1\r\nx\r\n");
    let most: Answer = |number, words| match number {
        ..30 => to_get(words, "$-1\r\n"),
        _ => to_get(words, "$1\r\nx\r\n"),
    };
    let some: Answer = |number, words| match number {
        ..10 => to_get(words, "$-1\r\n"),
        _ => to_get(words, "$1\r\nx\r\n"),
    };
    for (answer, mix, said) in [
        (nil, "get=1", "warning: all 40 answers were empty: "),
        (empty, "get=1", "warning: all 40 answers were empty: "),
        (nil, "get=1,set=1", " answers to get were empty: "),
        (most, "get=1", "warning: 75 % of 40 answers were empty: "),
        (some, "get=1", "0 errors, 10 empty)"),
        (text, "get=1", "0 errors)"),
    ] {
        let server = Server::start(answer);
        let arguments = format!("--mix {mix} --sessions 1 --transactions 40");
        let ended = load(&server.address, &arguments).ok();
        let text = ended.stdout();
        assert!(text.contains(said), "{mix}: {text}");
        assert_eq!(
            text.contains("were empty"),
            said.contains("were empty"),
            "{text}"
        );
        assert_eq!(
            text.contains("or ask for some that exist with a --command of your own"),
            said.contains("were empty"),
            "{text}"
        );
        assert_eq!(ended.indicator("operations"), 40.0);
        if said.contains("10 empty") {
            assert_eq!(ended.indicator("empty"), 10.0);
        }
    }
}

#[test]
fn an_open_loop_counts_latency_from_when_a_request_was_due() {
    // One session and an answer every 5 ms at best: a rate of 1000 cannot be kept.
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Some("+OK\r\n".to_owned())
    });
    let arguments = "--workload get --sessions 1 --rate 1000 --duration 0.5 --backlog 200";
    let ended = load(&server.address, arguments).ok();
    assert!(ended.indicator("operations") <= 110.0);
    assert!(ended.indicator("late") > 10.0);
    assert!(
        ended.indicator("latency_ns_max") > 50e6,
        "the wait for a free session counts"
    );
    assert!(ended.indicator("skipped") > 0.0);
    let said = ended.stdout();
    assert!(said.contains("skipped"));
    let warned = said.lines().find(|it| it.contains(" ms late: p99 is "));
    let warned = warned.unwrap_or_else(|| panic!("{said}"));
    assert!(
        warned.contains(" % of the requests were sent over 1 ms late"),
        "{warned}"
    );
    // On a busy machine the load waits for a CPU, too.
    let whys = [
        "no session was free: more --sessions, or a lower --rate",
        "the load waited for a CPU: CPUs of its own, or a quiet machine",
    ];
    assert!(whys.iter().any(|it| warned.contains(it)), "{warned}");
    assert!(warned.split_whitespace().count() <= 45, "{warned}");
    let schedule = said.lines().find(|it| it.starts_with("schedule "));
    assert!(
        schedule.unwrap().contains(" %) sent over 1 ms late"),
        "{said}"
    );
}

#[test]
fn other_names_of_options_stand_in_the_help() {
    let done = Command::new(PROGRAM).arg("--help").output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.contains("[alias: --clients]"), "{said}");
}

/// Clap makes a line break of the text `{n}` in a help.
#[test]
fn the_help_names_each_placeholder_as_it_is_typed() {
    for option in ["-h", "--help"] {
        let done = Command::new(PROGRAM).arg(option).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        let words: Vec<&str> = said.split_whitespace().collect();
        let said = words.join(" ");
        let expected = "{key} is key: and 12 digits, {n} its number alone (GET user:{n}; {n:8}: 8 digits at least)";
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_open_loop_that_is_kept_has_the_rate_asked_for() {
    let server = Server::start(ok);
    let arguments = "--workload get --sessions 8 --rate 500 --arrivals poisson --transactions 500";
    let ended = load(&server.address, arguments).ok();
    assert_eq!(ended.indicator("operations"), 500.0);
    // Only lateness that hardly happened may go without a warning, on a machine that is busy.
    let is_late = ended.indicator("late") > 5.0;
    assert!(is_late || !ended.stdout().contains("late: p99 is "));
}

#[test]
fn a_number_of_an_open_loop_has_what_was_skipped_among_it() {
    // The other requests become due while the server thinks about the first, and none may wait.
    let server = Server::start(|number, words| {
        if number == 0 {
            thread::sleep(Duration::from_millis(200));
        }
        ok(number, words)
    });
    let arguments =
        "--workload set --sessions 1 --rate 1000 --transactions 20 --backlog 0 --duration 60s";
    let ended = load(&server.address, arguments).ok();
    let [operations, skipped] = ["operations", "skipped"].map(|it| ended.indicator(it));
    assert_eq!(operations + skipped, 20.0);
    assert!(skipped > 0.0);
    assert_eq!(ended.indicator("due"), 20.0);
    assert_eq!(ended.indicator("not_begun"), 0.0);
}

#[test]
fn a_search_finds_the_rate_that_keeps_the_objectives() {
    // Slow, so that the search does not take all CPUs.
    let server = Server::start(|number, words| {
        thread::sleep(Duration::from_millis(1));
        ok(number, words)
    });
    let arguments = "--slo p99=10ms,errors=5% --sessions 4 --duration 4s --json";
    let ended = load(&server.address, arguments).ok();
    let found: Value = serde_json::from_str(&ended.stdout()).unwrap();
    // What rate that is depends on what else the machine does.
    assert!(!found["windows"].as_array().unwrap().is_empty(), "{found}");
    assert!(found["verdict"].as_str().unwrap().contains("p99=10ms"));
    assert!(ended.indicator("closed_rate_per_second") > 0.0);
    assert_eq!(ended.edges(), ["measure begin", "measure end"]);
    assert!(ended.lines.iter().any(|it| it["fact"] == "slo"));
}

#[test]
fn an_objective_that_is_never_kept_is_reported() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Some("+OK\r\n".to_owned())
    });
    for workers in ["--threads 1", "--processes"] {
        let arguments = format!("--slo p50=1ms --sessions 4 --duration 20s {workers}");
        let ended = load(&server.address, &arguments).ok();
        let said = ended.stdout();
        assert!(said.contains("p50=1ms is not kept at any rate"), "{said}");
        assert!(ended.indicator("slo_rate_high_per_second") > 0.0);
    }
}

/// What a check of a rate ends with by hand, and in a study. How near to the objective a check decides
/// is a matter of the tests of the search, on simulated servers.
#[test]
fn a_check_of_a_rate_ends_with_its_verdict() {
    let failing = Server::start(|_, _| Some("-ERR always\r\n".to_owned()));
    let slow = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Some("+OK\r\n".to_owned())
    });
    // One of four sessions is lost: then nothing is decided, whatever was measured.
    let leaving = Server::start(|number, _| (number != 5).then(|| "+OK\r\n".to_owned()));
    for (server, objective, code, outcome, reason) in [
        (&failing, "errors=1%", 10, "not_met", None),
        (&slow, "p50=1ms", 10, "not_met", None),
        (
            &leaving,
            "errors=99%",
            11,
            "undecided",
            Some("sessions_lost"),
        ),
    ] {
        let arguments = format!("--slo {objective} --rate 50 --sessions 4 --duration 4s --json");
        let found = Command::new(PROGRAM)
            .arg(&server.address)
            .args(arguments.split(' '))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&found.stdout);
        let status = found.status.code();
        let found: Value = serde_json::from_str(&text).unwrap();
        // Late answers may be the doing of others on this machine.
        let is_doubted = objective == "p50=1ms" && found["in_doubt"] == true;
        let code = if is_doubted { 11 } else { code };
        assert_eq!(status, Some(code), "{text}");
        assert_eq!(found["outcome"], outcome, "{text}");
        assert_eq!(found["reason"].as_str(), reason, "{text}");
        assert_eq!(found["exit_code"], code, "{text}");
    }
    let arguments = "--slo p50=1ms --rate 50 --sessions 4 --duration 4s";
    let ended = load(&slow.address, arguments).ok();
    assert!(ended.stdout().contains("p50=1ms not met at 50 per second"));
    assert_eq!(ended.indicator("slo_rate_high_per_second"), 50.0);
}

/// The server answers all without an error. A machine that stops for a while makes windows bad, as
/// nothing is answered in time: then, and only then, it may be undecided.
#[test]
fn a_check_of_a_rate_that_is_kept_ends_with_0() {
    for _ in 0..3 {
        let server = Server::start(ok);
        let arguments = "--slo errors=50% --rate 200 --sessions 4 --duration 4s --json";
        let found = Command::new(PROGRAM)
            .arg(&server.address)
            .args(arguments.split(' '))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&found.stdout);
        let json: Value = serde_json::from_str(&text).unwrap();
        let windows = json["windows"].as_array().unwrap();
        let is_quiet = windows.len() >= 10 && windows.iter().all(|it| it["bad"][0] == 0);
        let outcome = (found.status.code(), json["outcome"].as_str());
        match outcome {
            (Some(0), Some("met")) => return,
            (Some(11), Some("undecided")) if !is_quiet => {}
            _ => panic!("{text}"),
        }
    }
}

#[test]
fn a_password_is_taken_from_the_environment() {
    let server = Server::start(|_, words| {
        Some(match words {
            [auth, password] if auth == "AUTH" && password == "secret" => "+OK\r\n".to_owned(),
            [auth, _] if auth == "AUTH" => "-WRONGPASS no\r\n".to_owned(),
            _ => "$1\r\nx\r\n".to_owned(),
        })
    });
    let run = |password: &str| {
        Command::new(PROGRAM)
            .args([&server.address, "--transactions", "10", "--sessions", "2"])
            .args(["--password-from", "LOAD_PASSWORD"])
            .env("LOAD_PASSWORD", password)
            .output()
            .unwrap()
    };
    assert!(run("secret").status.success());
    let refused = run("wrong");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused the log-in: WRONGPASS"));
}

#[test]
fn a_missing_server_or_another_protocol_is_named() {
    let ended = load("127.0.0.1:1", "--transactions 10");
    assert_eq!(ended.output.status.code(), Some(1));
    assert!(
        ended.stderr().contains("is the server up?"),
        "{}",
        ended.stderr()
    );

    let server = Server::start(|_, _| Some("HTTP/1.1 400 Bad Request\r\n".to_owned()));
    let ended = load(&server.address, "--transactions 1000 --sessions 2");
    assert!(
        ended
            .stderr()
            .contains("which is not RESP: is this the right port?"),
        "{}",
        ended.stderr()
    );
}

#[test]
fn wrong_usage_is_refused_with_a_remedy() {
    for (arguments, why) in [
        ("--keys zipf:10", "use uniform:100000"),
        ("--workload gte", "one of ping, get"),
        ("--mix get=0", "a weight from 1"),
        ("--rate 0", "a rate above 0"),
        ("--rate 1e300", "at most 10000000"),
        ("--rate 1e-300", "at least 0.000001"),
        ("--duration 0", "a time above 0, like 10s"),
        ("--duration 10x", "a time like 10s, 2.5ms or 1m"),
        ("--duration -1", "unexpected argument"),
        ("--password-from NOT_SET_HERE", "is not set"),
        ("--transactions 0", "0 is not in"),
        ("--slo p99", "an objective like p99=2ms"),
        ("--slo errors=0%", "a share above 0 %"),
        ("--slo p99=10s", "--duration 3750s or more"),
        ("--slo p99=1ms --rate 0", "a rate above 0"),
        ("--rate 0%", "a share of the greatest rate like 50%"),
        ("--slo p99=1ms --rate 50%", "a number, like 20000"),
        ("--slo p99=1ms --think 1s", "cannot be used with"),
        ("--arrivals poisson", "give it a --rate or an --slo"),
    ] {
        let ended = load("127.0.0.1:1", arguments);
        assert_eq!(ended.output.status.code(), Some(2), "{arguments}");
        assert!(
            ended.stderr().contains(why),
            "{arguments}: {}",
            ended.stderr()
        );
    }
    let ended = load("nowhere", "");
    assert!(ended.stderr().contains("write redis://HOST:PORT"));
}

#[test]
fn only_the_measured_phase_is_marked_at_the_server() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let all = received.clone();
    let server = Server::start_with(move |stream, _| {
        let (mut reader, mut writer) = (BufReader::new(stream), stream);
        while let Some(words) = request(&mut reader) {
            all.lock().unwrap().push(words.join(" "));
            writer.write_all(b"+OK\r\n").unwrap();
        }
    });
    let arguments = "--workload set --sessions 3 --warm-up 20ms --transactions 9 --mark-phase";
    load(&server.address, arguments).ok();
    let received = received.lock().unwrap();
    let marks: Vec<_> = received
        .iter()
        .filter(|it| it.starts_with("PHASE"))
        .collect();
    assert_eq!(marks, ["PHASE BEGIN", "PHASE END"]);
    assert_eq!(received.last().unwrap(), "PHASE END");
}

#[test]
fn a_server_that_does_not_answer_a_mark_delays_it_for_a_time_and_is_named() {
    let server = Server::start_with(|stream, _| {
        let (mut reader, mut writer) = (BufReader::new(stream), stream);
        while let Some(words) = request(&mut reader) {
            if words[0] != "PHASE" {
                writer.write_all(b"+OK\r\n").unwrap();
            }
        }
    });
    let arguments = "--workload set --transactions 9 --mark-phase --connect-timeout 2s";
    let ended = load(&server.address, arguments).ok();
    assert_eq!(ended.indicator("operations"), 9.0);
    let said = ended.stdout();
    assert!(said.contains("\"PHASE BEGIN\": no answer in 2 s"), "{said}");
    assert!(
        said.contains("of the begin of the measured phase"),
        "{said}"
    );
}

#[test]
fn a_number_that_a_server_does_not_answer_ends_with_the_time() {
    for more in ["", "--rate 1000", "--processes"] {
        // The answer to the third request of a connection never comes.
        let server = Server::start_with(|stream, _| {
            let (mut reader, mut writer) = (BufReader::new(stream), stream);
            for number in 0.. {
                if request(&mut reader).is_none() {
                    return;
                }
                if number < 2 {
                    writer.write_all(b"+OK\r\n").unwrap();
                }
            }
        });
        let arguments =
            format!("--workload set --sessions 2 --transactions 20 --duration 1s {more}");
        let ended = load(&server.address, &arguments).ok();
        assert_eq!(ended.indicator("operations"), 4.0, "{more}");
        assert_eq!(ended.indicator("in_doubt"), 2.0);
        let (due, not_begun) = (ended.indicator("due"), ended.indicator("not_begun"));
        assert_eq!(due + not_begun, 20.0, "{more}: each counts once");
        // What waits in an open loop has become due, and no more becomes due than was asked for.
        let is_open = more.contains("--rate");
        assert_eq!(not_begun, if is_open { 0.0 } else { 14.0 });
        let said = ended.stdout();
        let is_told = said.contains("not begun: the --duration was over");
        assert_eq!(is_told, !is_open, "{said}");
        assert_eq!(ended.edges(), ["measure begin", "measure end"]);
    }
}

#[test]
fn a_server_that_knows_no_phases_is_named() {
    let server = Server::start(|_, words| match words[0].as_str() {
        "PHASE" => Some("-ERR unknown command 'PHASE'\r\n".to_owned()),
        _ => Some("+OK\r\n".to_owned()),
    });
    let ended = load(
        &server.address,
        "--workload set --transactions 9 --mark-phase",
    );
    assert_eq!(ended.output.status.code(), Some(1));
    assert!(ended.stderr().contains("unknown command 'PHASE'"));
    assert!(
        ended
            .stderr()
            .contains("--mark-phase is for concurve-server alone")
    );

    let asked = load("mysql://me@127.0.0.1:1/bank", "--mark-phase");
    assert_eq!(asked.output.status.code(), Some(2));
    assert!(asked.stderr().contains("no other server is asked"));
}

#[test]
fn a_rate_may_be_a_share_of_the_greatest() {
    // Each session has an answer a hundred times a second at most.
    let answer = |number: u64, words: &[String]| {
        thread::sleep(Duration::from_millis(10));
        ok(number, words)
    };
    for workers in ["--threads 2", "--processes"] {
        let server = Server::start(answer);
        let arguments =
            format!("--workload set --sessions 4 --rate 50% --duration 500ms {workers}");
        let ended = load(&server.address, &arguments).ok();
        let [greatest, asked] =
            ["closed_rate_per_second", "rate_asked_per_second"].map(|it| ended.indicator(it));
        assert!(greatest > 0.0 && greatest <= 440.0, "{greatest}");
        assert_eq!(asked, 0.5 * greatest);
        assert_eq!(ended.fact("rate_asked_of_closed_rate"), 0.5);
        let edges = [
            "greatest-rate begin",
            "greatest-rate end",
            "measure begin",
            "measure end",
        ];
        assert_eq!(ended.edges(), edges);
        // A second of the closed loop, half a second at half of the rate: what is measured is that alone.
        let (due, acknowledged) = (ended.indicator("due"), ended.indicator("acknowledged"));
        assert!(due <= 0.5 * asked + 2.0, "{due} {asked}");
        assert!(acknowledged > due, "{acknowledged} {due}");
        assert!(acknowledged <= server.requests() as f64);
        let said = ended.stdout();
        assert!(said.contains("\nrate         50 % of the "), "{said}");
        assert!(
            said.contains(" per second that a closed loop of "),
            "{said}"
        );
    }
}

/// Programs of two names that use all CPUs, since one may be the server; until it is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn all_cpus() -> Self {
        let cpus = thread::available_parallelism().unwrap().get();
        let programs = [("yes", ""), ("sh", "while :; do :; done")];
        let begin = |(program, script): (&str, &str)| {
            let mut command = Command::new(program);
            if !script.is_empty() {
                command.args(["-c", script]);
            }
            command.stdout(Stdio::null()).spawn().unwrap()
        };
        Self(programs.repeat(cpus).into_iter().map(begin).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn the_greatest_rate_of_a_busy_machine_is_measured_again_and_doubted() {
    let server = Server::start(ok);
    let arguments: Vec<&str> = "--sessions 2 --rate 50% --duration 200ms"
        .split(' ')
        .collect();
    let measured = |attached: &[(&str, &str)]| {
        let ended = load_with(&server.address, &arguments, attached).ok();
        let edges = ended.edges();
        let rates = edges.iter().filter(|it| *it == "greatest-rate end").count();
        (rates, ended.stdout())
    };
    let _busy = Busy::all_cpus();
    let (rates, said) = measured(&[("CONCURVE_LOAD_ATTACHED", "1")]);
    assert_eq!(rates, 2);
    let doubt = "in doubt: the greatest rate may be higher, and so the rate asked: the CPUs";
    assert!(said.starts_with(doubt), "{said}");
    assert!(
        said.contains("(of two: the machine was busy in the first)"),
        "{said}"
    );
    // The record of a study's trial says it.
    let (rates, said) = measured(&[]);
    assert_eq!(rates, 1);
    assert!(!said.contains("in doubt"), "{said}");
}

#[test]
fn more_threads_than_sessions_are_one_a_session() {
    let server = Server::start(ok);
    for (threads, sessions) in [(9, 3), (2, 1)] {
        let arguments = format!("--threads {threads} --sessions {sessions} --transactions 30");
        let ended = load(&server.address, &arguments);
        let said = ended.stderr();
        assert_eq!(ended.output.status.code(), Some(0), "{said}");
        assert!(said.contains("one thread a session is used"), "{said}");
        assert_eq!(ended.indicator("operations"), 30.0);
    }
    let within = load(
        &server.address,
        "--threads 2 --sessions 2 --transactions 30",
    );
    assert_eq!(within.stderr(), "");
}

#[test]
fn a_load_of_errors_alone_fails_and_has_no_rate() {
    let failing = Server::start(|_, _| Some("-ERR unknown command 'GTE'\r\n".to_owned()));
    let arguments = "--sessions 2 --transactions 20 --command";
    let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
    arguments.push("GTE {key}");
    let ended = load_with(&failing.address, &arguments, &[]);
    let (said, shown) = (ended.stderr(), &ended.output.stdout);
    assert_eq!(ended.output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("all 20 transactions of the measured phase"),
        "{said}"
    );
    assert!(said.contains("20 × ERR unknown command"), "{said}");
    assert!(shown.is_empty(), "{}", String::from_utf8_lossy(shown));
    assert_eq!(ended.indicator("errors"), 20.0, "the record has them");
}

#[test]
fn a_share_of_no_rate_is_refused() {
    let failing = Server::start(|_, _| Some("-ERR always\r\n".to_owned()));
    let losing = Server::start(|number, words| ok(number, words).filter(|_| number < 20));
    for (server, why) in [
        (failing, "× ERR always)"),
        (losing, "sessions lost their connection"),
    ] {
        let ended = load(&server.address, "--sessions 2 --rate 50% --duration 500ms");
        let said = ended.stderr();
        assert_eq!(ended.output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("--rate 50 % of the greatest rate: "),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
    }
}
