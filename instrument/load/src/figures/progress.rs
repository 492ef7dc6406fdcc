//! The line that shows how a run goes, on a terminal. The main thread draws it once a second, from
//! counts that the workers send anyway.

use super::UNANSWERED_SHARE_MAX;
use crate::counts::tally::{Interval, KindTally};
use crate::plan::End;
use crate::terminal_line::TerminalLine;
use crate::units::{count, time};

/// How a run goes.
#[derive(Debug)]
pub struct Progress {
    interval_seconds: f64,
    end: End,
    /// Open loop: transactions that became due, and those of them that were answered or failed.
    due: u64,
    ended: u64,
    line: TerminalLine,
}

impl Progress {
    /// A progress line, if there is a terminal to show it on.
    pub fn on_terminal(end: End, interval_ns: u64) -> Option<Self> {
        Some(Self {
            interval_seconds: interval_ns as f64 / 1e9,
            end,
            due: 0,
            ended: 0,
            line: TerminalLine::on_terminal()?,
        })
    }

    /// Shows the counts of an interval.
    pub fn interval(&mut self, interval: &Interval) {
        let begins_ns = interval.number as f64 * self.interval_seconds * 1e9;
        if matches!(self.end, End::After { ns } if begins_ns >= ns as f64) {
            return; // only the last answers, too few for a rate
        }
        let mut all = KindTally::default();
        for kind in &interval.kinds {
            all.add(kind);
        }
        let seconds = (interval.number + 1) as f64 * self.interval_seconds;
        let of = match self.end {
            End::After { ns } => format!(" of {:.0}", ns as f64 / 1e9),
            End::Transactions { .. } => String::new(),
        };
        self.due += interval.due;
        self.ended += all.ended();
        let rate = all.answered() as f64 / self.interval_seconds;
        let percentile = |it: f64| time(all.latency_ns.value_at_quantile(it) as f64);
        let latency = match all.answered() {
            0 => "no answer".to_owned(),
            _ => format!(
                "{}/s  p50 {}  p99 {}",
                count(rate),
                percentile(0.5),
                percentile(0.99)
            ),
        };
        let errors = count(all.failed() as f64);
        // Under way, waiting or skipped; a few always are.
        let unanswered = self.due.saturating_sub(self.ended) as f64;
        let unanswered = match unanswered >= UNANSWERED_SHARE_MAX * self.due as f64 {
            true if unanswered > 0.0 => format!("  {} unanswered", count(unanswered)),
            _ => String::new(),
        };
        self.show(&format!(
            "{seconds:.0}{of} s  {latency}  {errors} errors{unanswered}"
        ));
    }

    /// Shows a text in place of the last line.
    pub fn show(&mut self, text: &str) {
        self.line.show(text);
    }
}
