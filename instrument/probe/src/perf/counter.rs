//! Migrations and exact CPU time of a tree, and of each of its threads at its exit.
//!
//! A counter is on a CPU exactly while its task is, so the counter of migrations gives exact CPU
//! time as well.
//!
//! The counts of the whole tree are those of other events than the counts of its threads. The latter have
//! `inherit_stat`: when the kernel switches from one thread of the tree to another, it swaps the counts of their
//! events, so that each thread keeps its own. Who adds them up meanwhile may have the counts of one thread twice and
//! those of the other not at all. Without `inherit_stat` nothing is swapped, and each event only grows.

use std::fs::File;
use std::io::Read;

use super::event::{self, Event};
use super::ring::{RECORD_BYTES, Ring, u32_at, u64_at};
use crate::{ProbeError, Result};

const PERF_RECORD_READ: u32 = 8;
/// Capacity for 2048 exits between two readings, on each CPU.
const RING_PAGES: usize = 16;

/// Counts of a process and all that it starts afterwards, or of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Moves of a task to another CPU; none if the kernel's events may not be counted.
    pub migrations: Option<u64>,
    /// Time on a CPU.
    pub cpu_ns: u64,
}

impl Counts {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        let migrations = self.migrations.zip(other.migrations);
        Self {
            migrations: migrations.map(|(one, other)| one + other),
            cpu_ns: self.cpu_ns + other.cpu_ns,
        }
    }
}

/// What one thread had counted on one CPU when it exited. Its counts are the sum over as many
/// of these as there are CPUs; the tree's first thread writes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRead {
    pub pid: u32,
    pub tid: u32,
    /// Which of the CPUs, counted from 0 in the list of those online.
    pub cpu_index: usize,
    pub counts: Counts,
}

/// Counters attached to a process tree.
#[derive(Debug)]
pub struct TreeCounter {
    /// The events that have the counts of the whole tree.
    totals: Vec<File>,
    rings: Vec<Ring>,
    /// Those that have the counts of each thread, which they write to the rings; kept open, since closing them ends
    /// the counting.
    _counters: Vec<File>,
    /// Events of the kernel may be counted; migrations are such.
    kernel: bool,
}

impl TreeCounter {
    /// Why an unprivileged counter has no migrations.
    pub const NO_MIGRATIONS: &str = "migrations are events of the kernel: counting them needs \
                                     CAP_PERFMON or kernel.perf_event_paranoid ≤ 1";

    /// Without rings (too little lockable memory, or no counters of threads) the
    /// sums are there all the same.
    pub(super) fn new(counters: Vec<File>, totals: Vec<File>, kernel: bool) -> Self {
        let rings = counters
            .iter()
            .map(|counter| Ring::map(counter, RING_PAGES));
        Self {
            rings: rings.collect::<Result<Vec<_>>>().unwrap_or_default(),
            totals,
            _counters: counters,
            kernel,
        }
    }

    /// The tree's counts so far.
    pub fn read(&mut self) -> Result<Counts> {
        let mut sum = Counts {
            migrations: self.kernel.then_some(0),
            cpu_ns: 0,
        };
        for total in &mut self.totals {
            let mut bytes = [0; 16];
            total
                .read_exact(&mut bytes)
                .map_err(|error| ProbeError::system("read a perf counter", error))?;
            sum = sum.plus(counts(&bytes, self.kernel));
        }
        Ok(sum)
    }

    /// How many reads a thread's exit gives; 0: none come.
    pub fn reads_per_thread(&self) -> usize {
        self.rings.len()
    }

    /// Reads what exiting threads have written. A thread may exit on another CPU than the ring's, and
    /// the kernel does not serialise two writers: sometimes one record overwrites another, or its place
    /// keeps old content. So callers must check each read for plausibility.
    pub fn take_reads(&mut self) -> Vec<ThreadRead> {
        let mut reads = Vec::new();
        for (cpu_index, ring) in self.rings.iter_mut().enumerate() {
            ring.take(|kind, record| {
                if kind == PERF_RECORD_READ {
                    reads.push(parse_read(record, cpu_index, self.kernel));
                }
            });
        }
        reads
    }
}

/// On one CPU, of each thread; or with −1 on any, and then of the whole tree alone.
pub(super) fn open(pid: u32, cpu: i32, kernel: bool) -> Result<File> {
    let mut flags = 0;
    if !kernel {
        flags |= event::FLAG_EXCLUDE_KERNEL;
    }
    if cpu >= 0 {
        flags |= event::FLAG_INHERIT_STAT;
    }
    let event = Event {
        config: event::CPU_MIGRATIONS,
        read_format: event::FORMAT_TOTAL_TIME_RUNNING,
        flags,
        ..Event::default()
    };
    event::open(pid, cpu, event)
}

/// Header, process, thread, count, time running.
fn parse_read(record: &[u8; RECORD_BYTES], cpu_index: usize, kernel: bool) -> ThreadRead {
    ThreadRead {
        pid: u32_at(record, 8),
        tid: u32_at(record, 12),
        cpu_index,
        counts: counts(&record[16..], kernel),
    }
}

fn counts(bytes: &[u8], kernel: bool) -> Counts {
    Counts {
        migrations: kernel.then(|| u64_at(bytes, 0)),
        cpu_ns: u64_at(bytes, 8),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use concurve_clock as clock;
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    use super::*;
    use crate::proc_fs::ProcFs;

    #[test]
    fn a_read_record_of_a_real_ring() {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = 8;
        bytes[6] = 32;
        bytes[8..12].copy_from_slice(&3802u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&3886u32.to_le_bytes());
        bytes[16] = 3;
        bytes[24..32].copy_from_slice(&1_234_567u64.to_le_bytes());
        let mut expected = ThreadRead {
            pid: 3802,
            tid: 3886,
            cpu_index: 1,
            counts: Counts {
                migrations: Some(3),
                cpu_ns: 1_234_567,
            },
        };
        assert_eq!(parse_read(&bytes, 1, true), expected);
        expected.counts.migrations = None;
        assert_eq!(parse_read(&bytes, 1, false), expected);
    }

    /// Where the kernel swaps counts between threads, a sum over them has some twice or not at all: with the events of
    /// the threads, one reading in a thousand was wrong here.
    #[test]
    fn readings_of_threads_that_switch_all_the_time_only_grow() {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "read go; exec \"$0\" --ignored --exact \"$1\" >&2"])
            .arg(program)
            .arg("perf::counter::tests::two_threads_that_switch")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let cpus = ProcFs::default().cpus_online().unwrap();
        let counter = crate::perf::attach(child.id(), &cpus).counter;
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "go").unwrap();
        if let Ok(mut counter) = counter {
            let mut last = (clock::monotonic_ns(), counter.read().unwrap());
            for _ in 0..100_000 {
                let begun_ns = clock::monotonic_ns();
                let now = counter.read().unwrap();
                let (last_ns, before) = last;
                let between_ns = (clock::monotonic_ns() - last_ns) * cpus.len() as u64;
                let grown = now.cpu_ns.checked_sub(before.cpu_ns);
                // A tick is no jump: a count twice is that of a thread that has used 50 ms at least.
                assert!(
                    grown.is_some_and(|ns| ns <= between_ns + 10_000_000),
                    "{before:?} {now:?}"
                );
                assert!(now.migrations >= before.migrations, "{before:?} {now:?}");
                last = (begun_ns, now);
            }
            assert!(last.1.cpu_ns > 0);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What the test above starts: one thread has used much, and two take turns on one CPU until they are killed.
    #[test]
    #[ignore = "a program of another test"]
    fn two_threads_that_switch() {
        let mut one = CpuSet::new();
        one.set(ProcFs::default().cpus_online().unwrap()[0] as usize)
            .unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        let begun_ns = clock::thread_cpu_ns();
        while clock::thread_cpu_ns() - begun_ns < 50_000_000 {}
        let (mut here, mut there) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut byte = [0];
            while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
        });
        let mut byte = [0];
        while here.write_all(&byte).is_ok() && here.read_exact(&mut byte).is_ok() {}
    }
}
