//! What was due counts: against planted servers, the figures are those of the servers' logs and of the
//! schedule. No time is compared with a constant: a busy machine changes all of them alike.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::common::planted::{
    Fate, Planted, Rule, answers_all, answers_one_in_ten, pauses, stops_after_400,
};
use crate::common::{Ended, load};

const RATE: u64 = 500;
const SECONDS: u64 = 2;
/// Figures agree to the width of a bucket of the histograms, and 1 % is what is promised.
const CLOSE: f64 = 0.01;

/// A row of the log of requests.
#[derive(Debug, Clone)]
struct Row {
    session: Option<u64>,
    due_ns: u64,
    sent_ns: Option<u64>,
    answered_ns: Option<u64>,
    outcome: String,
}

/// A run against a planted server, with all that can be known of it.
struct Run {
    planted: Planted,
    ended: Ended,
    figures: Value,
    rows: Vec<Row>,
}

fn run(rule: Rule, arguments: &str) -> Run {
    let planted = Planted::start(rule);
    let file = NamedTempFile::new().unwrap();
    let arguments = format!(
        "--workload get --keys session {arguments} --json --log-requests {}",
        file.path().display()
    );
    let ended = load(planted.address(), &arguments);
    assert!(ended.output.status.success(), "{}", ended.stderr());
    let figures = serde_json::from_str(&ended.stdout()).unwrap();
    let rows = rows(&fs::read_to_string(file.path()).unwrap());
    Run {
        planted,
        ended,
        figures,
        rows,
    }
}

fn open_loop(rule: Rule, more: &str) -> Run {
    run(
        rule,
        &format!("--sessions 20 --rate {RATE} --duration {SECONDS}s {more}"),
    )
}

fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells: HashMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
        let number = |name: &str| cells[name].parse::<u64>().ok();
        Row {
            session: number("session"),
            due_ns: number("due_ns").unwrap(),
            sent_ns: number("sent_ns"),
            answered_ns: number("answered_ns"),
            outcome: cells["outcome"].to_owned(),
        }
    };
    lines.map(row).collect()
}

impl Run {
    fn number(&self, name: &str) -> u64 {
        let value = self.figures[name].as_u64();
        value.unwrap_or_else(|| panic!("no {name} in {}", self.figures))
    }

    fn percentile(&self, name: &str) -> (f64, bool) {
        let latency = &self.figures["latency_ns"];
        let is_censored = &latency["intervals"][name]["censored"];
        let value = latency[name].as_f64().unwrap();
        (
            value,
            is_censored.as_bool().unwrap_or_else(|| panic!("{latency}")),
        )
    }

    /// Latencies by the log of requests; what was not answered has its age at the end.
    fn by_client(&self) -> Vec<u64> {
        let end_ns = self.number("measured_to_ns");
        let latency = |it: &Row| it.answered_ns.unwrap_or(end_ns) - it.due_ns;
        sorted(self.rows.iter().map(latency).collect())
    }

    /// The same by the log of the server: the due times alone are the client's.
    fn by_server(&self) -> Vec<u64> {
        let end_ns = self.number("measured_to_ns");
        let mut answers: HashMap<u64, std::collections::VecDeque<Option<u64>>> = HashMap::new();
        for served in self.planted.log() {
            let of_session = answers.entry(served.session).or_default();
            of_session.push_back(served.answered_ns);
        }
        let mut rows = self.rows.clone();
        rows.sort_by_key(|it| it.sent_ns);
        let latency = |row: &Row| {
            let answers = row.session.and_then(|it| answers.get_mut(&it));
            let answered_ns = answers.and_then(|it| it.pop_front()).flatten();
            answered_ns.unwrap_or(end_ns).min(end_ns) - row.due_ns
        };
        sorted(rows.iter().map(latency).collect())
    }

    /// Each request that was due is in the log once, at its time, and counted once.
    fn assert_complete(&self) {
        let begin_ns = self.number("measured_from_ns");
        let end_ns = self.number("measured_to_ns");
        assert_eq!(end_ns - begin_ns, SECONDS * 1_000_000_000);
        let mut dues: Vec<u64> = self.rows.iter().map(|it| it.due_ns - begin_ns).collect();
        dues.sort_unstable();
        let interval_ns = 1_000_000_000 / RATE;
        let expected: Vec<u64> = (1..SECONDS * RATE).map(|it| it * interval_ns).collect();
        // Workers with a schedule of their own round each due time down.
        assert_eq!(dues.len(), expected.len());
        assert!(
            dues.iter()
                .zip(&expected)
                .all(|(found, due)| found.abs_diff(*due) <= 2)
        );
        self.assert_sums();
    }

    fn assert_sums(&self) {
        let due = self.number("due");
        let [answered, unanswered, skipped] =
            ["answered", "unanswered", "skipped"].map(|it| self.number(it));
        let lost = self.number("transactions_lost");
        assert_eq!(due, answered + lost + unanswered + skipped);
        assert_eq!(due, self.rows.len() as u64);
        let of = |name: &str| self.rows.iter().filter(|it| it.outcome == name).count() as u64;
        assert_eq!(answered, of("ok") + of("refused") + of("error"));
        assert_eq!(unanswered, of("unanswered") + of("waiting"));
        assert_eq!(lost, of("lost"));
        assert_eq!(self.number("errors"), of("error") + lost);
        assert_eq!(skipped, of("skipped"));
        for (name, value) in [
            ("due", due),
            ("unanswered", unanswered),
            ("skipped", skipped),
        ] {
            assert_eq!(self.ended.indicator(name), value as f64, "{name}");
        }
        assert_eq!(
            self.ended.indicator("latency_ns_p99"),
            self.percentile("p99").0
        );
    }

    /// Percentiles are those of the log of requests; an answer that the server sent is seen later,
    /// and nothing that it did not send is seen.
    fn assert_percentiles(&self) {
        let (client, server) = (self.by_client(), self.by_server());
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let (value, _) = self.percentile(name);
            let truth = quantile(&client, share);
            assert!(
                (value / truth - 1.0).abs() < CLOSE,
                "{name}: {value}, log {truth}"
            );
            assert!(value > quantile(&server, share) * (1.0 - CLOSE), "{name}");
        }
    }

    fn warnings(&self) -> String {
        self.figures["warnings"].to_string()
    }
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

fn quantile(sorted: &[u64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

#[test]
fn a_server_that_stops_answering_never_has_a_good_p99() {
    for workers in ["--threads 1", "--threads 4", "--processes"] {
        let run = open_loop(stops_after_400, workers);
        run.assert_complete();
        run.assert_percentiles();
        assert_eq!(run.planted.answered(), 400);
        assert_eq!(run.number("answered"), 400, "{workers}");
        assert_eq!(run.number("unanswered"), SECONDS * RATE - 1 - 400);
        let (p99, is_censored) = run.percentile("p99");
        assert!(is_censored && run.percentile("p999").1);
        // Without an answer, only the schedule and the end count: no noise is in this figure.
        let by_server = quantile(&run.by_server(), 0.99);
        assert!((p99 / by_server - 1.0).abs() < CLOSE, "{p99} {by_server}");
        assert!(run.figures["latency_ns"]["intervals"]["p99"]["high"].is_null());
        assert!(
            run.warnings().contains("were not answered"),
            "{}",
            run.warnings()
        );
        assert!(run.warnings().contains("answered nothing in the last"));
    }
}

#[test]
fn the_text_says_what_was_due_and_that_the_percentile_is_a_lower_bound() {
    let planted = Planted::start(stops_after_400);
    let arguments = "--workload get --keys session --sessions 20 --rate 500 --duration 2s";
    let ended = load(planted.address(), arguments).ok();
    let said = ended.stdout();
    assert!(
        said.contains("due          999: 400 answered, 599 unanswered, 0 skipped"),
        "{said}"
    );
    let row: Vec<&str> = said.lines().nth(3).unwrap().split_whitespace().collect();
    let marked = row.iter().filter(|it| it.starts_with('>')).count();
    assert!(
        marked >= 4,
        "mean, p90, p99, p99.9 and max are lower bounds: {said}"
    );
    assert!(
        said.contains("warning: 599 of 999 due transactions were not answered"),
        "{said}"
    );
    let lines = said.lines().filter(|it| !it.starts_with("warning"));
    assert!(lines.clone().all(|it| it.chars().count() <= 80), "{said}");
}

#[test]
fn a_limit_of_unanswered_transactions_has_an_exit_code_for_scripts() {
    let arguments = "--workload get --keys session --sessions 20 --rate 500 --duration 2s";
    for (limit, code) in [("50%", 4), ("70%", 0)] {
        let planted = Planted::start(stops_after_400);
        let ended = load(
            planted.address(),
            &format!("{arguments} --unanswered-max {limit}"),
        );
        assert_eq!(ended.output.status.code(), Some(code), "{}", ended.stderr());
        assert!(
            ended.stdout().contains("599 unanswered"),
            "the figures are kept"
        );
        assert_eq!(ended.stderr().contains("--unanswered-max 50 %"), code == 4);
    }
}

#[test]
fn a_limit_counts_what_sessions_that_hang_could_not_begin() {
    let arguments = "--workload get --keys session --sessions 5 --duration 2s";
    let planted = Planted::start(stops_after_400);
    let limited = format!("{arguments} --unanswered-max 10%");
    let ended = load(planted.address(), &limited);
    assert_eq!(ended.output.status.code(), Some(4), "{}", ended.stderr());
    assert!(ended.stdout().contains("unanswered   5 at the end"));
}

#[test]
fn what_the_backlog_drops_counts_like_what_waits() {
    let run = open_loop(stops_after_400, "--backlog 50");
    run.assert_complete();
    run.assert_percentiles();
    // 20 under way, 50 waiting; what came after them was dropped.
    assert_eq!(run.number("answered"), 400);
    assert_eq!(run.number("unanswered"), 70);
    assert_eq!(run.number("skipped"), SECONDS * RATE - 1 - 470);
    assert!(run.percentile("p99").1);
}

#[test]
fn a_server_that_pauses_makes_all_wait_that_were_due_in_the_pause() {
    let run = open_loop(pauses, "");
    run.assert_complete();
    run.assert_percentiles();
    // A fifth of the requests was due in a pause, whatever the machine does. The pauses at the begin
    // and the end may be cut: then the tenth that waits longest waits 67 ms or more.
    let pause_ns = 200e6;
    assert!(run.percentile("p90").0 > 0.3 * pause_ns);
}

#[test]
fn a_server_that_answers_one_in_ten_has_all_of_the_others_against_it() {
    let run = open_loop(answers_one_in_ten, "");
    run.assert_complete();
    run.assert_percentiles();
    assert_eq!(run.number("answered"), run.planted.answered() as u64);
    for name in ["p50", "p90", "p99", "p999"] {
        assert!(run.percentile(name).1, "{name}");
    }
    let (p50, by_server) = (run.percentile("p50").0, quantile(&run.by_server(), 0.5));
    assert!((p50 / by_server - 1.0).abs() < CLOSE);
}

#[test]
fn a_closed_loop_counts_sessions_that_hang_at_the_end() {
    let run = run(stops_after_400, "--sessions 5 --duration 2s");
    run.assert_sums();
    assert_eq!((run.number("answered"), run.number("unanswered")), (400, 5));
    assert!(run.percentile("p99").1, "{}", run.figures);
    assert!(run.warnings().contains("answered nothing in the last"));
    // They hung, and so were under way.
    assert!(run.warnings().contains("5 transactions were under way"));
    assert!(!run.warnings().contains("Little"), "{}", run.warnings());
}

#[test]
fn a_server_that_answers_all_has_figures_without_a_mark() {
    let run = open_loop(answers_all, "");
    run.assert_complete();
    run.assert_percentiles();
    // On a machine that stops for a while, more of the last requests may be under way at the end.
    let missing = run.number("unanswered") + run.number("skipped");
    let is_warned = run.warnings().contains("were not answered");
    assert_eq!(is_warned, missing as f64 >= 0.01 * run.number("due") as f64);
}

#[test]
fn the_log_of_requests_agrees_with_the_log_of_the_server() {
    let run = open_loop(answers_all, "");
    let mut sent: HashMap<u64, Vec<Row>> = HashMap::new();
    // On a busy machine some still wait for a session at the end.
    for row in &run.rows {
        if let Some(session) = row.session {
            sent.entry(session).or_default().push(row.clone());
        }
    }
    assert!(!sent.is_empty());
    let log = run.planted.log();
    for (session, mut rows) in sent {
        rows.sort_by_key(|it| it.sent_ns);
        let served = log.iter().filter(|it| it.session == session);
        for (row, served) in rows.iter().zip(served) {
            assert!(row.due_ns <= row.sent_ns.unwrap());
            assert!(row.sent_ns.unwrap() <= served.arrived_ns);
            if let (Some(seen), Some(given)) = (row.answered_ns, served.answered_ns) {
                assert!(given <= seen);
            }
        }
    }
}

/// One session, and twice the rate that it can do: requests wait for it longer than the server takes.
#[test]
fn times_from_sending_leave_out_the_wait_for_a_session() {
    let run = run(slow, "--sessions 1 --rate 200 --duration 1s --backlog 1000");
    let end_ns = run.number("measured_to_ns");
    let sent: Vec<&Row> = run.rows.iter().filter(|it| it.sent_ns.is_some()).collect();
    let from_sending = |it: &&Row| it.answered_ns.unwrap_or(end_ns) - it.sent_ns.unwrap();
    let lag = |it: &&Row| it.sent_ns.unwrap() - it.due_ns;
    for (name, truth) in [
        (
            "service_ns",
            sorted(sent.iter().map(from_sending).collect()),
        ),
        ("lag_ns", sorted(sent.iter().map(lag).collect())),
    ] {
        for (percentile, share) in [("p50", 0.5), ("p99", 0.99)] {
            let value = run.figures[name][percentile].as_f64().unwrap();
            let truth = quantile(&truth, share);
            let is_close = (value / truth - 1.0).abs() < CLOSE;
            assert!(is_close, "{name} {percentile}: {value}, log {truth}");
            let reported = run.ended.indicator(&format!("{name}_{percentile}"));
            assert_eq!(reported, value, "{name}");
        }
    }
    let service = run.figures["service_ns"]["p99"].as_f64().unwrap();
    assert!(service < run.percentile("p99").0 / 2.0, "{service}");
    assert_eq!(run.ended.indicator("rate_asked_per_second"), 200.0);
    let share = run.ended.indicator("rate_asked_share");
    assert_eq!(
        share,
        run.figures["rate_per_second"].as_f64().unwrap() / 200.0
    );
}

/// Two requests are due for each that one session can do.
fn slow(_number: u64, _at_ns: u64) -> Fate {
    Fate::AnswerAfter(Duration::from_millis(10))
}

#[test]
fn the_text_of_an_open_loop_has_both_times() {
    let planted = Planted::start(slow);
    let arguments = "--workload get --keys session --sessions 1 --rate 200 --duration 500ms";
    let said = load(planted.address(), arguments).ok().stdout();
    for text in [
        "\nfrom sending ",
        "counted from when a request was due",
        "sent over 1 ms late",
        "\nlag          p50 ",
        "\np99          report ",
    ] {
        assert!(said.contains(text), "{said}");
    }
    // On a busy machine the load waits for a CPU, too.
    let whose = ["mostly the wait until sent\n", "is the load's lateness\n"];
    assert!(whose.iter().any(|it| said.contains(it)), "{said}");
    let lines = said.lines().filter(|it| !it.starts_with("warning"));
    assert!(lines.clone().all(|it| it.chars().count() <= 80), "{said}");
    let closed = "--workload get --keys session --sessions 1 --transactions 3";
    let said = load(planted.address(), closed).ok().stdout();
    assert!(
        !said.contains("from sending") && !said.contains("\np99 "),
        "{said}"
    );
}

#[test]
fn what_was_sent_and_not_answered_is_no_good_time_from_sending() {
    let run = open_loop(stops_after_400, "");
    let service = &run.figures["service_ns"];
    let is_censored = |name: &str| service["intervals"][name]["censored"] == true;
    assert!(is_censored("max"), "{service}");
    let oldest = run.rows.iter().filter(|it| it.answered_ns.is_none());
    let oldest = oldest.filter_map(|it| it.sent_ns).min().unwrap();
    let age = (run.number("measured_to_ns") - oldest) as f64;
    let longest = service["max"].as_f64().unwrap();
    assert!((longest / age - 1.0).abs() < CLOSE, "{longest}, log {age}");
}

#[test]
fn a_closed_loop_has_no_times_of_a_schedule() {
    let run = run(answers_all, "--sessions 2 --duration 200ms");
    for name in [
        "service_ns",
        "lag_ns",
        "rate_asked_per_second",
        "rate_asked_share",
    ] {
        assert!(run.figures[name].is_null(), "{name}");
    }
}

/// The shortest of many pauses: no machine disturbs all of them.
#[test]
fn a_pause_is_not_rounded_up_to_milliseconds() {
    let run = run(answers_all, "--sessions 1 --think 100us --duration 2s");
    let pause_ns = |it: &[Row]| it[1].sent_ns.unwrap() - it[0].answered_ns.unwrap();
    let least_ns = run.rows[..run.rows.len() - 1]
        .windows(2)
        .map(pause_ns)
        .min();
    let least_ns = least_ns.unwrap();
    assert!((100_000..500_000).contains(&least_ns), "{least_ns}");
}

#[test]
fn a_log_of_requests_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let planted = Planted::start(answers_all);
    let ended = load(
        planted.address(),
        "--transactions 10 --log-requests /nowhere/a.csv",
    );
    assert_eq!(ended.output.status.code(), Some(1));
    assert!(
        ended
            .stderr()
            .contains("/nowhere/a.csv: the log of requests")
    );
    assert!(planted.log().is_empty());
}

#[test]
fn a_share_that_is_none_is_refused() {
    for share in ["0", "1", "101%", "x"] {
        let ended = load("127.0.0.1:1", &format!("--rate 5 --unanswered-max {share}"));
        assert_eq!(ended.output.status.code(), Some(2), "{share}");
        assert!(
            ended.stderr().contains("a share like 1%"),
            "{}",
            ended.stderr()
        );
    }
}
