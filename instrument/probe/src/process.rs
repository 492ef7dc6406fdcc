//! Waiting for children, signalling, and the runner's own place among processes.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, zeroed};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{self, Signal};
use nix::unistd::{Pid, getppid};

use crate::{ProbeError, Result};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// What `wait4` returns for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    pub exit: Exit,
    pub usage: ReapedUsage,
}

/// What a reaped child has used, with the children that it has waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapedUsage {
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

impl ReapedUsage {
    /// User and system time.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Adds what another child has used; of the memory, the maximum.
    pub fn add(&mut self, other: &Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.rss_bytes_max = self.rss_bytes_max.max(other.rss_bytes_max);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.block_inputs += other.block_inputs;
        self.block_outputs += other.block_outputs;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// The state of this process's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// This child is a zombie; it stays one until [`reap`].
    Exited(u32),
    /// There are children, all alive.
    Alive,
    /// There are none.
    None,
}

/// Looks for a child that has exited, without reaping it.
///
/// Not by nix: its `waitid` fails for a child that a real-time signal has killed.
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

/// Reaps a child that has exited.
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
    let usage = ReapedUsage {
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        rss_bytes_max: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        block_inputs: usage.ru_inblock as u64,
        block_outputs: usage.ru_oublock as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    };
    Ok(Reaped { exit, usage })
}

fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// Makes orphans of the whole tree children of this process, so that none escapes.
pub fn become_subreaper() -> Result<()> {
    prctl::set_child_subreaper(true)
        .map_err(|errno| ProbeError::system("become the subreaper", errno))
}

/// Asks for `signal` when the parent dies; returns whether the parent was still alive.
pub fn signal_on_parent_death(signal: Signal) -> Result<bool> {
    let parent = getppid();
    prctl::set_pdeathsig(signal)
        .map_err(|errno| ProbeError::system("ask for a signal on the parent's death", errno))?;
    Ok(getppid() == parent)
}

/// Sends a signal to a process; one that is gone already is no error.
pub fn kill(pid: u32, signal: Signal) -> Result<()> {
    match signal::kill(Pid::from_raw(pid as i32), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(ProbeError::system(format!("send {signal} to {pid}"), errno)),
    }
}

/// Sends a signal to a process group; one that is empty already is no error.
pub fn kill_group(group: u32, signal: Signal) -> Result<()> {
    match signal::killpg(Pid::from_raw(group as i32), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => {
            let what = format!("send {signal} to the process group {group}");
            Err(ProbeError::system(what, errno))
        }
    }
}

/// CPU time of a living process, its ended threads included, by the clock that the kernel has of each
/// process. No privilege is needed. As of the last tick of a thread that runs.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    // What clock_getcpuclockid(3) computes, without its system call: the next one tells as well that
    // there is no such process.
    const SCHED: i32 = 2;
    let clock = nix::time::ClockId::from_raw(!(pid as i32) << 3 | SCHED);
    let now = clock.now().ok()?;
    Some(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
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
/// The process that started this one; none if it has ended.
pub fn parent() -> Option<u32> {
    let parent = getppid().as_raw() as u32;
    (parent > 1).then_some(parent)
}
