//! `perf_event_open`.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::{ProbeError, Result};

/// `struct perf_event_attr` as of `PERF_ATTR_SIZE_VER3` (Linux 4.1), all that is needed here.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
}

/// Whose events these are, by the number of the kernel.
#[derive(Clone, Copy, Default)]
pub enum Kind {
    /// Of the CPU.
    Hardware = 0,
    /// Of the kernel.
    #[default]
    Software = 1,
}

/// The parameters of an event.
#[derive(Default)]
pub struct Event {
    pub kind: Kind,
    /// What it counts.
    pub config: u64,
    /// Counts between two samples, and what a sample has; none are taken with 0.
    pub sample_period: u64,
    pub sample_type: u64,
    /// Which registers a sample has, by bits, and how many bytes of the stack.
    pub sample_registers: u64,
    pub sample_stack_bytes: u32,
    pub read_format: u64,
    pub flags: u64,
    /// With `FLAG_USE_CLOCKID`.
    pub clock: i32,
}

/// Of the kernel: the time on a CPU.
pub const CPU_CLOCK: u64 = 0;
/// Of the hardware.
pub const CACHE_MISSES: u64 = 3;
pub const CPU_MIGRATIONS: u64 = 4;
/// Counts nothing.
pub const DUMMY: u64 = 9;

/// The address of the instruction, and the process and the thread.
pub const SAMPLE_IP: u64 = 1;
pub const SAMPLE_TID: u64 = 1 << 1;
pub const SAMPLE_REGISTERS: u64 = 1 << 12;
pub const SAMPLE_STACK: u64 = 1 << 13;

pub const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
pub const FORMAT_TOTAL_TIME_RUNNING: u64 = 2;

const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
pub const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
pub const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Records of what is mapped as program text.
pub const FLAG_MMAP: u64 = 1 << 8;
pub const FLAG_INHERIT_STAT: u64 = 1 << 11;
const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
pub const FLAG_TASK: u64 = 1 << 13;
pub const FLAG_MMAP2: u64 = 1 << 23;
pub const FLAG_USE_CLOCKID: u64 = 1 << 25;

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_EVENT_IOC_ENABLE: libc::Ioctl = 0x2400;
const PERF_EVENT_IOC_DISABLE: libc::Ioctl = 0x2401;

/// Opens an event on one CPU (−1: on any) for a process and all that it starts, from
/// its next exec on.
pub fn open(pid: u32, cpu: i32, event: Event) -> Result<File> {
    let attributes = Attributes {
        kind: event.kind as u32,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        sample_period: event.sample_period,
        sample_type: event.sample_type,
        read_format: event.read_format,
        flags: FLAG_DISABLED | FLAG_INHERIT | FLAG_ENABLE_ON_EXEC | event.flags,
        sample_regs_user: event.sample_registers,
        sample_stack_user: event.sample_stack_bytes,
        clock: event.clock,
        ..Attributes::default()
    };
    // SAFETY: `attributes` has the size that it says and is only read.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            pid as libc::pid_t,
            cpu,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if descriptor < 0 {
        return Err(refusal(ProbeError::last("perf_event_open")));
    }
    // SAFETY: a descriptor that the kernel has just made, owned from here on.
    Ok(unsafe { File::from_raw_fd(descriptor as i32) })
}

/// Lets an event count, or not, in all threads that have inherited it.
pub fn enable(event: &File, is_enabled: bool) -> Result<()> {
    let request = match is_enabled {
        true => PERF_EVENT_IOC_ENABLE,
        false => PERF_EVENT_IOC_DISABLE,
    };
    // SAFETY: an open descriptor, and a request without an argument.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, 0) } {
        0 => Ok(()),
        _ => Err(ProbeError::last("pause or resume a perf event")),
    }
}

fn refusal(error: ProbeError) -> ProbeError {
    match error.errno() {
        Some(libc::EACCES | libc::EPERM) => ProbeError::Unavailable(
            "perf_event_open refused: needs kernel.perf_event_paranoid ≤ 2 or CAP_PERFMON, and \
             in a container a seccomp profile that lets it through"
                .into(),
        ),
        Some(libc::ENOSYS) => {
            ProbeError::Unavailable("perf_event_open: the kernel or a filter lacks it".into())
        }
        _ => error,
    }
}
