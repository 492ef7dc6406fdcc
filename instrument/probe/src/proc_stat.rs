//! `/proc/stat`: CPU time since boot, summed and of each CPU, in ticks of `USER_HZ`.

use std::collections::BTreeMap;

use crate::{ProbeError, Result};

/// Of one CPU, or sums over all of them, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Neither idle nor waiting for I/O nor stolen. Guests are part of user time already.
    pub busy: u64,
    /// Idle or idle with I/O outstanding.
    pub idle: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// The sums over all CPUs in the file's text.
pub fn parse(text: &str) -> Result<CpuTicks> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .ok_or_else(|| ProbeError::syntax("/proc/stat", text))?;
    ticks(line, text)
}

/// Each online CPU in the file's text, by its number.
pub fn parse_each(text: &str) -> Result<BTreeMap<u32, CpuTicks>> {
    text.lines()
        .filter_map(|line| line.strip_prefix("cpu")?.split_once(' '))
        .filter(|(number, _)| !number.is_empty())
        .map(|(number, fields)| {
            let cpu = number
                .parse()
                .map_err(|_| ProbeError::syntax("/proc/stat", text))?;
            Ok((cpu, ticks(fields, text)?))
        })
        .collect()
}

/// The numbers after the name of a line.
fn ticks(line: &str, text: &str) -> Result<CpuTicks> {
    let wrong = || ProbeError::syntax("/proc/stat", text);
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .map(|field| field.parse().map_err(|_| wrong()))
        .collect::<Result<_>>()?;
    // user nice system idle iowait irq softirq steal guest guest_nice
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else {
        return Err(wrong());
    };
    Ok(CpuTicks {
        busy: user + nice + system + irq + softirq,
        idle: idle + iowait,
        steal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  66843 12 6409 41387 1377 0 131 27 0 0\n\
        cpu0 33461 6 3177 20774 681 0 110 13 0 0\n\
        cpu1 33382 6 3232 20613 696 0 21 14 0 0\n\
        intr 1466424 0 0 0 0\nctxt 2283922\nbtime 1795250462\nprocesses 16461\n";

    #[test]
    fn adds_what_belongs_together() {
        let expected = CpuTicks {
            busy: 66843 + 12 + 6409 + 131,
            idle: 41387 + 1377,
            steal: 27,
        };
        assert_eq!(parse(TEXT).unwrap(), expected);
    }

    #[test]
    fn tells_the_cpus_apart() {
        let each = parse_each(TEXT).unwrap();
        assert_eq!(each.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(each[&1].busy, 33382 + 6 + 3232 + 21);
        assert_eq!(each[&0].steal, 13);
        let sum: u64 = each.values().map(|ticks| ticks.busy).sum();
        assert_eq!(sum, parse(TEXT).unwrap().busy);
        assert!(parse_each("cpu  1 2\ncpux 1 2 3 4 5 6 7 8\n").is_err());
    }

    #[test]
    fn refuses_a_file_without_the_sum() {
        assert!(parse("cpu0 1 2 3 4 5 6 7 8").is_err());
        assert!(parse("cpu  1 2 3").is_err());
    }
}
