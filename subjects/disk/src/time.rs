//! Simulated time: whole nanoseconds since the start.

/// A time, or a duration, in ns.
pub type Time = u64;

pub const MICROSECOND: Time = 1_000;
pub const MILLISECOND: Time = 1_000_000;
pub const SECOND: Time = 1_000_000_000;

/// A duration from (fractions of) milliseconds.
pub fn milliseconds(value: f64) -> Time {
    (value * MILLISECOND as f64).round() as Time
}
