//! Objectives: `p99=2ms`, `errors=0.1%`.

use std::str::FromStr;

use crate::counts::tally::KindTally;
use crate::units::{parse_positive_time, time};

/// At most a share of the requests may be bad.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// The text of the user.
    pub text: String,
    pub bad: Bad,
    /// Share of the requests that may be bad, above 0 and below 1.
    pub share: f64,
}

/// Which requests are bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// Answered later than this after they were due, or never.
    Slower { ns: u64 },
    /// Answered with an error, or lost with their connection.
    Error,
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "an objective like p99=2ms, p99.9=10ms or errors=0.1%";
        let (name, value) = text.split_once('=').ok_or(FORMS)?;
        let objective = |bad, share| Self {
            text: text.to_owned(),
            bad,
            share,
        };
        if name == "errors" {
            let percent = value
                .strip_suffix('%')
                .and_then(|it| it.parse::<f64>().ok());
            let share = percent.map(|it| it / 100.0);
            let share = share.filter(|it| *it > 0.0 && *it < 1.0);
            let share = share.ok_or("errors=0.1%: a share above 0 % and below 100 %")?;
            return Ok(objective(Bad::Error, share));
        }
        let percentile = name.strip_prefix('p').and_then(|it| it.parse::<f64>().ok());
        let percentile = percentile.filter(|it| *it > 0.0 && *it < 100.0);
        let percentile = percentile.ok_or(FORMS)?;
        let ns = parse_positive_time(value).map_err(|why| format!("{text}: {why}"))?;
        let share = 1.0 - percentile / 100.0;
        Ok(objective(Bad::Slower { ns }, share))
    }
}

impl Objective {
    /// How many of the requests that ended were bad.
    pub fn bad(&self, ended: &KindTally) -> u64 {
        match self.bad {
            Bad::Error => ended.failed(),
            Bad::Slower { ns } => {
                // The histogram counts the whole bucket of the limit, which is exact to three
                // digits. A request that was never answered is slower than any limit.
                let within = ended.latency_ns.count_between(0, ns);
                ended.ended() - within
            }
        }
    }

    /// What else may be meant by a limit without a unit, which counts as seconds.
    pub fn other_unit(&self) -> Option<String> {
        let ns = self.limit_ns()?;
        let text = &self.text;
        let is_bare = text.ends_with(|it: char| !it.is_alphabetic());
        is_bare.then(|| format!("{text} is {}; did you mean {text}ms?", time(ns as f64)))
    }

    /// The limit on latency, if this is one.
    pub fn limit_ns(&self) -> Option<u64> {
        match self.bad {
            Bad::Slower { ns } => Some(ns),
            Bad::Error => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tally::Tally;
    use crate::workload::Ending;

    #[test]
    fn what_may_be_written() {
        let p99: Objective = "p99=2ms".parse().unwrap();
        assert_eq!(p99.bad, Bad::Slower { ns: 2_000_000 });
        assert!((p99.share - 0.01).abs() < 1e-12);
        let errors: Objective = "errors=0.1%".parse().unwrap();
        assert!(errors.bad == Bad::Error && (errors.share - 0.001).abs() < 1e-12);
        for text in [
            "p99",
            "p100=1ms",
            "p99=0",
            "p99=x",
            "errors=0%",
            "errors=1",
            "q=1ms",
        ] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_without_a_unit_may_be_meant_in_milliseconds() {
        let other = |text: &str| text.parse::<Objective>().unwrap().other_unit();
        let said = other("p99=2").unwrap();
        assert_eq!(said, "p99=2 is 2.00 s; did you mean p99=2ms?");
        for text in ["p99=2s", "p99=2ms", "errors=1%"] {
            assert_eq!(other(text), None, "{text}");
        }
    }

    #[test]
    fn bad_requests_are_counted() {
        let mut tally = Tally::new(1, 1);
        for ns in [100_000, 1_900_000, 2_100_000, 5_000_000] {
            tally.end(0, 0, ns, Ending::Ok);
        }
        tally.end(0, 0, 100_000, Ending::Error("ERR".to_owned()));
        tally.lose(0, "connection lost".to_owned());
        let bad = |text: &str| text.parse::<Objective>().unwrap().bad(&tally.kinds[0]);
        assert_eq!((bad("p99=2ms"), bad("errors=1%")), (3, 2));
    }
}
