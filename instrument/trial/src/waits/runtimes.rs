//! What the runtime of a program says of its own threads of execution: the goroutines of Go.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use concurve_clock as clock;
use concurve_probe::golang::{GoProgram, Goroutines};
use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::RuntimeRecord;

/// Most processes whose programs are looked at in a sample.
const PROCESSES_MAX: usize = 16;

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

/// What was read of the goroutines of a process: none while its runtime starts or ends; or why nothing can
/// be.
pub type GoReading = Result<Option<Goroutines>, String>;

impl Programs {
    /// Reads the goroutines of those processes that have any.
    pub fn sample(
        &mut self,
        processes: impl Iterator<Item = u32>,
        proc_fs: &ProcFs,
    ) -> Vec<(u32, GoReading)> {
        let mut readings = Vec::new();
        let mut known = HashMap::new();
        for pid in processes.take(PROCESSES_MAX) {
            let path = proc_fs.program_path(pid);
            let kept = self.known.remove(&pid).filter(|it| it.path == path);
            let cpu_before = clock::thread_cpu_ns();
            let mut program = kept.unwrap_or_else(|| Program {
                go: GoProgram::open(proc_fs, pid),
                path,
            });
            self.opening_cpu_ns += clock::thread_cpu_ns() - cpu_before;
            match &mut program.go {
                Some(Ok(go)) => readings.push((pid, Ok(go.sample()))),
                Some(Err(reason)) => readings.push((pid, Err(reason.clone()))),
                None => {}
            }
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
    readings: u64,
    collecting: u64,
    running: u64,
    in_calls: u64,
    waiting: BTreeMap<String, u64>,
    refusal: Option<String>,
}

impl RuntimeTally {
    pub fn add(&mut self, reading: GoReading) {
        match reading {
            Ok(None) => self.is_go = true,
            Ok(Some(found)) => {
                self.is_go = true;
                self.readings += 1;
                self.collecting += u64::from(found.is_collecting);
                self.running += found.running;
                self.in_calls += found.in_calls;
                for (reason, goroutines) in found.waiting {
                    *self.waiting.entry(reason).or_default() += goroutines;
                }
            }
            Err(reason) => {
                self.refusal.get_or_insert(reason);
            }
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
        })
    }

    /// Why a program that has such a runtime was not asked.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref().filter(|_| !self.is_go)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_add_up_and_a_refusal_is_kept() {
        let mut tally = RuntimeTally::default();
        assert_eq!(tally.finish(), None);
        tally.add(Err("stripped".into()));
        assert_eq!(tally.refusal(), Some("stripped"));
        for is_collecting in [true, false] {
            tally.add(Ok(Some(Goroutines {
                is_collecting,
                running: 2,
                in_calls: 1,
                waiting: BTreeMap::from([("sync.Mutex.Lock".into(), 3)]),
                parked: Vec::new(),
            })));
            tally.add(Ok(None));
        }
        let found = tally.finish().unwrap();
        assert_eq!((found.readings, found.collecting, found.running), (2, 1, 4));
        assert_eq!(found.waiting["sync.Mutex.Lock"], 6);
        assert_eq!(tally.refusal(), None);
    }

    #[test]
    fn a_program_of_another_language_is_not_asked() {
        let mut programs = Programs::default();
        let own = std::process::id();
        assert_eq!(programs.sample([own].into_iter(), &ProcFs::default()), []);
        assert!(programs.known[&own].go.is_none());
    }
}
