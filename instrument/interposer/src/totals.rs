//! How often the meant locks were held, and for how long; threads count in lines of their own.

use std::cell::Cell;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::system;

/// Threads share these lines, so that those at once seldom share one.
const LINES: usize = 128;

/// Names the descriptor of the report channel.
const REPORT_VARIABLE: &str = "CONCURVE_REPORT";

/// A line of a cache, and that beside it, which is fetched with it.
#[repr(align(128))]
struct Line {
    holds: AtomicU64,
    ticks: AtomicU64,
}

/// The sums over all threads.
pub struct Totals {
    lines: [Line; LINES],
    begun_ticks: AtomicU64,
    begun_ns: AtomicU64,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Totals {
    pub const fn new() -> Self {
        Self {
            lines: [const {
                Line {
                    holds: AtomicU64::new(0),
                    ticks: AtomicU64::new(0),
                }
            }; LINES],
            begun_ticks: AtomicU64::new(0),
            begun_ns: AtomicU64::new(0),
        }
    }

    /// From now on ticks are counted, to know how long one is.
    pub fn begin(&self) {
        self.begun_ns.store(system::now_ns(), Ordering::Relaxed);
        self.begun_ticks.store(system::ticks(), Ordering::Relaxed);
    }

    /// A lock was held for this time.
    pub fn add(&self, ticks: u64) {
        let mut own = OWN.get();
        if own == usize::MAX {
            own = THREADS.fetch_add(1, Ordering::Relaxed) % LINES;
            OWN.set(own);
        }
        self.lines[own].holds.fetch_add(1, Ordering::Relaxed);
        self.lines[own].ticks.fetch_add(ticks, Ordering::Relaxed);
    }

    /// Counts from 0 again.
    pub fn clear(&self) {
        for line in &self.lines {
            line.holds.store(0, Ordering::Relaxed);
            line.ticks.store(0, Ordering::Relaxed);
        }
    }

    /// Holds, and their time in seconds.
    fn sums(&self) -> (u64, f64) {
        let sum = |of: fn(&Line) -> &AtomicU64| {
            let lines = self.lines.iter();
            lines.map(|it| of(it).load(Ordering::Relaxed)).sum::<u64>()
        };
        let ticks = system::ticks().saturating_sub(self.begun_ticks.load(Ordering::Relaxed));
        let ns = system::now_ns().saturating_sub(self.begun_ns.load(Ordering::Relaxed));
        let tick_s = ns as f64 / 1e9 / ticks.max(1) as f64;
        (sum(|it| &it.holds), sum(|it| &it.ticks) as f64 * tick_s)
    }

    /// Writes the sums to the report channel.
    pub fn report(&self, channel: &Channel) {
        let (holds, seconds) = self.sums();
        let worker = std::process::id();
        let lines = format!(
            "{{\"indicator\":\"perturbed_holds\",\"value\":{holds},\"worker\":\"{worker}\"}}\n\
             {{\"indicator\":\"perturbed_held_seconds\",\"value\":{seconds:.9},\"unit\":\"s\",\
             \"worker\":\"{worker}\"}}\n"
        );
        channel.write(&lines);
    }
}

/// The report channel, as it was when the process began.
pub struct Channel {
    path: Option<PathBuf>,
    file: Option<(u64, u64)>,
}

impl Channel {
    /// The one that the environment names.
    pub fn from_environment() -> Self {
        let number = std::env::var(REPORT_VARIABLE).ok();
        let number = number.and_then(|text| text.parse::<u32>().ok());
        let path = number.map(|it| PathBuf::from(format!("/proc/self/fd/{it}")));
        let file = path.as_deref().and_then(identity);
        Self { path, file }
    }

    #[cfg(test)]
    pub fn none() -> Self {
        Self {
            path: None,
            file: None,
        }
    }

    /// Writes in one piece. The program may have closed the descriptor, and opened something else
    /// under its number: then nothing is written.
    fn write(&self, text: &str) {
        let Some(path) = &self.path else { return };
        if self.file.is_none() || identity(path) != self.file {
            return;
        }
        let opened = std::fs::OpenOptions::new().append(true).open(path);
        if let Ok(mut channel) = opened {
            // A trial that has ended does not listen any more.
            let _ = channel.write_all(text.as_bytes());
        }
    }
}

fn identity(path: &std::path::Path) -> Option<(u64, u64)> {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_of_all_threads() {
        let totals = Totals::new();
        totals.begin();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| totals.add(7)));
            }
        });
        let (holds, seconds) = totals.sums();
        assert_eq!(holds, 400);
        assert!(seconds > 0.0);
        totals.clear();
        assert_eq!(totals.sums(), (0, 0.0));
    }

    #[test]
    fn nothing_is_written_where_the_descriptor_is_something_else() {
        let folder = std::env::temp_dir().join(format!("concurve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (ours, others) = (folder.join("ours"), folder.join("others"));
        std::fs::write(&ours, "").unwrap();
        std::fs::write(&others, "").unwrap();
        let write = |path: &PathBuf, file| {
            let channel = Channel {
                path: Some(path.clone()),
                file,
            };
            channel.write("line\n");
            std::fs::read_to_string(path).unwrap()
        };
        assert_eq!(write(&ours, identity(&ours)), "line\n");
        assert_eq!(write(&others, identity(&ours)), "");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
