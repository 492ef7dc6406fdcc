//! How a thread without work waits: the dial `--idle`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::monitor::meter::{Meter, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Sleeps at once, until it is woken.
    Block,
    /// Looks for work this long before it sleeps.
    Spin(Duration),
}

/// Longest spin: a thread that never sleeps would starve the others on a small machine.
const SPIN_US_MAX: u64 = 1_000_000;

impl FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "block" {
            return Ok(Idle::Block);
        }
        let us = text.strip_prefix("spin:").and_then(|it| it.parse().ok());
        match us {
            Some(us @ 1..=SPIN_US_MAX) => Ok(Idle::Spin(Duration::from_micros(us))),
            _ => Err(format!(
                "'{text}' is neither block nor spin:1 … spin:{SPIN_US_MAX} (µs)"
            )),
        }
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Idle::Block => out.write_str("block"),
            Idle::Spin(time) => write!(out, "spin:{}", time.as_micros()),
        }
    }
}

impl Idle {
    /// Waits for work, and tells the meter. `seek` says whether there is some: with `false` at once,
    /// with `true` it sleeps for it.
    pub fn wait(self, meter: &Meter, mut seek: impl FnMut(bool) -> bool) {
        if let Idle::Spin(time) = self
            && meter.during(State::Spinning, || spin(time, || seek(false)))
        {
            return;
        }
        meter.during(State::Asleep, || seek(true));
    }
}

/// Looks for work until there is some, or it is time to sleep. Whether there is some.
fn spin(time: Duration, mut look: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < time {
        if look() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
