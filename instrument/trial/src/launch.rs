//! Starts a role: suspended first; then its controls are set and its counters attached.

use std::fs::File;
use std::os::fd::AsFd;

use concurve_probe::ProbeError;
use concurve_probe::perf::{self, CacheMisses};
use concurve_probe::pipe;
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::spawn::{self, LaunchFailure, Program, Step, Suspended};
use concurve_wire::record::OutcomeKind;

use crate::controls;
use crate::program::Prepared;
use crate::role::Role;

const PIPE_BYTES: i32 = 1 << 18;

/// Why a role did not start.
#[derive(Debug)]
pub struct NotStarted {
    pub kind: OutcomeKind,
    pub message: String,
}

/// Forks a role's child with its streams. The child waits; its controls are not set yet. `meanwhile` runs
/// while the child prepares itself.
pub fn suspend(
    role: &mut Role,
    trial: &str,
    meanwhile: impl FnOnce(),
) -> Result<Suspended, NotStarted> {
    let prepared = Prepared::new(&role.spec, trial);
    let failed = |error: ProbeError| NotStarted {
        kind: OutcomeKind::ExecFailed,
        message: error.to_string(),
    };
    let (stdout_read, stdout_write) = pipe::open().map_err(failed)?;
    let (stderr_read, stderr_write) = pipe::open().map_err(failed)?;
    let (report_read, report_write) = pipe::open().map_err(failed)?;
    for pipe in [&stdout_read, &stderr_read, &report_read] {
        pipe::set_nonblocking(pipe.as_fd()).map_err(failed)?;
        pipe::widen(pipe.as_fd(), PIPE_BYTES);
    }
    let suspended = spawn::spawn_suspended(
        &Program {
            paths: &prepared.paths,
            argv: &prepared.argv,
            environment: &prepared.environment,
            cwd: prepared.cwd.as_deref(),
            stdout: stdout_write.as_fd(),
            stderr: stderr_write.as_fd(),
            report: report_write.as_fd(),
        },
        meanwhile,
    )
    .map_err(failed)?
    .map_err(|failure| not_executed(role, &failure))?;
    role.pid = Some(suspended.pid());
    role.stdout.pipe = Some(File::from(stdout_read));
    role.stderr.pipe = Some(File::from(stderr_read));
    role.report = Some(File::from(report_read));
    Ok(suspended)
}

/// Sets and reads back the role's controls, then attaches its counters.
pub fn control(
    role: &mut Role,
    suspended: &Suspended,
    proc_fs: &ProcFs,
    cache_misses: bool,
) -> Result<(), NotStarted> {
    let (granted, verdict) = controls::apply(proc_fs, suspended.pid(), &role.spec.controls);
    role.controls = granted;
    verdict.map_err(|message| NotStarted {
        kind: OutcomeKind::ControlRefused,
        message,
    })?;
    count(role, suspended.pid(), proc_fs, cache_misses);
    Ok(())
}

fn count(role: &mut Role, pid: u32, proc_fs: &ProcFs, cache_misses: bool) {
    // Before the events of single CPUs: see `perf::CacheMisses`.
    role.cache_misses =
        cache_misses.then(|| CacheMisses::attach(pid).map_err(|error| error.to_string()));
    let cpus = proc_fs.cpus_online().unwrap_or_default();
    let attached = perf::attach(pid, &cpus);
    match attached.counter {
        Ok(counter) => role.counter = Some(counter),
        Err(error) => role.counter_refusal = Some(error.to_string()),
    }
    match attached.lives {
        Ok(lives) => role.lives = Some(lives),
        Err(error) => role.lives_refusal = Some(error.to_string()),
    }
    match attached.samples {
        Ok(samples) => role.samples = Some(samples),
        Err(error) => role.samples_refusal = Some(error.to_string()),
    }
}

/// A message that states what failed, where, and what to try.
pub fn not_executed(role: &Role, failure: &LaunchFailure) -> NotStarted {
    let program = &role.spec.argv[0];
    let message = match (failure.step, failure.error.raw_os_error()) {
        (Step::ChangeDirectory, _) => format!(
            "cannot enter the working directory {:?}: {}",
            role.spec.cwd.as_deref().unwrap_or("."),
            failure.error
        ),
        (Step::Prepare, _) => format!("cannot prepare {program:?}: {}", failure.error),
        (Step::Exec, Some(libc::ENOENT)) => format!(
            "cannot execute {program:?}: not found; check the name and the role's PATH \
             (of a script: its interpreter)"
        ),
        (Step::Exec, Some(libc::EACCES)) => {
            format!("cannot execute {program:?}: not executable; try chmod +x")
        }
        (Step::Exec, Some(libc::ENOEXEC)) => format!(
            "cannot execute {program:?}: not a program of this machine; a script needs a first \
             line such as #!/bin/sh"
        ),
        (Step::Exec, _) => format!("cannot execute {program:?}: {}", failure.error),
    };
    NotStarted {
        kind: OutcomeKind::ExecFailed,
        message,
    }
}
