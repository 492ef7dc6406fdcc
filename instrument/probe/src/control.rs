//! Sets and reads a task's CPUs, nice value and scheduling policy.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::sync::OnceLock;

use crate::task::{self, Policy};
use crate::{ProbeError, Result};

/// CPUs that fit into a mask here; the kernel's own limit is 8192.
const CPUS_MAX: usize = 8192;
type CpuMask = [u64; CPUS_MAX / 64];

/// CPUs a task may run on.
pub fn affinity(tid: u32) -> Result<Vec<u32>> {
    let mut mask: CpuMask = [0; CPUS_MAX / 64];
    // SAFETY: the pointer and the size describe `mask`, which the kernel fills in part.
    let filled = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid as libc::pid_t,
            size_of::<CpuMask>(),
            mask.as_mut_ptr(),
        )
    };
    if filled < 0 {
        return Err(ProbeError::last(format!("read the CPUs of task {tid}")));
    }
    Ok((0..CPUS_MAX as u32)
        .filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1)
        .collect())
}

/// Restricts a task to these CPUs.
pub fn set_affinity(tid: u32, cpus: &[u32]) -> Result<()> {
    let what = || format!("restrict task {tid} to CPUs {cpus:?}");
    let mut mask: CpuMask = [0; CPUS_MAX / 64];
    for &cpu in cpus {
        let word = mask.get_mut(cpu as usize / 64).ok_or_else(|| {
            ProbeError::system(what(), io::Error::from_raw_os_error(libc::EINVAL))
        })?;
        *word |= 1 << (cpu % 64);
    }
    // SAFETY: the pointer and the size describe `mask`, which the kernel only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid as libc::pid_t,
            size_of::<CpuMask>(),
            mask.as_ptr(),
        )
    };
    if result < 0 {
        return Err(ProbeError::last(what()));
    }
    Ok(())
}

/// A task's nice value.
pub fn nice(tid: u32) -> Result<i32> {
    // SAFETY: no pointers. The raw call answers 20 − nice, so that −1 is not ambiguous.
    let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, tid) };
    if answer < 0 {
        return Err(ProbeError::last(format!(
            "read the nice value of task {tid}"
        )));
    }
    Ok(20 - answer as i32)
}

/// Sets a task's nice value.
pub fn set_nice(tid: u32, nice: i32) -> Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, nice) };
    if result < 0 {
        return Err(ProbeError::last(format!("set task {tid} to nice {nice}")));
    }
    Ok(())
}

/// A task's scheduling policy; none for one that is not known here.
pub fn policy(tid: u32) -> Result<Option<Policy>> {
    let pid = tid as libc::pid_t;
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a valid place for the answer.
    let (number, result) = unsafe {
        (
            libc::sched_getscheduler(pid),
            libc::sched_getparam(pid, &mut parameters),
        )
    };
    if number < 0 || result < 0 {
        return Err(ProbeError::last(format!("read the policy of task {tid}")));
    }
    // The flag SCHED_RESET_ON_FORK may be set beside the number.
    let number = number & !libc::SCHED_RESET_ON_FORK;
    Ok(task::policy(
        number as u32,
        parameters.sched_priority as u32,
    ))
}

/// Sets a task's scheduling policy.
pub fn set_policy(tid: u32, policy: Policy) -> Result<()> {
    let parameters = libc::sched_param {
        sched_priority: policy.priority as libc::c_int,
    };
    let number = task::policy_number(policy.class);
    // SAFETY: `parameters` is only read.
    let result = unsafe { libc::sched_setscheduler(tid as libc::pid_t, number, &parameters) };
    if result < 0 {
        return Err(ProbeError::last(format!(
            "set task {tid} to policy {:?} with priority {}",
            policy.class, policy.priority
        )));
    }
    Ok(())
}

/// The timer slack that the runner had before it ran in real time, where the kernel has none. Children inherit that, not
/// this: their timers would be exact, which costs who sleeps often.
static TIMER_SLACK_NS: OnceLock<libc::c_ulong> = OnceLock::new();

/// The timer slack that children need, if it is not the one that they inherit.
pub fn timer_slack_of_children() -> Option<libc::c_ulong> {
    TIMER_SLACK_NS.get().copied()
}

/// Gives the calling thread this real-time priority, so that it runs before all ordinary tasks. Its
/// children do not inherit the priority; see [`timer_slack_of_children`].
pub fn raise_priority(priority: u32) -> Result<()> {
    // SAFETY: no pointers.
    let slack_ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    let parameters = libc::sched_param {
        sched_priority: priority as libc::c_int,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is only read.
    let result = unsafe { libc::sched_setscheduler(0, policy, &parameters) };
    if result < 0 {
        return Err(ProbeError::last("run in real time"));
    }
    if let Some(slack_ns) = libc::c_ulong::try_from(slack_ns).ok().filter(|it| *it > 0) {
        let _ = TIMER_SLACK_NS.set(slack_ns);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_goes_both_ways() {
        // SAFETY: no pointers.
        let tid = unsafe { libc::gettid() } as u32;
        let all = affinity(tid).unwrap();
        let last = [*all.last().unwrap()];
        set_affinity(tid, &last).unwrap();
        assert_eq!(affinity(tid).unwrap(), last);
        set_affinity(tid, &all).unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        let own = std::process::id();
        let error = set_affinity(own, &[8000]).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EINVAL));
        assert_eq!(
            set_affinity(own, &[9000]).unwrap_err().errno(),
            Some(libc::EINVAL)
        );
    }

    #[test]
    fn reads_nice_and_policy() {
        let own = std::process::id();
        assert!((-20..20).contains(&nice(own).unwrap()));
        assert!(policy(own).unwrap().is_some());
        assert_eq!(nice(u32::MAX / 2).unwrap_err().errno(), Some(libc::ESRCH));
    }
}
