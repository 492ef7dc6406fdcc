//! Starts a program in two steps: a child that waits, then its exec.
//!
//! Between the steps the child has its number, its process group, its descriptors and its
//! working directory, and has run nothing of the program: controls are set and counters are
//! attached then. A failure of either step comes back as such.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::{ProbeError, Result};

/// Number of the report descriptor in every launched program.
pub const REPORT_FD: RawFd = 3;

/// What a child needs, all made before the fork: a forked child may not allocate.
#[derive(Debug)]
pub struct Program<'a> {
    /// Paths to try, in order, as `execvp` would.
    pub paths: &'a [CString],
    pub argv: &'a [CString],
    /// `NAME=value`.
    pub environment: &'a [CString],
    pub cwd: Option<&'a CStr>,
    pub stdout: BorrowedFd<'a>,
    pub stderr: BorrowedFd<'a>,
    pub report: BorrowedFd<'a>,
}

/// The step at which a child failed before its program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Descriptors, process group, signals.
    Prepare,
    /// The working directory.
    ChangeDirectory,
    /// The exec itself.
    Exec,
}

/// Why a program did not run.
#[derive(Debug)]
pub struct LaunchFailure {
    pub step: Step,
    pub error: io::Error,
}

/// A child that waits for its release. Dropped without one, the child exits with 127.
#[derive(Debug)]
pub struct Suspended {
    pid: u32,
    go: OwnedFd,
    news: OwnedFd,
}

/// The descriptor on which a failed exec would be told. It closes when the exec succeeds.
#[derive(Debug)]
pub struct ExecNews(File);

impl Suspended {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child exec its program.
    pub fn release(self) -> Result<ExecNews> {
        File::from(self.go)
            .write_all(&[1])
            .map_err(|error| ProbeError::system("release the suspended process", error))?;
        Ok(ExecNews(File::from(self.news)))
    }
}

impl ExecNews {
    /// Waits for the outcome of the exec: nothing if it succeeded.
    pub fn read(&mut self) -> Option<LaunchFailure> {
        match read_news(&mut self.0) {
            Some(News::Failed(failure)) => Some(failure),
            Some(News::Ready) | None => None,
        }
    }
}

impl AsFd for ExecNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Forks a child that prepares itself and waits.
pub fn spawn_suspended(
    program: &Program<'_>,
) -> Result<std::result::Result<Suspended, LaunchFailure>> {
    let argv = pointers(program.argv);
    let environment = pointers(program.environment);
    let null =
        File::open("/dev/null").map_err(|error| ProbeError::system("open /dev/null", error))?;
    let (go_read, go_write) = pipe()?;
    let (news_read, news_write) = pipe()?;
    let plan = Plan {
        paths: program.paths,
        argv: &argv,
        environment: &environment,
        cwd: program.cwd,
        descriptors: [
            null.as_raw_fd(),
            program.stdout.as_raw_fd(),
            program.stderr.as_raw_fd(),
            program.report.as_raw_fd(),
        ],
        go: go_read.as_raw_fd(),
        news: news_write.as_raw_fd(),
        parent: std::process::id() as libc::pid_t,
    };
    // SAFETY: the child calls only async-signal-safe functions on memory that was prepared
    // before, whatever other threads of the runner do.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(ProbeError::last("fork")),
        0 => unsafe { run_child(&plan) },
        pid => pid as u32,
    };
    drop((go_read, news_write, null));
    let mut news = File::from(news_read);
    match read_news(&mut news) {
        Some(News::Ready) => Ok(Ok(Suspended {
            pid,
            go: go_write,
            news: news.into(),
        })),
        Some(News::Failed(failure)) => Ok(Err(failure)),
        None => Err(ProbeError::Unavailable(format!(
            "process {pid} died before it was ready"
        ))),
    }
}

/// A pipe whose ends no exec inherits: read end, write end.
pub fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors; each is owned from here on, once.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(ProbeError::last("make a pipe"));
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Makes reads from a descriptor return at once.
pub fn set_nonblocking(descriptor: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if result < 0 {
        return Err(ProbeError::last("make a descriptor non-blocking"));
    }
    Ok(())
}

/// Asks for a pipe buffer of this size; a smaller one is no failure.
pub fn widen_pipe(descriptor: BorrowedFd<'_>, bytes: i32) {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

enum News {
    Ready,
    Failed(LaunchFailure),
}

/// News are five bytes: a step (0: ready) and an errno.
fn read_news(pipe: &mut File) -> Option<News> {
    let mut bytes = [0; 5];
    pipe.read_exact(&mut bytes).ok()?;
    let step = match bytes[0] {
        0 => return Some(News::Ready),
        1 => Step::Prepare,
        2 => Step::ChangeDirectory,
        _ => Step::Exec,
    };
    let errno = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    Some(News::Failed(LaunchFailure {
        step,
        error: io::Error::from_raw_os_error(errno),
    }))
}

struct Plan<'a> {
    paths: &'a [CString],
    argv: &'a [*const libc::c_char],
    environment: &'a [*const libc::c_char],
    cwd: Option<&'a CStr>,
    descriptors: [RawFd; 4],
    go: RawFd,
    news: RawFd,
    parent: libc::pid_t,
}

/// The child's life up to its exec.
///
/// # Safety
/// Only in a freshly forked child. Calls nothing that allocates, locks or unwinds.
unsafe fn run_child(plan: &Plan<'_>) -> ! {
    unsafe {
        // Out of the way of 0…3 first.
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

/// No signal blocked, none ignored: neither the runner's mask nor what its own parent ignored.
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

/// Tries the paths in order; answers the errno that says most.
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
    // A runner that is gone is told nothing; the child ends either way.
    unsafe { libc::write(news, bytes.as_ptr().cast(), bytes.len()) };
}

fn errno() -> i32 {
    // SAFETY: the location is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
