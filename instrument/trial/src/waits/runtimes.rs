//! What the runtime of a program says of its own threads of execution: the goroutines of Go.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use concurve_clock as clock;
use concurve_probe::golang::{GoProgram, Goroutines, Parked};
use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::RuntimeRecord;

/// Most processes whose programs are looked at in a sample.
const PROCESSES_MAX: usize = 16;
const LEFT_ALONE: &str = "it changed its address space again and again, so its memory was not read: it might have \
                          had to wait for that";

/// The programs of processes: Go programs can be asked.
#[derive(Debug, Default)]
pub struct Programs {
    known: HashMap<u32, Program>,
    opening_cpu_ns: u64,
}

#[derive(Debug)]
struct Program {
    path: Option<PathBuf>,
    /// None if it is not written in Go.
    go: Option<Result<GoProgram, String>>,
}

/// What was read of the goroutines of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoReading {
    Read(Goroutines),
    /// The runtime starts or ends.
    NotYet,
    /// The process would have had to wait.
    LeftAlone,
    /// Why nothing can be read.
    Refused(String),
}

impl GoReading {
    /// The goroutines that wait at a lock.
    pub fn parked(&self) -> &[Parked] {
        match self {
            Self::Read(found) => &found.parked,
            _ => &[],
        }
    }

    /// What it tells of a server whose load has not begun, or has ended: that the program has such a runtime. Its
    /// goroutines have no work then, and would count as such.
    pub fn without_load(self) -> Self {
        match self {
            Self::Read(_) => Self::NotYet,
            other => other,
        }
    }
}

impl Programs {
    /// Reads the goroutines of those processes that have any, and of which it is not said that they might wait
    /// for who reads their memory.
    pub fn sample(
        &mut self,
        processes: impl Iterator<Item = u32>,
        may_wait: impl Fn(u32) -> bool,
        proc_fs: &ProcFs,
    ) -> Vec<(u32, GoReading)> {
        let mut readings = Vec::new();
        let mut known = HashMap::new();
        for pid in processes.take(PROCESSES_MAX) {
            let path = proc_fs.program_path(pid);
            let kept = self.known.remove(&pid).filter(|it| it.path == path);
            let is_left_alone = may_wait(pid);
            let cpu_before = clock::thread_cpu_ns();
            let mut program = kept.unwrap_or_else(|| Program {
                go: GoProgram::find(proc_fs, pid),
                path,
            });
            if let Some(Ok(go)) = &mut program.go
                && !is_left_alone
                && let Err(reason) = go.attach(proc_fs, pid)
            {
                program.go = Some(Err(reason));
            }
            self.opening_cpu_ns += clock::thread_cpu_ns() - cpu_before;
            let reading = match &mut program.go {
                Some(Ok(_)) if is_left_alone => Some(GoReading::LeftAlone),
                Some(Ok(go)) => Some(go.sample().map_or(GoReading::NotYet, GoReading::Read)),
                Some(Err(reason)) => Some(GoReading::Refused(reason.clone())),
                None => None,
            };
            readings.extend(reading.map(|it| (pid, it)));
            known.insert(pid, program);
        }
        // Processes that have ended are forgotten.
        self.known = known;
        readings
    }

    /// CPU time that went into looking at programs for the first time. It comes once, so it is no part of
    /// what samples may cost.
    pub fn take_opening_cpu_ns(&mut self) -> u64 {
        std::mem::take(&mut self.opening_cpu_ns)
    }
}

/// The readings of a role.
#[derive(Debug, Default)]
pub struct RuntimeTally {
    is_go: bool,
    left_alone: u64,
    readings: u64,
    collecting: u64,
    running: u64,
    in_calls: u64,
    waiting: BTreeMap<String, u64>,
    at_once: Option<u32>,
    refusal: Option<String>,
}

impl RuntimeTally {
    /// Counts one sample: what was read of each process of the role. Goroutines are added over the processes, so a
    /// program of several counts as one; the collector is said to mark where that of half of them does.
    pub fn add(&mut self, sample: impl IntoIterator<Item = GoReading>) {
        let (mut processes, mut collecting, mut is_left_alone) = (0_u64, 0_u64, false);
        for reading in sample {
            match reading {
                GoReading::NotYet => self.is_go = true,
                GoReading::LeftAlone => {
                    self.is_go = true;
                    is_left_alone = true;
                }
                GoReading::Read(found) => {
                    processes += 1;
                    collecting += u64::from(found.is_collecting);
                    self.add_process(found);
                }
                GoReading::Refused(reason) => {
                    self.refusal.get_or_insert(reason);
                }
            }
        }
        self.readings += u64::from(processes > 0);
        self.collecting += u64::from(processes > 0 && 2 * collecting >= processes);
        self.left_alone += u64::from(is_left_alone);
    }

    fn add_process(&mut self, found: Goroutines) {
        self.is_go = true;
        self.running += found.running;
        self.in_calls += found.in_calls;
        self.at_once = self.at_once.max(found.at_once);
        for (reason, goroutines) in found.waiting {
            *self.waiting.entry(reason).or_default() += goroutines;
        }
    }

    /// The wire form; none if no program of the role has such a runtime.
    pub fn finish(&self) -> Option<RuntimeRecord> {
        self.is_go.then(|| RuntimeRecord {
            name: "go".into(),
            readings: self.readings,
            collecting: self.collecting,
            running: self.running,
            in_calls: self.in_calls,
            waiting: self.waiting.clone(),
            at_once: self.at_once,
        })
    }

    /// Why a program that has such a runtime was never asked.
    pub fn refusal(&self) -> Option<&str> {
        let is_left_alone = self.readings == 0 && self.left_alone > 0;
        let refusal = self.refusal.as_deref().filter(|_| !self.is_go);
        refusal.or(is_left_alone.then_some(LEFT_ALONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(is_collecting: bool) -> GoReading {
        GoReading::Read(Goroutines {
            is_collecting,
            running: 2,
            in_calls: 1,
            waiting: BTreeMap::from([("sync.Mutex.Lock".into(), 3)]),
            parked: Vec::new(),
            at_once: is_collecting.then_some(2),
        })
    }

    #[test]
    fn samples_add_up_and_a_refusal_is_kept() {
        let mut tally = RuntimeTally::default();
        assert_eq!(tally.finish(), None);
        tally.add([GoReading::Refused("stripped".into())]);
        assert_eq!(tally.refusal(), Some("stripped"));
        for is_collecting in [true, false] {
            tally.add([read(is_collecting)]);
            tally.add([GoReading::NotYet]);
        }
        let found = tally.finish().unwrap();
        assert_eq!((found.readings, found.collecting, found.running), (2, 1, 4));
        assert_eq!(found.at_once, Some(2));
        assert_eq!(found.waiting["sync.Mutex.Lock"], 6);
        assert_eq!(tally.refusal(), None);
    }

    #[test]
    fn a_server_without_load_is_known_to_be_written_in_go_and_says_nothing_else() {
        let mut tally = RuntimeTally::default();
        tally.add([read(true).without_load()]);
        assert_eq!(
            tally.finish().unwrap(),
            RuntimeRecord {
                name: "go".into(),
                ..RuntimeRecord::default()
            }
        );
        tally.add([read(true)]);
        assert_eq!(tally.finish().unwrap().readings, 1);
        let refused = GoReading::Refused("stripped".into());
        assert_eq!(refused.clone().without_load(), refused);
    }

    #[test]
    fn processes_of_one_program_count_as_one() {
        let mut tally = RuntimeTally::default();
        tally.add([read(true), GoReading::NotYet, read(false), read(false)]);
        tally.add([read(true), read(true), read(false)]);
        let found = tally.finish().unwrap();
        assert_eq!((found.readings, found.collecting), (2, 1));
        assert_eq!((found.running, found.in_calls), (12, 6));
        assert_eq!(found.waiting["sync.Mutex.Lock"], 18);
    }

    #[test]
    fn a_program_that_was_always_left_alone_says_so() {
        let mut tally = RuntimeTally::default();
        tally.add([GoReading::LeftAlone]);
        assert_eq!(tally.finish().unwrap().readings, 0);
        assert!(tally.refusal().unwrap().contains("address space"));
        tally.add([GoReading::Read(Goroutines::default())]);
        assert_eq!(tally.refusal(), None);
    }

    #[test]
    fn a_program_of_another_language_is_not_asked() {
        let mut programs = Programs::default();
        let own = std::process::id();
        let may_wait = |_| false;
        let readings = programs.sample([own].into_iter(), may_wait, &ProcFs::default());
        assert_eq!(readings, []);
        assert!(programs.known[&own].go.is_none());
    }
}
