//! Starts a program in two steps: forks a child that waits, then lets it exec.
//!
//! Between the steps the child has its number, its process group, its descriptors and its working
//! directory, and has run nothing of the program: then controls are set and counters attached. A
//! failure of either step is reported as such.
#![allow(unsafe_code)]

mod child;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use crate::{ProbeError, Result, control, open_files, pipe};
use child::Plan;

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

/// The descriptor on which a failed exec is reported. It closes when the exec succeeds.
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

/// Forks a child that prepares itself and waits. The caller does `meanwhile` what it has to do anyway.
pub fn spawn_suspended(
    program: &Program<'_>,
    meanwhile: impl FnOnce(),
) -> Result<std::result::Result<Suspended, LaunchFailure>> {
    let argv = pointers(program.argv);
    let environment = pointers(program.environment);
    let null =
        File::open("/dev/null").map_err(|error| ProbeError::system("open /dev/null", error))?;
    let (go_read, go_write) = pipe::open()?;
    let (news_read, news_write) = pipe::open()?;
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
        open_files: open_files::at_start(),
        timer_slack_ns: control::timer_slack_of_children(),
    };
    // SAFETY: the child calls only async-signal-safe functions on memory that was prepared
    // before, whatever other threads of the runner do.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(ProbeError::last("fork")),
        0 => unsafe { child::run(&plan) },
        pid => pid as u32,
    };
    drop((go_read, news_write, null));
    meanwhile();
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

/// What [`child::run`] reports.
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
