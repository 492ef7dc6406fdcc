//! Memory mappings, which threads need too: see `proc(5)`.

use std::fmt;
use std::fs;
use std::io;

use crate::error::Error;
use crate::limits::read_number;

/// The memory mappings of this process: each thread needs a few, and `max_map_count` limits them.
#[derive(Debug, Clone)]
pub struct Mappings {
    limit: usize,
    /// The last count of mappings, and the number of threads at that time.
    counted: (usize, usize),
    per_thread: usize,
}

impl Mappings {
    /// Mappings reserved for everything but new threads.
    const RESERVE: usize = 256;
    /// Stack, signal stack, and a guard page for each.
    const PER_THREAD_MAX: usize = 4;
    /// Threads that start between two counts: a count takes time in proportion to the mappings.
    const THREADS_PER_COUNT: usize = 2048;

    pub fn read() -> Result<Self, Error> {
        let path = "/proc/sys/vm/max_map_count";
        let limit = read_number(path)
            .ok_or_else(|| io::Error::other("not a number"))
            .map_err(Error::io(|| format!("read {path}")))?;
        Ok(Self {
            limit: limit as usize,
            counted: (count_mappings()?, 0),
            per_thread: Self::PER_THREAD_MAX,
        })
    }

    /// Whether one more thread than `threads` can map its stacks.
    pub fn have_room_for(&mut self, threads: usize) -> Result<bool, Error> {
        if self.room(threads) && threads - self.counted.1 < Self::THREADS_PER_COUNT {
            return Ok(true);
        }
        if threads > self.counted.1 {
            self.counted = (count_mappings()?, threads);
        }
        Ok(self.room(threads))
    }

    fn room(&self, threads: usize) -> bool {
        self.estimate(threads + 1) + Self::RESERVE <= self.limit
    }

    fn estimate(&self, threads: usize) -> usize {
        self.counted.0 + (threads - self.counted.1) * self.per_thread
    }
}

impl fmt::Display for Mappings {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(
            out,
            "max_map_count ({} of {} mappings used, the next thread might abort the program)",
            self.counted.0, self.limit
        )
    }
}

fn count_mappings() -> Result<usize, Error> {
    let path = "/proc/self/maps";
    let maps = fs::read(path).map_err(Error::io(|| format!("read {path}")))?;
    Ok(maps.iter().filter(|byte| **byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_threads_ends_before_the_limit() {
        let counted = count_mappings().unwrap();
        let mut mappings = Mappings {
            limit: counted + Mappings::RESERVE + 40,
            counted: (counted, 0),
            per_thread: Mappings::PER_THREAD_MAX,
        };
        assert!(mappings.have_room_for(9).unwrap());
        mappings.limit -= 20;
        mappings.counted.1 = 9;
        mappings.counted.0 += 36;
        assert!(!mappings.have_room_for(9).unwrap());
    }
}
