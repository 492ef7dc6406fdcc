//! What a forked child does, from the fork to its exec.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::ptr;

use super::REPORT_FD;

/// What the child needs, as plain numbers and pointers.
pub struct Plan<'a> {
    pub paths: &'a [CString],
    pub argv: &'a [*const libc::c_char],
    pub environment: &'a [*const libc::c_char],
    pub cwd: Option<&'a CStr>,
    pub descriptors: [RawFd; 4],
    pub go: RawFd,
    pub news: RawFd,
    pub parent: libc::pid_t,
    /// The limit of open files that its program gets; none: that of the runner.
    pub open_files: Option<libc::rlimit>,
    /// Its timer slack, unless it is inherited.
    pub timer_slack_ns: Option<libc::c_ulong>,
}

/// What the child does up to its exec. It reports five bytes: a step (0: ready) and an errno.
///
/// # Safety
/// Only in a freshly forked child. Calls nothing that allocates, locks or unwinds.
pub unsafe fn run(plan: &Plan<'_>) -> ! {
    unsafe {
        // First moves the descriptors out of the way of 0…3.
        let news = libc::fcntl(plan.news, libc::F_DUPFD_CLOEXEC, 10);
        let go = libc::fcntl(plan.go, libc::F_DUPFD_CLOEXEC, 10);
        if news < 0 || go < 0 {
            libc::_exit(127);
        }
        if let Err(errno) = prepare(plan) {
            tell(news, 1, errno);
            libc::_exit(127);
        }
        if let Some(cwd) = plan.cwd
            && libc::chdir(cwd.as_ptr()) < 0
        {
            tell(news, 2, errno());
            libc::_exit(127);
        }
        tell(news, 0, 0);
        wait_for_go(go);
        tell(news, 3, exec(plan));
        libc::_exit(127);
    }
}

unsafe fn prepare(plan: &Plan<'_>) -> std::result::Result<(), i32> {
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) < 0 {
            return Err(errno());
        }
        if libc::getppid() != plan.parent {
            libc::_exit(127);
        }
        // A group, not a session: sessions are scheduled as units (autogroup), and nice values
        // would no longer count between roles.
        if libc::setpgid(0, 0) < 0 {
            return Err(errno());
        }
        let mut copies = [-1; 4];
        for (copy, descriptor) in copies.iter_mut().zip(plan.descriptors) {
            *copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 10);
            if *copy < 0 {
                return Err(errno());
            }
        }
        for (target, copy) in (0..).zip(copies) {
            if libc::dup2(copy, target) < 0 {
                return Err(errno());
            }
        }
        close_others_on_exec();
        reset_signals();
        if let Some(limit) = &plan.open_files
            && libc::setrlimit(libc::RLIMIT_NOFILE, limit) < 0
        {
            return Err(errno());
        }
        if let Some(slack_ns) = plan.timer_slack_ns
            && libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) < 0
        {
            return Err(errno());
        }
        Ok(())
    }
}

/// Marks every descriptor above the report channel to be closed by the exec.
unsafe fn close_others_on_exec() {
    unsafe {
        let first = (REPORT_FD + 1) as libc::c_uint;
        let flag = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flag) == 0 {
            return;
        }
        // Kernels before 5.11.
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as RawFd;
        for descriptor in REPORT_FD + 1..limit {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Blocks no signal and ignores none: the program inherits neither the runner's mask nor its
/// dispositions.
unsafe fn reset_signals() {
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

unsafe fn wait_for_go(go: RawFd) {
    let mut byte = 0u8;
    loop {
        let length = unsafe { libc::read(go, (&raw mut byte).cast(), 1) };
        if length == 1 {
            return;
        }
        if length == 0 || errno() != libc::EINTR {
            // The runner gave up or died.
            unsafe { libc::_exit(127) };
        }
    }
}

/// Tries the paths in order; returns the most informative errno.
unsafe fn exec(plan: &Plan<'_>) -> i32 {
    let mut result = libc::ENOENT;
    for path in plan.paths {
        unsafe {
            libc::execve(path.as_ptr(), plan.argv.as_ptr(), plan.environment.as_ptr());
        }
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => result = libc::EACCES,
            other => return other,
        }
    }
    result
}

unsafe fn tell(news: RawFd, step: u8, errno: i32) {
    let number = errno.to_ne_bytes();
    let bytes = [step, number[0], number[1], number[2], number[3]];
    // If the runner is gone nobody reads the report; the child ends either way.
    unsafe { libc::write(news, bytes.as_ptr().cast(), bytes.len()) };
}

fn errno() -> i32 {
    // SAFETY: the location is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
