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
    /// The sum of all workers, of both closed loops where there were two.
    pub all: Tally,
    /// Who had the CPUs meanwhile, if they were busy.
    pub machine_busy: Option<String>,
    /// Was it measured twice, since the machine was busy at first?
    pub is_repeated: bool,
}

impl Greatest {
    /// Of this one and the one before it, the one to take a share of: what was not disturbed, else the greater rate,
    /// as other programs only lower it.
    pub fn or_before(self, before: Self) -> Self {
        let is_better =
            self.machine_busy.is_none() || self.rate_per_second >= before.rate_per_second;
        let (chosen, other) = match is_better {
            true => (self, before),
            false => (before, self),
        };
        Self {
            all: Tally::merged(vec![chosen.all, other.all]),
            is_repeated: true,
            ..chosen
        }
    }

    /// Why the rate may be lower than the greatest.
    pub fn doubt(&self) -> Option<String> {
        let busy = self.machine_busy.as_ref()?;
        Some(format!(
            "the greatest rate may be higher, and so the rate asked: {busy}"
        ))
    }

    /// The warning of a share above the whole.
    pub fn excess(&self) -> Option<String> {
        (self.share > 1.0).then(|| {
            let percent = (1e4 * self.share).round() / 1e2;
            format!(
                "--rate {percent}% is above the greatest rate: requests come faster than they are answered, and wait ever longer; for latencies take a share below 100%"
            )
        })
    }

    /// Adds what counts from the first transaction on, or for the whole run, to the counts of the open loop.
    pub fn add_to(&self, tallies: &mut [Tally]) {
        if let Some(first) = tallies.first_mut() {
            first.acknowledged += self.all.acknowledged;
            first.in_doubt += self.all.in_doubt;
            first.connection_ns += &self.all.connection_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(rate_per_second: f64, machine_busy: Option<&str>) -> Greatest {
        let mut all = Tally::new(1, 1);
        all.acknowledged = 10;
        Greatest {
            rate_per_second,
            seconds: 1.0,
            share: 0.5,
            busiest_thread_share: 0.1,
            all,
            machine_busy: machine_busy.map(str::to_owned),
            is_repeated: false,
        }
    }

    #[test]
    fn a_share_above_the_greatest_rate_is_warned_of() {
        let with = |share| Greatest {
            share,
            ..reached(100.0, None)
        };
        assert_eq!(with(0.5).excess(), None);
        assert_eq!(with(1.0).excess(), None);
        let said = with(1.5).excess().unwrap();
        assert!(
            said.starts_with("--rate 150% is above the greatest rate"),
            "{said}"
        );
    }

    #[test]
    fn of_two_rates_the_undisturbed_one_counts_else_the_greater() {
        for (second, busy, rate) in [
            (90.0, None, 90.0),
            (90.0, Some("hog 40 %"), 100.0),
            (110.0, Some("hog 40 %"), 110.0),
        ] {
            let found = reached(second, busy).or_before(reached(100.0, Some("hog 50 %")));
            assert_eq!(found.rate_per_second, rate);
            assert!(found.is_repeated);
            assert_eq!(found.doubt().is_some(), busy.is_some());
            // What both have written is looked for.
            assert_eq!(found.all.acknowledged, 20);
        }
    }
}
