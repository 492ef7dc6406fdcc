//! The line that shows how a run goes, on a terminal. It is drawn by the main thread, once a
//! second, from counts that the client threads hand over anyway.

use std::io::{IsTerminal, Write, stderr};

use crate::numbers::{count, time};
use crate::plan::{End, Plan};
use crate::tally::{Interval, KindTally};

/// A line on the terminal that is drawn over its last state, and cleared in the end.
#[derive(Debug, Default)]
pub struct Line {
    drawn: bool,
}

/// How a run goes.
#[derive(Debug)]
pub struct Progress {
    interval_seconds: f64,
    end: End,
    line: Line,
}

impl Line {
    /// A line, if there is a terminal to show it on.
    pub fn on_terminal() -> Option<Self> {
        stderr().is_terminal().then(Self::default)
    }

    /// Shows a text in place of the last one.
    pub fn note(&mut self, text: &str) {
        let _ = write!(stderr(), "\r\x1b[K{text}");
        let _ = stderr().flush();
        self.drawn = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Progress {
    /// A progress line, if there is a terminal to show it on.
    pub fn on_terminal(plan: &Plan, interval_ns: u64) -> Option<Self> {
        Some(Self {
            interval_seconds: interval_ns as f64 / 1e9,
            end: plan.end,
            line: Line::on_terminal()?,
        })
    }

    /// Shows the counts of an interval.
    pub fn interval(&mut self, interval: &Interval) {
        let begins_ns = interval.number as f64 * self.interval_seconds * 1e9;
        if matches!(self.end, End::After { ns } if begins_ns >= ns as f64) {
            return; // the last answers: they say nothing of a rate
        }
        let mut all = KindTally::default();
        for kind in &interval.kinds {
            all.add(kind);
        }
        let seconds = (interval.number + 1) as f64 * self.interval_seconds;
        let of = match self.end {
            End::After { ns } => format!(" of {:.0}", ns as f64 / 1e9),
            End::Transactions(_) => String::new(),
        };
        let rate = all.answered() as f64 / self.interval_seconds;
        let percentile = |it: f64| time(all.latency_ns.value_at_percentile(it) as f64);
        self.note(&format!(
            "{seconds:.0}{of} s  {}/s  p50 {}  p99 {}  {} errors",
            count(rate),
            percentile(50.0),
            percentile(99.0),
            count(all.failed() as f64)
        ));
    }

    /// Shows a text in place of the last line.
    pub fn note(&mut self, text: &str) {
        self.line.note(text);
    }
}
