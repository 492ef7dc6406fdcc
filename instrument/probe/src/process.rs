//! Waiting for children, signalling, and the runner's own place among processes.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, zeroed};

use concurve_wire::record::Exit;

use crate::{ProbeError, Result};

/// What the kernel says of a child that it buries, its own waited-for children included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    pub exit: Exit,
    pub user_ns: u64,
    pub system_ns: u64,
    pub rss_bytes_max: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub block_inputs: u64,
    pub block_outputs: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// What a wait found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// This child is a zombie; it stays one until [`reap`].
    Exited(u32),
    /// There are children, all alive.
    Alive,
    /// There are none.
    None,
}

/// Looks for a child that has exited and leaves it as it is.
pub fn peek_exited() -> Result<Children> {
    // SAFETY: all-zero is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is a valid place for the answer.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, options) };
    if result < 0 {
        let error = ProbeError::last("wait for children");
        return match error.errno() {
            Some(libc::ECHILD) => Ok(Children::None),
            _ => Err(error),
        };
    }
    // SAFETY: waitid filled in the SIGCHLD form of the structure, or left it all zero.
    match unsafe { info.si_pid() } {
        0 => Ok(Children::Alive),
        pid => Ok(Children::Exited(pid as u32)),
    }
}

/// Buries a child that has exited.
pub fn reap(pid: u32) -> Result<Reaped> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid places for the answers.
    let result = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
    if result < 0 {
        return Err(ProbeError::last(format!("wait for process {pid}")));
    }
    // SAFETY: all-zero is a valid rusage, and wait4 has filled it in.
    let usage = unsafe { usage.assume_init() };
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    Ok(Reaped {
        exit,
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        rss_bytes_max: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        block_inputs: usage.ru_inblock as u64,
        block_outputs: usage.ru_oublock as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    })
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Makes orphans of the whole tree children of this process, so that none escapes.
pub fn become_subreaper() -> Result<()> {
    // SAFETY: this option takes a plain number.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    if result < 0 {
        return Err(ProbeError::last("become the subreaper"));
    }
    Ok(())
}

/// Asks for `signal` when the parent dies; says whether the parent was still there.
pub fn signal_on_parent_death(signal: i32) -> Result<bool> {
    // SAFETY: no pointers in any of these calls.
    unsafe {
        let parent = libc::getppid();
        if libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) < 0 {
            return Err(ProbeError::last("ask for a signal on the parent's death"));
        }
        Ok(libc::getppid() == parent)
    }
}

/// Sends a signal to a process; one that is gone already is no error.
pub fn kill(pid: u32, signal: i32) -> Result<()> {
    signal_to(pid as libc::pid_t, signal)
}

/// Sends a signal to a process group; one that is empty already is no error.
pub fn kill_group(group: u32, signal: i32) -> Result<()> {
    signal_to(-(group as libc::pid_t), signal)
}

fn signal_to(target: libc::pid_t, signal: i32) -> Result<()> {
    // SAFETY: no pointers.
    if unsafe { libc::kill(target, signal) } < 0 {
        let error = ProbeError::last(format!("send signal {signal} to {target}"));
        if error.errno() != Some(libc::ESRCH) {
            return Err(error);
        }
    }
    Ok(())
}

/// Duration of a tick of `/proc/stat` (`USER_HZ`).
pub fn tick_ns() -> u64 {
    // SAFETY: no pointers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / per_second.max(1) as u64
}

/// Bytes of a page.
pub fn page_bytes() -> u64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}
