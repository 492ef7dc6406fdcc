//! The result of a search as text, as JSON and on the report channel.

use concurve_reporter::Reporter;
use serde_json::{Value, json};

use super::live::{Answers, SearchResult};
use super::part;
use super::search::{Doubt, Outcome, WIDE, Window};
use crate::counts::tally::by_kind;
use crate::error::Error;
use crate::figures::client::busy_client;
use crate::figures::lost_sessions;
use crate::plan::{Bad, Plan};
use crate::units::{count, percent, time};

/// Above this share of what the sessions reach without pauses, the sessions limit, not the
/// objective.
const AT_CAPACITY: f64 = 0.95;
/// From this share of the answers on, errors are named.
const ERRORS_WARNED: f64 = 0.01;
/// Exit codes: the objectives are met, are not met, or it is undecided.
const MET: u8 = 0;
const NOT_MET: u8 = 10;
const UNDECIDED: u8 = 11;

/// The result in a few lines.
pub fn text(plan: &Plan, found: &SearchResult) -> String {
    let search = &found.search;
    let mut text = format!("{}: {}\n", plan.target_name(), verdict(found));
    let windows = format!(
        "{} windows of {}\n",
        search.windows.len(),
        time(found.window_ns as f64)
    );
    if let Some(rate) = closed_rate(found) {
        text.push_str(&format!(
            "{} sessions reach {} per second without pauses; ",
            found.sessions,
            count(rate)
        ));
    }
    text.push_str(&windows);
    text.push_str(&part::text(&found.loads));
    for warning in warnings(plan, found) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

/// The result in a sentence. An answer that a busy machine gave says so.
fn verdict(found: &SearchResult) -> String {
    let said = answer(found);
    match is_in_doubt(found) {
        true => format!("{said}; in doubt, because the machine was busy"),
        false => said,
    }
}

/// Whether others had the CPUs while an answer was found, and it may be their doing. That there is
/// none needs no doubt. They make answers late, and neither errors nor a server that says nothing.
fn is_in_doubt(found: &SearchResult) -> bool {
    let is_their_doing = match found.search.outcome {
        Outcome::Undecided { .. } => false,
        Outcome::NeverKept { objective, .. } | Outcome::Missed { objective, .. } => {
            found.objectives[objective].bad != Bad::Error && !found.answers.are_none()
        }
        _ => true,
    };
    found.machine_busy.is_some() && is_their_doing
}

fn answer(found: &SearchResult) -> String {
    let texts = texts(found);
    let all = texts.join(", ");
    match found.search.outcome {
        Outcome::Found {
            rate,
            low,
            high,
            objective,
        } => {
            let limits = match texts.len() {
                1 => String::new(),
                _ => format!("; {} limits the rate", texts[objective]),
            };
            format!(
                "{all} kept up to {} per second (95 % interval {} to {}){limits}",
                count(rate.round()),
                count(low.round()),
                count(high.round())
            )
        }
        Outcome::NeverKept { rate, objective } => format!(
            "{} is not kept at any rate: it is missed even at {} per second, the lowest rate that can be judged in windows of {}",
            texts[objective],
            count(rate),
            time(found.window_ns as f64)
        ),
        Outcome::AlwaysKept { rate } => format!(
            "{all} kept at every rate that these sessions can send: at least {} per second; more --sessions may reach the limit",
            count(rate.round())
        ),
        Outcome::Kept { rate } => format!("{all} met at {} per second", count(rate)),
        Outcome::Missed { rate, objective } => {
            format!("{} not met at {} per second", texts[objective], count(rate))
        }
        Outcome::Undecided { low, high, why } => {
            let what = match found.checked_rate {
                Some(rate) => format!("whether {} per second keep {all}", count(rate)),
                None => format!("what rate keeps {all}"),
            };
            let bounds = match (low > 0.0, high.is_finite()) {
                (true, true) => format!(
                    " (95 % interval {} to {} per second)",
                    count(low.round()),
                    count(high.round())
                ),
                (true, false) => format!(" (at least {} per second)", count(low.round())),
                (false, true) => format!(" (at most {} per second)", count(high.round())),
                (false, false) => seen(why, found).map_or(String::new(), |it| format!(" ({it})")),
            };
            format!(
                "it cannot be said {what}{bounds}, because {}",
                reason(why, found)
            )
        }
    }
}

/// What the windows have, where they give no interval: no bounds, but between which rates to look, or
/// how near it was. Of a server that changed, or a search that something else spoiled, they say nothing.
fn seen(why: Doubt, found: &SearchResult) -> Option<String> {
    let windows = &found.search.windows;
    match why {
        Doubt::TooNear => {
            let requests: u64 = windows.iter().map(|it| it.requests).sum();
            let shares = found.objectives.iter().enumerate().map(|(index, it)| {
                let bad: u64 = windows.iter().map(|window| window.bad[index]).sum();
                let share = bad as f64 / requests.max(1) as f64;
                format!(
                    "{} were bad, of {} that {} allows",
                    percent(share),
                    percent(it.share),
                    it.text
                )
            });
            (requests > 0).then(|| Vec::from_iter(shares).join("; "))
        }
        Doubt::TooFewWindows | Doubt::NoTrend | Doubt::FewBursts => {
            let shares: Vec<f64> = found.objectives.iter().map(|it| it.share).collect();
            let is_missed = |it: &&Window| it.missed(&shares).is_some();
            let rates = |missed: bool| {
                let those = windows.iter().filter(move |it| is_missed(it) == missed);
                those.map(|it| it.rate)
            };
            // The lowest that was missed, and the greatest that was kept; nothing beyond is mixed.
            let (missed_from, kept_to) =
                (rates(true).reduce(f64::min), rates(false).reduce(f64::max));
            let all_kept_below =
                rates(false).filter(|it| missed_from.is_none_or(|from| *it < from));
            let all_missed_above = rates(true).filter(|it| kept_to.is_none_or(|to| *it > to));
            let parts = [
                all_kept_below.reduce(f64::max).map(|it| ("kept up to", it)),
                all_missed_above
                    .reduce(f64::min)
                    .map(|it| ("missed from", it)),
            ];
            let parts = parts
                .into_iter()
                .flatten()
                .map(|(what, rate)| format!("{what} {}", count(rate.round())));
            let parts = Vec::from_iter(parts).join(" and ");
            (!parts.is_empty()).then(|| format!("windows all {parts} per second"))
        }
        _ => None,
    }
}

fn texts(found: &SearchResult) -> Vec<&str> {
    found.objectives.iter().map(|it| it.text.as_str()).collect()
}

/// Why there is no answer, and what to try.
fn reason(why: Doubt, found: &SearchResult) -> String {
    let answers = &found.answers;
    match why {
        Doubt::TooFewWindows => {
            "it ended before there were enough windows; try a longer --duration".to_owned()
        }
        Doubt::NoTrend => "the share of bad requests does not grow clearly with the rate: windows at similar rates \
            differ too much, or requests are bad for another reason than the rate; try a longer --duration, or look for \
            pauses of the server"
            .to_owned(),
        Doubt::TooWide => format!(
            "the interval is wider than a factor of {WIDE}: windows at similar rates differ much, as they do when the \
            server pauses; try a --duration four times as long, a quieter machine, or a limit beyond the pauses"
        ),
        Doubt::FewBursts => "too few requests were bad up to that rate, or in too few windows, to know how their bursts \
            come; try a --duration ten times as long, a larger share (p99 for p99.9), or a limit beyond the pauses of the \
            server"
            .to_owned(),
        Doubt::TooNear => "its share of bad requests is too near to the objective for the number of bursts that were \
            seen; try a longer --duration, or a lower --rate"
            .to_owned(),
        Doubt::Changed => match silence(answers) {
            Some(silence) => format!("{silence}; look at the server and its log"),
            None => "the server answered otherwise at the end than at the beginning, at the same rates; try a \
                --warm-up, or again when the server does the same all the time (caches, compaction, neighbours)"
                .to_owned(),
        },
        Doubt::BusyClient => {
            "the load generator was the limit: a warning says what to give it".to_owned()
        }
        Doubt::LostSessions if answers.are_none() || answers.answered == 0 => {
            "the server closed connections before it answered anything; see its log, and whether the address is that of \
            the right service"
                .to_owned()
        }
        Doubt::LostSessions => {
            "sessions lost their connection; see the server's log".to_owned()
        }
        Doubt::NeverAnswered => format!(
            "the server never answered: it accepted the connections and answered nothing in {}; see its log, and \
            whether the address is that of the right service",
            time(answers.asked_ns as f64)
        ),
        Doubt::LongerThanWindows => format!(
            "no request was answered within the window of {} in which it was due; try a --duration ten times as long",
            time(found.window_ns as f64)
        ),
        Doubt::MostlyErrors => format!(
            "{} of the answers were errors, whose latency says nothing ({}); correct the requests or the server, or \
            count errors with errors=1% in --slo",
            percent(answers.error_share()),
            by_kind(&answers.errors)
        ),
    }
}

/// That the server stopped answering, and when.
fn silence(answers: &Answers) -> Option<String> {
    let ns = answers.silent_after_ns()?;
    Some(format!("nothing was answered after {}", time(ns as f64)))
}

/// The names of outcomes and of reasons in JSON.
fn names(found: &SearchResult) -> (&'static str, Option<&'static str>) {
    match found.search.outcome {
        Outcome::Found { .. } => ("found", None),
        Outcome::AlwaysKept { .. } => ("kept_at_every_rate", None),
        Outcome::Kept { .. } => ("met", None),
        Outcome::NeverKept { .. } => ("kept_at_no_rate", None),
        Outcome::Missed { .. } => ("not_met", None),
        Outcome::Undecided { why, .. } => {
            let name = match why {
                Doubt::TooFewWindows => "too_few_windows",
                Doubt::NoTrend => "no_trend",
                Doubt::TooWide => "interval_too_wide",
                Doubt::FewBursts => "few_bursts",
                Doubt::TooNear => "too_near_to_the_objective",
                Doubt::Changed => "server_changed",
                Doubt::BusyClient => "load_generator_limited",
                Doubt::LostSessions => "sessions_lost",
                Doubt::NeverAnswered => "never_answered",
                Doubt::LongerThanWindows => "latency_longer_than_windows",
                Doubt::MostlyErrors => "mostly_errors",
            };
            ("undecided", Some(name))
        }
    }
}

/// 0 if the objectives are met, 10 if not, 11 if that is undecided, as it is where they were missed
/// while other programs had the CPUs: nobody knows whether the server or they are the reason.
pub fn exit_code(found: &SearchResult) -> u8 {
    match found.search.outcome {
        Outcome::Undecided { .. } => UNDECIDED,
        Outcome::NeverKept { .. } | Outcome::Missed { .. } if is_in_doubt(found) => UNDECIDED,
        Outcome::NeverKept { .. } | Outcome::Missed { .. } => NOT_MET,
        Outcome::Found { .. } | Outcome::AlwaysKept { .. } | Outcome::Kept { .. } => MET,
    }
}

fn warnings(plan: &Plan, found: &SearchResult) -> Vec<String> {
    let (search, mut warnings) = (&found.search, Vec::new());
    warnings.extend(lost_sessions(found.sessions, &found.lost));
    warnings.extend(found.machine_busy.clone());
    let busiest = busy_client(plan, found.busiest_thread_share);
    warnings.extend(busiest.map(|it| match part::busiest(&found.loads) {
        Some(name) => format!("{name}: {it}"),
        None => it,
    }));
    warnings.extend(part::slower(&found.loads));
    warnings.extend(unanswered(found));
    if let Outcome::Found { rate, .. } = search.outcome
        && rate > AT_CAPACITY * search.capacity
    {
        warnings.push(
            "that is about all that these sessions can send: more --sessions may reach more"
                .to_owned(),
        );
    }
    warnings
}

/// What the server did not answer, or answered with errors, if the verdict does not say it.
fn unanswered(found: &SearchResult) -> Vec<String> {
    let (answers, mut warnings) = (&found.answers, Vec::new());
    let why = match found.search.outcome {
        Outcome::Undecided { why, .. } => Some(why),
        _ => None,
    };
    if answers.are_none() && why.is_none() {
        let asked = time(answers.asked_ns as f64);
        warnings.push(format!("the server never answered: nothing in {asked}"));
    }
    if why != Some(Doubt::Changed) {
        warnings.extend(silence(answers));
    }
    if answers.error_share() >= ERRORS_WARNED && why != Some(Doubt::MostlyErrors) {
        warnings.push(format!(
            "{} of the answers were errors ({})",
            percent(answers.error_share()),
            by_kind(&answers.errors)
        ));
    }
    warnings
}

/// All that was measured.
pub fn json(plan: &Plan, found: &SearchResult) -> Value {
    let search = &found.search;
    let (outcome, reason) = names(found);
    let mut value = json!({
        "server": plan.target_name(),
        "sessions": found.sessions,
        "loads": part::json(&found.loads),
        "objectives": texts(found),
        "outcome": outcome,
        "reason": reason,
        "exit_code": exit_code(found),
        "verdict": verdict(found),
        "in_doubt": is_in_doubt(found),
        "checked_rate_per_second": found.checked_rate,
        "closed_rate_per_second": closed_rate(found),
        "window_seconds": found.window_ns as f64 / 1e9,
        "client_threads_busy_share_max": found.busiest_thread_share,
        "sessions_lost": found.sessions_lost(),
        "warnings": warnings(plan, found),
        "windows": search.windows.iter().map(|window| json!({
            "rate_per_second": window.rate,
            "requests": window.requests,
            "bad": window.bad,
        })).collect::<Vec<_>>(),
    });
    for (name, number) in rates(found) {
        value[name] = json!(number);
    }
    value
}

/// The rate of the closed loop; a check has none.
fn closed_rate(found: &SearchResult) -> Option<f64> {
    let is_search = found.checked_rate.is_none() && found.search.capacity > 0.0;
    is_search.then_some(found.search.capacity)
}

/// The rate and its interval, as far as they are known.
fn rates(found: &SearchResult) -> Vec<(&'static str, f64)> {
    let (rate, low, high) = match found.search.outcome {
        Outcome::Found {
            rate, low, high, ..
        } => (rate, low, high),
        Outcome::AlwaysKept { rate } | Outcome::Kept { rate } => (0.0, rate, 0.0),
        Outcome::NeverKept { rate, .. } | Outcome::Missed { rate, .. } => (0.0, 0.0, rate),
        Outcome::Undecided { low, high, .. } => (0.0, low, high),
    };
    let all = [
        ("slo_rate_per_second", rate),
        ("slo_rate_low_per_second", low),
        ("slo_rate_high_per_second", high),
    ];
    let known = |it: &(&str, f64)| it.1 > 0.0 && it.1.is_finite();
    all.into_iter().filter(known).collect()
}

/// Reports the result.
pub fn report(plan: &Plan, found: &SearchResult, reporter: &Reporter) -> Result<(), Error> {
    for (name, number) in rates(found) {
        reporter.indicator(name, number, None)?;
    }
    if let Some(rate) = closed_rate(found) {
        reporter.indicator("closed_rate_per_second", rate, None)?;
    }
    let (outcome, reason) = names(found);
    reporter.fact("slo_outcome", json!(outcome))?;
    reporter.fact("slo_reason", json!(reason))?;
    match (found.loads.first(), part::shares(&found.loads).first()) {
        // The others report their own.
        (Some(own), Some(share)) => {
            part::report_share(share, own.sessions_lost(), own.busiest_share, reporter)?;
        }
        _ => {
            reporter.indicator("sessions_lost", found.sessions_lost() as f64, None)?;
            let busy = found.busiest_thread_share;
            reporter.indicator("client_threads_busy_share_max", busy, None)?;
        }
    }
    reporter.fact("slo", json(plan, found))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser;

    use super::super::search::Search;
    use super::*;
    use crate::command_line::Arguments;
    use crate::failures::Failures;

    fn ended_with(outcome: Outcome) -> SearchResult {
        SearchResult {
            objectives: vec!["p99=2ms".parse().unwrap()],
            search: Search {
                capacity: 1000.0,
                windows: Vec::new(),
                outcome,
            },
            sessions: 50,
            loads: Vec::new(),
            window_ns: 1_000_000,
            busiest_thread_share: 0.0,
            lost: BTreeMap::new(),
            checked_rate: None,
            answers: Answers::default(),
            machine_busy: None,
            failures: Failures::default(),
        }
    }

    #[test]
    fn each_outcome_has_its_name_and_exit_code() {
        let (rate, objective) = (50.0, 0);
        let undecided = |why| Outcome::Undecided {
            low: 0.0,
            high: f64::INFINITY,
            why,
        };
        let found = Outcome::Found {
            rate,
            low: 40.0,
            high: 60.0,
            objective,
        };
        for (outcome, expected) in [
            (found, ("found", None, 0)),
            (Outcome::Kept { rate }, ("met", None, 0)),
            (
                Outcome::AlwaysKept { rate },
                ("kept_at_every_rate", None, 0),
            ),
            (Outcome::Missed { rate, objective }, ("not_met", None, 10)),
            (
                Outcome::NeverKept { rate, objective },
                ("kept_at_no_rate", None, 10),
            ),
            (
                undecided(Doubt::NoTrend),
                ("undecided", Some("no_trend"), 11),
            ),
            (
                undecided(Doubt::Changed),
                ("undecided", Some("server_changed"), 11),
            ),
        ] {
            let (name, reason, code) = expected;
            assert_eq!(names(&ended_with(outcome)), (name, reason));
            assert_eq!(exit_code(&ended_with(outcome)), code);
        }
    }

    fn plan() -> Plan {
        let called = [
            "concurve-load",
            "redis://127.0.0.1:6379",
            "--slo",
            "p99=2ms",
        ];
        Arguments::parse_from(called).plan().unwrap()
    }

    #[test]
    fn an_answer_that_a_busy_machine_gave_says_so() {
        let busy = "the CPUs of this machine were busy for 99 % of the time (hog (pid 7) 50 %)";
        let on_busy = |outcome| SearchResult {
            machine_busy: Some(busy.to_owned()),
            ..ended_with(outcome)
        };
        let met = Outcome::Kept { rate: 50.0 };
        let said = verdict(&on_busy(met));
        assert!(
            said.ends_with("per second; in doubt, because the machine was busy"),
            "{said}"
        );
        assert!(!verdict(&ended_with(met)).contains("doubt"));
        let why = Doubt::NoTrend;
        let (low, high) = (0.0, f64::INFINITY);
        let open = Outcome::Undecided { low, high, why };
        assert!(!is_in_doubt(&on_busy(open)));
        // That it was missed may be the doing of who had the CPUs; that it was met is not.
        let (rate, objective) = (50.0, 0);
        let missed = Outcome::Missed { rate, objective };
        let never = Outcome::NeverKept { rate, objective };
        for (outcome, code) in [(met, 0), (missed, 11), (never, 11), (open, 11)] {
            let found = on_busy(outcome);
            assert_eq!(exit_code(&found), code);
            assert!(warnings(&plan(), &found).contains(&busy.to_owned()));
            assert_eq!(json(&plan(), &found)["in_doubt"], is_in_doubt(&found));
        }
        // Nobody else makes a server answer with errors, or not at all.
        let errors = SearchResult {
            objectives: vec!["errors=1%".parse().unwrap()],
            ..on_busy(missed)
        };
        let answers = Answers {
            silent: 4,
            ..Answers::default()
        };
        let silent = SearchResult {
            answers,
            ..on_busy(missed)
        };
        for found in [errors, silent] {
            assert_eq!((is_in_doubt(&found), exit_code(&found)), (false, 10));
        }
    }

    fn windows(each: &[(f64, u64)]) -> Vec<Window> {
        let window = |(rate, bad): &(f64, u64)| Window {
            rate: *rate,
            requests: 1000,
            bad: vec![*bad],
        };
        each.iter().map(window).collect()
    }

    /// The verdict of a search whose windows, of 1000 requests, had so many bad ones at these rates.
    fn open(why: Doubt, each: &[(f64, u64)]) -> String {
        let (low, high) = (0.0, f64::INFINITY);
        let mut found = ended_with(Outcome::Undecided { low, high, why });
        found.search.windows = windows(each);
        verdict(&found)
    }

    #[test]
    fn an_open_search_says_between_which_rates_its_windows_differ() {
        let mixed = [
            (100.0, 0),
            (200.0, 9),
            (300.0, 11),
            (400.0, 5),
            (500.0, 40),
            (600.0, 80),
        ];
        let said = open(Doubt::NoTrend, &mixed);
        let told = "what rate keeps p99=2ms (windows all kept up to 200 and missed from 500 per second), because";
        assert!(said.contains(told), "{said}");
        let said = open(Doubt::FewBursts, &mixed[..2]);
        assert!(
            said.contains("(windows all kept up to 200 per second)"),
            "{said}"
        );
        let said = open(Doubt::TooFewWindows, &mixed[4..]);
        assert!(
            said.contains("(windows all missed from 500 per second)"),
            "{said}"
        );
        // The lowest was missed and the greatest kept: they say nothing.
        let said = open(Doubt::NoTrend, &[(100.0, 20), (200.0, 0)]);
        assert!(!said.contains("windows all"), "{said}");
        for why in [Doubt::Changed, Doubt::BusyClient, Doubt::MostlyErrors] {
            let said = open(why, &mixed);
            assert!(!said.contains("windows all"), "{said}");
        }
    }

    #[test]
    fn an_open_check_says_how_near_it_was() {
        let said = open(Doubt::TooNear, &[(100.0, 4), (100.0, 20)]);
        assert!(
            said.contains("(1.2 % were bad, of 1.0 % that p99=2ms allows), because"),
            "{said}"
        );
        assert!(!open(Doubt::TooNear, &[]).contains("were bad"));
    }

    #[test]
    fn a_server_that_hangs_is_named_with_the_time_of_its_last_answer() {
        let why = Doubt::Changed;
        let (low, high) = (0.0, f64::INFINITY);
        let found = SearchResult {
            answers: Answers::silent_after(2_100_000_000),
            ..ended_with(Outcome::Undecided { low, high, why })
        };
        let said = verdict(&found);
        assert!(
            said.contains("because nothing was answered after 2.10 s"),
            "{said}"
        );
        let said = verdict(&ended_with(found.search.outcome));
        assert!(said.contains("answered otherwise at the end"), "{said}");
    }

    #[test]
    fn a_server_that_never_answers_is_said_to() {
        let of = |why| Outcome::Undecided {
            low: 0.0,
            high: f64::INFINITY,
            why,
        };
        let silent = SearchResult {
            answers: Answers {
                asked_ns: 4_000_000_000,
                ..Answers::default()
            },
            ..ended_with(of(Doubt::NeverAnswered))
        };
        let said = verdict(&silent);
        assert!(said.contains("never answered"), "{said}");
        assert!(said.contains("nothing in 4.00 s"), "{said}");
        assert_eq!(names(&silent), ("undecided", Some("never_answered")));
        assert_eq!(exit_code(&silent), 11);
        let failing = SearchResult {
            answers: Answers {
                answered: 10,
                errors: BTreeMap::from([("ERR always".to_owned(), 10)]),
                ..Answers::default()
            },
            ..ended_with(of(Doubt::MostlyErrors))
        };
        let said = verdict(&failing);
        assert!(said.contains("100 % of the answers were errors"), "{said}");
        assert!(said.contains("10 × ERR always"), "{said}");
    }
}
