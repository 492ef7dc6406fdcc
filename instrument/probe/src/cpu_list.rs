//! CPU lists as the kernel writes them: `0-3,8,10-11`.

use crate::{ProbeError, Result};

/// Parses a CPU list; an empty text is an empty list.
pub fn parse(text: &str) -> Result<Vec<u32>> {
    let wrong = || ProbeError::syntax("CPU list", text);
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.parse().map_err(|_| wrong())?;
        let last: u32 = last.parse().map_err(|_| wrong())?;
        if last < first {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Writes a CPU list, ranges joined.
pub fn format(cpus: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let length = (0..)
            .zip(rest)
            .take_while(|(offset, cpu)| first + offset == **cpu)
            .count();
        let last = rest[length - 1];
        parts.push(if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        });
        rest = &rest[length..];
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(parse("0-1\n").unwrap(), [0, 1]);
        assert_eq!(parse("0,2-4,63").unwrap(), [0, 2, 3, 4, 63]);
        assert_eq!(parse("").unwrap(), [0; 0]);
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["a", "3-1", "1-", "-1", "0x3"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["", "0", "0-1", "0,2-4,63", "1,3,5"] {
            assert_eq!(format(&parse(text).unwrap()), text);
        }
    }
}
