//! What a client thread counts, and when it tells of it.

use super::Client;
use crate::crew::Said;
use crate::tally::Spent;
use crate::usage::thread_usage_ns;

impl Client<'_> {
    /// Begins measuring, and tells the counts of an interval, when it is time.
    pub(super) fn turn(&mut self, now: u64, say: &mut dyn FnMut(Said)) {
        if !self.measuring && now >= self.task.measure_ns() {
            self.measuring = true;
            self.tally.begin_ns = self.task.measure_ns();
            self.before = self.spent();
            if let Some(interval_ns) = self.task.interval_ns {
                self.interval_end_ns = self.task.measure_ns() + interval_ns;
            }
        }
        if let Some(interval_ns) = self.task.interval_ns
            && now >= self.interval_end_ns
        {
            self.tell_interval(interval_ns, say);
            let behind_ns = now - self.interval_end_ns;
            self.interval_end_ns += (behind_ns / interval_ns + 1) * interval_ns;
        }
    }

    pub(super) fn tell_interval(&mut self, interval_ns: u64, say: &mut dyn FnMut(Said)) {
        let begin_ns = self.interval_end_ns - interval_ns;
        let number = (begin_ns - self.task.measure_ns()) / interval_ns;
        say(Said::Interval(self.tally.take_interval(number)));
    }

    pub(super) fn finish(&mut self, now: u64, say: &mut dyn FnMut(Said)) {
        self.tally.in_doubt = self
            .sessions
            .iter()
            .map(|it| u64::from(it.under_way()))
            .sum();
        if !self.measuring {
            // Stopped before anything was measured.
            return;
        }
        self.tally.spent = self.spent().since(&self.before);
        self.tally.end_ns = now.min(self.task.end_ns());
        if let Some(interval_ns) = self.task.interval_ns {
            self.tell_interval(interval_ns, say);
        }
    }

    /// CPU time and bytes so far.
    pub(super) fn spent(&self) -> Spent {
        let (user_ns, system_ns) = thread_usage_ns();
        let connections = || self.sessions.iter().map(|it| &it.connection);
        Spent {
            user_ns,
            system_ns,
            bytes_sent: connections().map(|it| it.bytes_sent).sum(),
            bytes_received: connections().map(|it| it.bytes_received).sum(),
        }
    }
}
