//! Sources of measurement: which of them this host grants, and why it refuses the others.

use concurve_probe::control;
use concurve_probe::perf::{self, CacheMisses};
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process;
use concurve_probe::task::PolicyClass;
use concurve_probe::taskstats::{Listener, Query};
use concurve_wire::record::Absent;
use concurve_wire::spec::TrialSpec;
use serde::Serialize;

use crate::error::{OnHost, Result};

/// Higher real-time priorities are left to the kernel's own threads.
const REAL_TIME_MAX: u32 = 90;

/// What a trial reads from.
#[derive(Debug)]
pub struct Host {
    pub proc_fs: ProcFs,
    /// Exits of all tasks, and totals of living processes.
    pub taskstats: Option<(Listener, Query)>,
    /// Missing sources by name, each with its reason.
    pub absent: Absent,
}

impl Host {
    /// Opens every source that is granted.
    pub fn open() -> Self {
        let proc_fs = ProcFs::default();
        let mut absent = Absent::new();
        let taskstats = match open_taskstats(&proc_fs) {
            Ok(taskstats) => Some(taskstats),
            Err(error) => {
                absent.insert("taskstats".into(), error.to_string());
                None
            }
        };
        Self {
            proc_fs,
            taskstats,
            absent,
        }
    }

    /// Makes this process the parent of every orphan of the trial.
    pub fn become_parent_of_orphans(&mut self, spec: &TrialSpec) -> Result<()> {
        process::become_subreaper().on_host("become the parent of orphans")?;
        if let Err(reason) = raise_priority(spec) {
            self.absent.insert("real_time".into(), reason);
        }
        Ok(())
    }
}

/// Gives the runner a real-time priority above all roles, so that it reads the probes when a phase
/// begins or ends, even if the roles keep all CPUs busy. The sampler's share of CPU time bounds
/// what that costs the roles. The error says why it was refused.
fn raise_priority(spec: &TrialSpec) -> std::result::Result<(), String> {
    let own = std::process::id();
    // Children get the default policy and nice value, not those that the runner was started with.
    let ordinary = control::nice(own).ok() == Some(0)
        && control::policy(own)
            .ok()
            .flatten()
            .is_some_and(|policy| policy.class == PolicyClass::Other);
    if !ordinary {
        return Err("the runner itself was started with a nice value or policy of its own".into());
    }
    let policies = spec.roles.iter().filter_map(|role| role.controls.policy);
    let most = policies.map(|policy| policy.priority).max().unwrap_or(0);
    control::raise_priority((most + 1).min(REAL_TIME_MAX)).map_err(|error| error.to_string())
}

fn open_taskstats(proc_fs: &ProcFs) -> concurve_probe::Result<(Listener, Query)> {
    let listener = Listener::open(&proc_fs.cpus_online()?)?;
    let query = Query::beside(&listener)?;
    Ok((listener, query))
}

/// Whether the host grants a source.
#[derive(Debug, Serialize)]
pub struct Grant {
    granted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<T, E: std::fmt::Display> From<std::result::Result<T, E>> for Grant {
    fn from(result: std::result::Result<T, E>) -> Self {
        Self {
            granted: result.is_ok(),
            reason: result.err().map(|error| error.to_string()),
        }
    }
}

/// Tries every source once.
pub fn grants() -> std::collections::BTreeMap<&'static str, Grant> {
    let proc_fs = ProcFs::default();
    let own = std::process::id();
    let pressure = |resource| proc_fs.pressure(resource).into();
    let cpus = proc_fs.cpus_online().unwrap_or_default();
    let misses = CacheMisses::attach(own).and_then(|counter| counter.read());
    let attached = perf::attach(own, &cpus);
    let counter = attached.counter.and_then(|mut counter| counter.read());
    [
        ("taskstats", open_taskstats(&proc_fs).into()),
        ("perf", counter.into()),
        ("perf_lives", attached.lives.into()),
        ("perf_samples", attached.samples.into()),
        ("cache_misses", misses.into()),
        ("schedstat", proc_fs.thread_schedstat(own, own).into()),
        (
            "syscall",
            proc_fs
                .open_syscall(own, own)
                .and_then(|file| file.read())
                .into(),
        ),
        ("sched", proc_fs.thread_migrations(own, own).into()),
        ("children", proc_fs.children_of_thread(own, own).into()),
        ("stat", proc_fs.cpu_ticks().into()),
        ("steal", proc_fs.cpu_ticks().into()),
        ("psi_cpu", pressure("cpu")),
        ("psi_io", pressure("io")),
        ("psi_memory", pressure("memory")),
    ]
    .into()
}
