//! The search on a real server or engine: windows of load, one after the other, on the same
//! connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_clock::monotonic_ns;
use concurve_reporter::Reporter;
use concurve_reporter::line::Edge;

use super::loads::{Loads, Measured};
use super::part::{self, LoadPart};
use super::search::{self, Doubt, Outcome, Search, SystemUnderTest, Window, settle};
use crate::counts::tally::{CONNECTION_LOST, add_count, add_counts};
use crate::counts::window::WindowCounts;
use crate::drive::{Workers, report_edge};
use crate::error::{Error, TogetherError};
use crate::failures::Failures;
use crate::figures::client::busy_client;
use crate::figures::machine::MachineBefore;
use crate::figures::progress::Progress;
use crate::plan::{Bad, End, Objective, Pace, Plan, RateSearch, Task};
use crate::stop::Stop;
use crate::together::Leader;
use crate::units::{count, time};

/// Number of windows in the time of a search, unless the limits require longer windows.
const WINDOWS: u64 = 40;
/// The load runs for this fraction of a window's length before each window, on average.
const SETTLE: u64 = 4;
/// A window is at least so many times as long as the longest limit: in shorter ones a growing queue
/// would not be seen.
const LIMITS_IN_WINDOW: u64 = 20;
const WINDOWS_MIN: u64 = 15;
/// So often in a row a load may hear too late of a window.
const LATE_MAX: usize = 4;
/// In so many windows at the end nothing is answered by a server that hangs.
const SILENT: usize = 3;
/// With more errors among the answers, latencies are not those of what was asked for.
const MOSTLY: f64 = 0.5;
/// A server that answers less than this share of the due transactions does not keep the rate.
const SUSTAINED: f64 = 0.9;

/// The result of a search.
#[derive(Debug)]
pub struct SearchResult {
    pub objectives: Vec<Objective>,
    pub search: Search,
    /// Number of sessions of all loads.
    pub sessions: u64,
    /// The loads that searched together; none if it was one alone.
    pub loads: Vec<LoadPart>,
    pub window_ns: u64,
    /// Share of a CPU that the busiest client thread used at the rates up to the one found.
    pub busiest_thread_share: f64,
    /// Sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
    /// The one rate that was to be checked.
    pub checked_rate: Option<f64>,
    pub answers: Answers,
    /// Who had the CPUs of this machine, if they were busy.
    pub machine_busy: Option<String>,
    /// What the answer does not depend on: an engine could not be closed.
    pub failures: Failures,
}

/// What the server answered in the course of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Measured requests that were answered.
    pub answered: u64,
    /// Those that were answered with an error, by its kind.
    pub errors: BTreeMap<String, u64>,
    /// How long the server was under load.
    pub asked_ns: u64,
    /// When the last answer came, since the beginning; `None` if none did.
    pub(super) last_ns: Option<u64>,
    /// Number of windows after it in which something was asked, and nothing was answered.
    pub(super) silent: usize,
}

impl Answers {
    /// The time of the last answer, if nothing was answered in the windows after it.
    pub fn silent_after_ns(&self) -> Option<u64> {
        self.last_ns.filter(|_| self.silent >= SILENT)
    }

    #[cfg(test)]
    pub fn silent_after(ns: u64) -> Self {
        Self {
            last_ns: Some(ns),
            silent: SILENT,
            ..Self::default()
        }
    }

    /// Whether there was none in all the time.
    pub fn are_none(&self) -> bool {
        self.last_ns.is_none() && self.silent > 0
    }

    /// Share of the answers that were errors.
    pub fn error_share(&self) -> f64 {
        let errors: u64 = self.errors.values().sum();
        errors as f64 / self.answered.max(1) as f64
    }

    /// Adds the window of a task of a search that began at a time.
    fn add(&mut self, counts: &WindowCounts, task: &Task, begin_ns: u64) {
        let ended = &counts.ended;
        self.answered += ended.answered();
        let answered = ended
            .errors
            .iter()
            .filter(|it| !it.0.starts_with(CONNECTION_LOST));
        for (kind, count) in answered {
            add_count(&mut self.errors, kind.clone(), *count);
        }
        let at_ns = match ended.answered() {
            // A server that is behind answers what was due before the window.
            0 if counts.acknowledged > 0 => task.end_ns(),
            0 => {
                self.silent += 1;
                return;
            }
            _ => task.measure_ns() + counts.last_ns,
        };
        self.last_ns = Some(at_ns.saturating_sub(begin_ns));
        self.silent = 0;
    }
}

impl SearchResult {
    /// Sessions that lost their connection.
    pub fn sessions_lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// Connects all sessions and tries rates, or checks one, until the time is over or until it is
/// stopped; with other loads, if it leads any.
pub fn seek_rate(
    plan: &Arc<Plan>,
    asked: &RateSearch,
    leader: Option<Leader>,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<SearchResult, Error> {
    let length_ns = window_ns(asked)?;
    let workers = Workers::connect(plan, stop)?;
    // Before the others come: who starts them may wait for this one.
    reporter.ready()?;
    let loads = Loads::gather(workers, leader, plan, stop)?;
    let machine = MachineBefore::outside_studies(reporter);
    let begin_ns = monotonic_ns();
    report_edge(reporter, "measure", Edge::Begin, Some(begin_ns))?;
    let mut live = Live {
        asked,
        sessions: loads.sessions(),
        parts: loads.parts(),
        loads,
        stop,
        progress: Progress::on_terminal(
            End::After {
                ns: asked.duration_ns,
            },
            length_ns,
        ),
        window_ns: length_ns,
        end_ns: begin_ns + asked.duration_ns + asked.warm_up_ns,
        busy: Vec::new(),
        lost: BTreeMap::new(),
        windows: 0,
        begin_ns,
        answers: Answers::default(),
    };
    let shares: Vec<f64> = asked.objectives.iter().map(|it| it.share).collect();
    let search = match asked.rate {
        Some(rate) => search::check(&mut live, &shares, rate)?,
        None => search::search(&mut live, &shares, length_ns as f64 / 1e9)?,
    };
    report_edge(reporter, "measure", Edge::End, Some(monotonic_ns()))?;
    let busiest_thread_share = live.busiest_up_to(search.rate());
    live.answers.asked_ns = monotonic_ns() - begin_ns;
    let (busy_elsewhere, closed) = live.loads.end(&part::shares(&live.parts));
    let mut failures = Failures::default();
    failures.note(closed);
    let busy_here = machine.and_then(|it| it.busy_since(plan.target.is_server_here()));
    let busy = Vec::from_iter(busy_here.into_iter().chain(busy_elsewhere));
    let found = SearchResult {
        objectives: asked.objectives.clone(),
        busiest_thread_share,
        search,
        sessions: live.sessions,
        loads: live.parts,
        window_ns: length_ns,
        lost: live.lost,
        checked_rate: asked.rate,
        answers: live.answers,
        machine_busy: (!busy.is_empty()).then(|| busy.join("; ")),
        failures,
    };
    Ok(doubted(plan, found))
}

/// Takes an answer back that the windows alone do not show to be none.
fn doubted(plan: &Plan, mut found: SearchResult) -> SearchResult {
    let answers = &found.answers;
    // A rate that was to be checked is missed whatever the reason is.
    let is_missed = matches!(found.search.outcome, Outcome::Missed { .. });
    let counts_errors = found.objectives.iter().any(|it| it.bad == Bad::Error);
    let doubt = if !found.lost.is_empty() {
        Some(Doubt::LostSessions)
    } else if answers.are_none() && !is_missed {
        Some(Doubt::NeverAnswered)
    } else if answers.silent_after_ns().is_some() && !is_missed {
        Some(Doubt::Changed)
    } else if answers.error_share() > MOSTLY && !counts_errors && !is_missed {
        Some(Doubt::MostlyErrors)
    } else if busy_client(plan, found.busiest_thread_share).is_some() {
        Some(Doubt::BusyClient)
    } else {
        None
    };
    if let Some(why) = doubt {
        found.search.doubt(why);
    }
    found
}

/// The length of a window.
fn window_ns(asked: &RateSearch) -> Result<u64, Error> {
    let windows_ns = |ns: u64, windows: u64| ns * (SETTLE + 1) / SETTLE * windows;
    let duration_ns = asked.duration_ns;
    let limits = || asked.objectives.iter().filter(|it| it.limit_ns().is_some());
    let longest = limits().max_by_key(|it| it.limit_ns());
    let least_ns = LIMITS_IN_WINDOW * longest.and_then(Objective::limit_ns).unwrap_or(0);
    let usual_ns = duration_ns / (WINDOWS * (SETTLE + 1) / SETTLE);
    let ns = usual_ns.max(least_ns);
    let needed_ns = windows_ns(ns, WINDOWS_MIN);
    if needed_ns > duration_ns {
        let meant = longest.and_then(Objective::other_unit);
        let within = meant.map_or_else(|| "in".to_owned(), |it| format!("{it} In"));
        return Err(Error::Usage(format!(
            "--slo: {within} {} there is no time for {WINDOWS_MIN} windows, each {LIMITS_IN_WINDOW} times as long as the longest limit; --duration {:.0}s or more",
            time(duration_ns as f64),
            (needed_ns as f64 / 1e9).ceil()
        )));
    }
    Ok(ns)
}

struct Live<'a> {
    asked: &'a RateSearch,
    loads: Loads,
    /// Number of sessions of all loads.
    sessions: u64,
    /// What each load sent; empty if there is one alone.
    parts: Vec<LoadPart>,
    stop: &'a Stop,
    progress: Option<Progress>,
    window_ns: u64,
    end_ns: u64,
    /// Rates, and the share of a CPU that the busiest client thread used.
    busy: Vec<(f64, f64)>,
    /// Sessions that lost their connection so far, by reason.
    lost: BTreeMap<String, u64>,
    /// Number of windows so far.
    windows: usize,
    begin_ns: u64,
    answers: Answers,
}

impl Live<'_> {
    /// Measures one window; `None` if there is no time for it, or no session left.
    fn measure(&mut self, pace: Pace, warm_up_ns: u64) -> Result<Option<WindowCounts>, Error> {
        let mut times = 0;
        while let Some(task) = self.next_task(pace, warm_up_ns)? {
            self.windows += 1;
            match self.loads.measure(&task)? {
                Measured::Counts(counts) => return Ok(self.noted(&task, counts)),
                Measured::Late {
                    name,
                    late_ns,
                    counts,
                } => {
                    // It is not the server's doing, so the window is measured again.
                    self.note_lost(&counts);
                    times += 1;
                    if times == LATE_MAX {
                        let late = time(late_ns as f64);
                        return Err(TogetherError::Late { name, late, times }.into());
                    }
                }
                Measured::Stopped => break,
            }
        }
        Ok(None)
    }

    /// The task of the next window; `None` if there is no time for it.
    fn next_task(&mut self, pace: Pace, warm_up_ns: u64) -> Result<Option<Task>, Error> {
        let Some(begin_ns) = self.loads.earliest_ns(self.window_ns)? else {
            return Ok(None);
        };
        let task = Task {
            begin_ns,
            ramp_ns: 0,
            warm_up_ns: warm_up_ns + (self.window_ns as f64 * settle(self.windows)) as u64,
            pace,
            end: End::After { ns: self.window_ns },
            interval_ns: None,
            among: None,
        };
        let is_over = task.end_ns() > self.end_ns + self.window_ns / 2 || self.stop.is_set();
        Ok((!is_over).then_some(task))
    }

    /// Keeps what each load counted in a window. Returns the sum, unless no session is left.
    fn noted(&mut self, task: &Task, counts: Vec<WindowCounts>) -> Option<WindowCounts> {
        let rate = match task.pace {
            Pace::Open {
                rate_per_second, ..
            } => Some(rate_per_second),
            Pace::Closed { .. } => None,
        };
        for (part, counts) in self.parts.iter_mut().zip(&counts) {
            if let Some(rate) = rate {
                part.add(judged(rate, counts, &self.asked.objectives), counts);
            }
        }
        self.note_lost(&counts);
        let sum = WindowCounts::sum(counts);
        self.busy.extend(rate.map(|it| (it, sum.busiest_share)));
        self.answers.add(&sum, task, self.begin_ns);
        Some(sum).filter(|_| self.sessions_lost() < self.sessions)
    }

    /// Keeps the sessions that loads lost in a window.
    fn note_lost(&mut self, counts: &[WindowCounts]) {
        for counts in counts {
            add_counts(&mut self.lost, &counts.lost);
        }
        for (part, counts) in self.parts.iter_mut().zip(counts) {
            add_counts(&mut part.lost, &counts.lost);
        }
    }

    fn sessions_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    fn busiest_up_to(&self, rate: f64) -> f64 {
        let up_to = self.busy.iter().filter(|it| it.0 <= rate);
        up_to.map(|it| it.1).fold(0.0, f64::max)
    }

    /// The load is warmed up once, before whatever comes first.
    const fn warm_up_ns(&self) -> u64 {
        match self.windows {
            0 => self.asked.warm_up_ns,
            _ => 0,
        }
    }

    fn show(&mut self, text: &str) {
        if let Some(progress) = &mut self.progress {
            progress.show(text);
        }
    }
}

impl SystemUnderTest for Live<'_> {
    type Error = Error;

    fn closed_loop(&mut self) -> Result<Option<f64>, Error> {
        self.show("closed loop without pauses");
        let pace = Pace::Closed { think_ns: 0 };
        let tally = self.measure(pace, self.warm_up_ns())?;
        Ok(tally.map(|it| it.ended.answered() as f64 / (self.window_ns as f64 / 1e9)))
    }

    fn window(&mut self, rate: f64) -> Result<Option<Window>, Error> {
        let Some(mut counts) = self.measure(self.asked.pace(rate), self.warm_up_ns())? else {
            return Ok(None);
        };
        if self.sessions_lost() > 0 {
            // A worker that has lost its sessions no longer counts what becomes due.
            let asked = rate * self.window_ns as f64 / 1e9;
            counts.due = counts.due.max(asked as u64);
        }
        let window = judged(rate, &counts, &self.asked.objectives);
        let shares: Vec<f64> = self.asked.objectives.iter().map(|it| it.share).collect();
        let verdict = match window.missed(&shares) {
            None => "kept".to_owned(),
            Some(objective) => format!("{} missed", self.asked.objectives[objective].text),
        };
        let left_ns = self.end_ns.saturating_sub(monotonic_ns());
        let left = left_ns as f64 / 1e9;
        self.show(&format!("{}/s: {verdict}; {left:.0} s left", count(rate)));
        Ok(Some(window))
    }
}

/// The requests of a window that are bad by each objective.
fn judged(rate: f64, counts: &WindowCounts, objectives: &[Objective]) -> Window {
    let ended = &counts.ended;
    // What is younger than the limits at the end of the window may still keep them.
    let longest_ns = objectives.iter().filter_map(Objective::limit_ns).max();
    let hanging = counts.unanswered_over(longest_ns.unwrap_or(u64::MAX));
    let missing = counts.skipped.max(hanging);
    let requests = ended.ended() + missing;
    let sustained = ended.answered() as f64 >= SUSTAINED * counts.due as f64;
    let bad = |it: &Objective| match sustained {
        true => it.bad(ended) + missing,
        false => requests,
    };
    Window {
        rate,
        requests,
        bad: objectives.iter().map(bad).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tally::Tally;
    use crate::plan::Spread;
    use crate::workload::Ending;

    fn judged_alone(tally: &Tally, objectives: &[Objective]) -> Window {
        judged(
            50.0,
            &WindowCounts::of(vec![tally.clone()], 0.0),
            objectives,
        )
    }

    #[test]
    fn a_limit_that_is_too_long_for_the_duration_is_asked_after_where_it_has_no_unit() {
        let refused = |objectives: &[&str]| {
            let asked = RateSearch {
                objectives: objectives.iter().map(|it| it.parse().unwrap()).collect(),
                rate: None,
                spread: Spread::Poisson,
                backlog_max: 1,
                warm_up_ns: 0,
                duration_ns: 10_000_000_000,
            };
            window_ns(&asked).unwrap_err().to_string()
        };
        let said = refused(&["p99=2", "p50=1s"]);
        assert!(
            said.contains("p99=2 is 2.00 s; did you mean p99=2ms? In 10.0 s there"),
            "{said}"
        );
        let said = refused(&["p99=2s", "p50=1"]);
        assert!(!said.contains("did you mean"), "{said}");
    }

    #[test]
    fn skipped_requests_and_rates_that_are_not_reached_are_bad() {
        let objectives = ["p99=2ms".parse().unwrap()];
        let mut tally = Tally::new(1, 1);
        for _ in 0..95 {
            tally.end(0, 0, 1_000_000, Ending::Ok);
        }
        tally.end(0, 0, 9_000_000, Ending::Ok);
        (tally.due, tally.skipped) = (100, 4);
        let window = judged_alone(&tally, &objectives);
        assert_eq!((window.requests, &window.bad[..]), (100, &[5][..]));
        // Four more have no answer, and one of them is younger than 2 ms.
        tally.due = 104;
        tally.add_age(0, 9_000_000, 4);
        tally.add_age(0, 5_000_000, 3);
        tally.add_age(0, 1_000_000, 1);
        let window = judged_alone(&tally, &objectives);
        assert_eq!((window.requests, &window.bad[..]), (103, &[8][..]));
        tally.due = 200;
        let window = judged_alone(&tally, &objectives);
        assert_eq!(window.bad, [window.requests]);
    }
}
