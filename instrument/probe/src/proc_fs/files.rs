//! Files of `/proc` that are kept open, because they are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::schedstat::{self, Schedstat};
use crate::syscall::{self, Doing};
use crate::{ProbeError, Result};

/// A thread's `schedstat`, kept open.
#[derive(Debug)]
pub struct SchedstatFile(pub(super) File);

impl SchedstatFile {
    /// The thread's account now; none once it is gone.
    pub fn read(&self) -> Option<Schedstat> {
        schedstat::parse(read_small(&self.0, &mut [0; 96]).ok()?).ok()
    }
}

/// A thread's `syscall`, kept open.
#[derive(Debug)]
pub struct SyscallFile {
    pub(super) file: File,
    pub(super) path: String,
}

impl SyscallFile {
    /// What the thread is doing now; the error of a thread that has ended is ESRCH.
    pub fn read(&self) -> Result<Doing> {
        let mut buffer = [0; 256];
        let text = read_small(&self.file, &mut buffer)
            .map_err(|error| ProbeError::system(format!("read /proc/{}", self.path), error))?;
        syscall::parse(text)
    }
}

/// `/proc/loadavg`, whose last field is the number of the youngest task.
#[derive(Debug)]
pub struct LastPidFile(pub(super) File);

impl LastPidFile {
    /// Number of the task that was created last.
    pub fn read(&self) -> Option<u32> {
        let mut buffer = [0; 96];
        let text = read_small(&self.0, &mut buffer).ok()?;
        text.trim_end().rsplit(' ').next()?.parse().ok()
    }
}

fn read_small<'b>(file: &File, buffer: &'b mut [u8]) -> io::Result<&'b str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(io::Error::other)
}
