//! What the sessions reached in a closed loop, of which the rate of an open loop is a share.

use super::tally::Tally;

/// What a closed loop has reached before the measured open loop.
#[derive(Debug)]
pub struct Greatest {
    pub rate_per_second: f64,
    pub seconds: f64,
    /// The rate of the open loop over this one.
    pub share: f64,
    /// Share of a CPU that the busiest client thread used.
    pub busiest_thread_share: f64,
    /// The sum of all workers.
    pub all: Tally,
}

impl Greatest {
    /// Adds what counts from the first transaction on, or for the whole run, to the counts of the open loop.
    pub fn add_to(&self, tallies: &mut [Tally]) {
        if let Some(first) = tallies.first_mut() {
            first.acknowledged += self.all.acknowledged;
            first.in_doubt += self.all.in_doubt;
            first.connection_ns += &self.all.connection_ns;
        }
    }
}
