//! `/proc/PID/task/TID/schedstat`: three numbers in one short line, the cheapest reading of a
//! thread. A running thread's figures are as of its last tick; a zombie's are final.

use crate::{ProbeError, Result};

/// One thread's time on and off the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time runnable, waiting for a CPU.
    pub run_queue_ns: u64,
    /// Times put on a CPU.
    pub slices: u64,
}

/// Parses the file's text.
pub fn parse(text: &str) -> Result<Schedstat> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Ok(cpu_ns)), Some(Ok(run_queue_ns)), Some(Ok(slices))) => Ok(Schedstat {
            cpu_ns,
            run_queue_ns,
            slices,
        }),
        _ => Err(ProbeError::syntax("schedstat", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line() {
        let expected = Schedstat {
            cpu_ns: 19_383_836,
            run_queue_ns: 5_433_294,
            slices: 51,
        };
        assert_eq!(parse("19383836 5433294 51\n").unwrap(), expected);
    }

    #[test]
    fn refuses_a_torn_line() {
        assert!(parse("19383836 5433294").is_err());
        assert!(parse("").is_err());
    }
}
