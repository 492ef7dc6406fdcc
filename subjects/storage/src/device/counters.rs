//! `/sys/block/DEVICE/stat` (the kernel's `Documentation/block/stat.rst`).

/// The length of a sector in this file, independent of the device.
const SECTOR_BYTES: u64 = 512;

/// The counters of a device since it was added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Completed requests, after merging.
    pub reads: u64,
    pub read_merges: u64,
    pub read_bytes: u64,
    /// Sum of the times of all requests.
    pub read_ms: u64,
    pub writes: u64,
    pub write_merges: u64,
    pub write_bytes: u64,
    pub write_ms: u64,
    /// Time with a request in flight.
    pub busy_ms: u64,
    /// Sum of the times of all requests, also of those in flight.
    pub queue_ms: u64,
    /// Flushes of the device's cache; 0 before Linux 5.5.
    pub flushes: u64,
}

impl Counters {
    /// `None` if the text is no such file.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(|it| it.parse().ok()).collect();
        let numbers = numbers.filter(|it| it.len() >= 11)?;
        Some(Self {
            reads: numbers[0],
            read_merges: numbers[1],
            read_bytes: numbers[2] * SECTOR_BYTES,
            read_ms: numbers[3],
            writes: numbers[4],
            write_merges: numbers[5],
            write_bytes: numbers[6] * SECTOR_BYTES,
            write_ms: numbers[7],
            busy_ms: numbers[9],
            queue_ms: numbers[10],
            flushes: numbers.get(15).copied().unwrap_or(0),
        })
    }

    /// The counts since an earlier reading. The kernel prints times in 32 bits: they wrap around
    /// after 50 days, or with 32 requests in flight after a day and a half.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_merges: self.read_merges - earlier.read_merges,
            read_bytes: self.read_bytes - earlier.read_bytes,
            read_ms: ms(self.read_ms, earlier.read_ms),
            writes: self.writes - earlier.writes,
            write_merges: self.write_merges - earlier.write_merges,
            write_bytes: self.write_bytes - earlier.write_bytes,
            write_ms: ms(self.write_ms, earlier.write_ms),
            busy_ms: ms(self.busy_ms, earlier.busy_ms),
            queue_ms: ms(self.queue_ms, earlier.queue_ms),
            flushes: self.flushes - earlier.flushes,
        }
    }
}

fn ms(later: u64, earlier: u64) -> u64 {
    u64::from((later as u32).wrapping_sub(earlier as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str =
        "  1120  31  17900  1190  880  45  10400  3310  0  700  4600  0 0 0 0  12  9\n";
    const LATER: &str =
        "  1220  36  19948  1290  980  55  12448  3510  2  900  4900  0 0 0 0  15  9\n";

    #[test]
    fn counts_between_two_readings() {
        let before = Counters::parse(EARLIER).unwrap();
        let expected = Counters {
            reads: 100,
            read_merges: 5,
            read_bytes: 1 << 20,
            read_ms: 100,
            writes: 100,
            write_merges: 10,
            write_bytes: 1 << 20,
            write_ms: 200,
            busy_ms: 200,
            queue_ms: 300,
            flushes: 3,
        };
        assert_eq!(Counters::parse(LATER).unwrap().since(&before), expected);
    }

    #[test]
    fn times_wrap_around() {
        let before = Counters::parse("1 0 0 4294967290 0 0 0 0 0 4294967295 4294967000").unwrap();
        let after = Counters::parse("2 0 0 4 0 0 0 0 0 9 704").unwrap();
        let counted = after.since(&before);
        assert_eq!(
            (counted.read_ms, counted.busy_ms, counted.queue_ms),
            (10, 10, 1000)
        );
    }

    #[test]
    fn older_kernels_count_no_flushes() {
        let short = "1 2 3 4 5 6 7 8 9 10 11";
        assert_eq!(Counters::parse(short).unwrap().flushes, 0);
        assert_eq!(Counters::parse("1 2 3"), None);
        assert_eq!(Counters::parse("none"), None);
    }
}
