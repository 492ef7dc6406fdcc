//! The line that shows how a run goes, on a terminal. It is drawn by the main thread, once a
//! second, from counts that the client threads hand over anyway.

use std::io::{IsTerminal, Write, stderr};

use crate::numbers::{count, time};
use crate::plan::{End, Plan};
use crate::tally::{Interval, KindTally};

/// Draws over its last line; clears it in the end.
#[derive(Debug)]
pub struct Progress {
    interval_seconds: f64,
    end: End,
    drawn: bool,
}

impl Progress {
    /// A progress line, if there is a terminal to show it on.
    pub fn on_terminal(plan: &Plan, interval_ns: u64) -> Option<Self> {
        stderr().is_terminal().then_some(Self {
            interval_seconds: interval_ns as f64 / 1e9,
            end: plan.end,
            drawn: false,
        })
    }

    /// Shows the counts of an interval.
    pub fn interval(&mut self, interval: &Interval) {
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

    /// Shows a line in place of the last one.
    pub fn note(&mut self, text: &str) {
        let _ = write!(stderr(), "\r\x1b[K{text}");
        let _ = stderr().flush();
        self.drawn = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
