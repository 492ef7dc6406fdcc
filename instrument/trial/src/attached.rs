//! An attached role: processes that ran before the trial and run on after it. They are read, and
//! nothing is done to them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::{ProbeError, cgroup, pidfd, unless_gone};
use concurve_wire::spec::{Attach, AttachedProcess};

use crate::phases::Reading;

/// Why an attached role has no perf counter.
pub const NO_COUNTER: &str = "no counter is opened for processes that ran before the trial";
/// Why births and deaths in it are not counted.
pub const NO_LIVES: &str =
    "births and deaths are not counted in processes that ran before the trial";

/// Why it is not sampled where its threads run.
pub const NO_SAMPLES: &str =
    "where threads run is not sampled in processes that ran before the trial";

/// The parent of all threads of the kernel.
const KTHREADD: u32 = 2;

/// The processes of an attached role.
#[derive(Debug)]
pub struct Attached {
    which: Attach,
    /// Its first process, which the record names.
    pub pid: u32,
    /// Stands for the process of [`Attach::Process`]; none if the kernel does not offer it.
    pub handle: Option<OwnedFd>,
    /// Start times of its processes, in ticks, by their numbers.
    started_ticks: HashMap<u32, u64>,
    /// Processes that started earlier than this ran before the trial.
    runner_started_ticks: u64,
    /// What its cgroup had used when it was attached; none without one that says it.
    group_before_ns: Option<u64>,
    pub begin: Option<Reading>,
    pub end: Option<Reading>,
    /// CPU time until the very end of the trial, counted as in those readings.
    pub last_cpu_ns: Option<u64>,
}

/// A process that was found, and whether it ran before the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub pid: u32,
    pub older: bool,
    /// It ended before it was found, and nobody has waited for it.
    pub ended: bool,
}

impl Attached {
    /// Finds the processes. The error says why there are none, or why they cannot be attached.
    pub fn find(which: &Attach, proc_fs: &ProcFs) -> Result<Self, String> {
        let own = std::process::id();
        let (pid, handle) = match which {
            Attach::Process(process) => {
                // Opened before the start time is read: from then on the number cannot be another's.
                let handle = pidfd::open(process.pid).ok();
                refuse_other(*process, proc_fs)?;
                (process.pid, handle)
            }
            Attach::Cgroup(folder) => {
                let found = processes_of(which, proc_fs).map_err(|error| error.to_string())?;
                let first = found.first().copied();
                let none = || format!("the cgroup {folder} has no process: start what it is for");
                (first.ok_or_else(none)?, None)
            }
        };
        let attached = Self {
            which: which.clone(),
            pid,
            handle,
            started_ticks: HashMap::new(),
            runner_started_ticks: proc_fs.stat(own).map_or(0, |stat| stat.started_ticks),
            group_before_ns: None,
            begin: None,
            end: None,
            last_cpu_ns: None,
        };
        let processes = processes_of(which, proc_fs).map_err(|error| error.to_string())?;
        if processes.contains(&own) {
            return Err(format!(
                "{} holds the trial itself: attach the process that is measured, not one that has \
                 started the laboratory",
                attached.name()
            ));
        }
        Ok(attached)
    }

    /// Its processes that were not found before.
    /// With why there may be more of them.
    pub fn find_new(&mut self, proc_fs: &ProcFs) -> (Vec<Found>, Option<ProbeError>) {
        let (mut new, mut missing) = (Vec::new(), None);
        let listed = processes_of(&self.which, proc_fs);
        let listed = unless_gone(listed).unwrap_or_else(|error| {
            missing = Some(error);
            None
        });
        for pid in listed.unwrap_or_default() {
            let stat = match unless_gone(proc_fs.stat(pid)) {
                Ok(Some(stat)) => stat,
                Ok(None) => continue,
                Err(error) => {
                    missing.get_or_insert(error);
                    continue;
                }
            };
            let older = stat.started_ticks < self.runner_started_ticks;
            let ended = stat.state == 'Z';
            let known = self.started_ticks.get(&pid) == Some(&stat.started_ticks);
            if known || (ended && !older) {
                continue;
            }
            self.started_ticks.insert(pid, stat.started_ticks);
            new.push(Found { pid, older, ended });
        }
        (new, missing)
    }

    /// CPU time that is not that of others: to the end of the trial, where that was read.
    pub fn cpu_ns(&self) -> Option<u64> {
        let (begin, end) = self.begin.as_ref().zip(self.end.as_ref())?;
        Some(
            end.cpu_ns
                .max(self.last_cpu_ns)?
                .saturating_sub(begin.cpu_ns?),
        )
    }

    /// Notes what its cgroup has used so far.
    pub fn note_group_before(&mut self) {
        self.group_before_ns = self.group_ns();
    }

    /// What its cgroup has used since; none without one that says it.
    pub fn group_since_ns(&self) -> Option<u64> {
        Some(self.group_ns()?.saturating_sub(self.group_before_ns?))
    }

    fn group_ns(&self) -> Option<u64> {
        match &self.which {
            Attach::Process(_) => None,
            Attach::Cgroup(folder) => cgroup::cpu_ns(Path::new(folder)),
        }
    }

    /// Whether its processes are a tree: then whom they wait for is of it.
    pub fn is_tree(&self) -> bool {
        matches!(self.which, Attach::Process(_))
    }

    /// Has a process be found again: what it used before could not be read.
    pub fn forget(&mut self, pid: u32) {
        self.started_ticks.remove(&pid);
    }

    /// Its processes that have ended: their numbers are no longer theirs.
    pub fn take_ended(&mut self, proc_fs: &ProcFs) -> Vec<u32> {
        let ended = |(pid, started_ticks): (&u32, &u64)| {
            has_ended(*pid, *started_ticks, proc_fs).then_some(*pid)
        };
        let ended: Vec<u32> = self.started_ticks.iter().filter_map(ended).collect();
        for pid in &ended {
            self.started_ticks.remove(pid);
        }
        ended
    }

    /// Whether this number belongs to one of its processes.
    pub fn has(&self, pid: u32) -> bool {
        self.started_ticks.contains_key(&pid)
    }

    /// Why it is no longer what was attached, if so.
    pub fn gone(&self, proc_fs: &ProcFs) -> Option<String> {
        match &self.which {
            Attach::Process(process) => {
                let AttachedProcess { pid, started_ticks } = *process;
                let ended = match &self.handle {
                    Some(handle) => pidfd::has_ended(handle),
                    None => is_zombie(pid, proc_fs) || has_ended(pid, started_ticks, proc_fs),
                };
                ended.then(|| format!("process {pid} ended during the trial"))
            }
            Attach::Cgroup(folder) => {
                let ended = match unless_gone(processes_of(&self.which, proc_fs)) {
                    Ok(found) => found.is_none_or(|found| found.is_empty()),
                    // It could not be asked: nothing is known of it.
                    Err(_) => false,
                };
                ended
                    .then(|| format!("the processes of the cgroup {folder} ended during the trial"))
            }
        }
    }

    fn name(&self) -> String {
        match &self.which {
            Attach::Process(process) => format!("process {}", process.pid),
            Attach::Cgroup(folder) => format!("the cgroup {folder}"),
        }
    }
}

/// What can be seen to be wrong before anything is attached.
pub fn check(which: &Attach, proc_fs: &ProcFs) -> Result<(), String> {
    Attached::find(which, proc_fs).map(|_| ())
}

fn refuse_other(process: AttachedProcess, proc_fs: &ProcFs) -> Result<(), String> {
    let AttachedProcess { pid, started_ticks } = process;
    let stat = proc_fs
        .stat(pid)
        .map_err(|_| format!("there is no process {pid}: it has ended, or is not visible here"))?;
    if stat.started_ticks != started_ticks {
        return Err(format!(
            "process {pid} ({}) is not the one that was asked for: that one has ended, and its number \
             is used again; give the number of the process that runs now",
            stat.name
        ));
    }
    if pid == KTHREADD || stat.parent == KTHREADD {
        return Err(format!(
            "process {pid} ({}) is a thread of the kernel",
            stat.name
        ));
    }
    if stat.state == 'Z' {
        return Err(format!("process {pid} ({}) has ended", stat.name));
    }
    Ok(())
}

/// Whether this process has ended and was waited for, or its number is another's now.
fn has_ended(pid: u32, started_ticks: u64, proc_fs: &ProcFs) -> bool {
    match proc_fs.stat(pid) {
        Ok(stat) => stat.started_ticks != started_ticks,
        Err(error) => error.is_gone(),
    }
}

fn is_zombie(pid: u32, proc_fs: &ProcFs) -> bool {
    proc_fs.stat(pid).is_ok_and(|stat| stat.state == 'Z')
}

fn processes_of(which: &Attach, proc_fs: &ProcFs) -> concurve_probe::Result<Vec<u32>> {
    match which {
        Attach::Process(process) => {
            let mut found = vec![process.pid];
            found.extend(proc_fs.descendants(process.pid).complete()?);
            Ok(found)
        }
        Attach::Cgroup(folder) => cgroup::processes(Path::new(folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_after_the_last_reading_is_not_that_of_others() {
        let reading = |cpu_ns| {
            Some(Reading {
                cpu_ns: Some(cpu_ns),
                ..Reading::default()
            })
        };
        let mut attached = Attached {
            which: Attach::Cgroup("/".into()),
            pid: 1,
            handle: None,
            started_ticks: HashMap::new(),
            runner_started_ticks: 0,
            group_before_ns: None,
            begin: reading(100),
            end: reading(400),
            last_cpu_ns: None,
        };
        assert_eq!(attached.cpu_ns(), Some(300));
        attached.last_cpu_ns = Some(460);
        assert_eq!(attached.cpu_ns(), Some(360));
    }
}
