//! The rate of an open loop, as it is asked for: `20000` a second, or `50%` of the greatest.

use std::str::FromStr;

use super::{Pace, RATE_MAX, RATE_MIN, Spread};
use crate::units::parse_rate;

/// The rate that a user has written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AskedRate {
    /// Transactions a second.
    PerSecond(f64),
    /// Relative to the rate that the same sessions reach in a closed loop.
    OfGreatest(f64),
}

/// Ten times the greatest rate: more is a slip.
const SHARE_MAX: f64 = 10.0;

impl FromStr for AskedRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return parse_rate(text).map(Self::PerSecond);
        };
        let share = percent.parse::<f64>().ok().map(|it| it / 100.0);
        share
            .filter(|it| *it > 0.0 && *it <= SHARE_MAX)
            .map(Self::OfGreatest)
            .ok_or_else(|| "a share of the greatest rate like 50%, above 0 %".to_owned())
    }
}

/// An open loop at a share of the greatest rate, which a closed loop of the same sessions shows before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareOfGreatest {
    pub share: f64,
    pub spread: Spread,
    pub backlog_max: usize,
    /// How long the closed loop is measured.
    pub closed_ns: u64,
}

impl ShareOfGreatest {
    /// The open loop, once the greatest rate is known.
    pub fn pace(&self, greatest_per_second: f64) -> Pace {
        Pace::Open {
            rate_per_second: (self.share * greatest_per_second).clamp(RATE_MIN, RATE_MAX),
            spread: self.spread,
            backlog_max: self.backlog_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_or_a_share_of_the_greatest() {
        assert_eq!("20000".parse(), Ok(AskedRate::PerSecond(20_000.0)));
        assert_eq!("50%".parse(), Ok(AskedRate::OfGreatest(0.5)));
        assert_eq!("120%".parse(), Ok(AskedRate::OfGreatest(1.2)));
        for text in ["0%", "-5%", "%", "nan%", "1001%", "half%"] {
            let said = text.parse::<AskedRate>().unwrap_err();
            assert!(said.contains("like 50%"), "{text}: {said}");
        }
        assert!("40k".parse::<AskedRate>().is_err());
    }
}
