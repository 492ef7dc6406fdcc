//! Reads what the kernel reports about running programs.

use std::process::Child;
use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::program::{PATIENCE, Program};

/// Waits until `look` returns a value; fails after a time that suffices on any machine.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "never {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

pub fn thread_names(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let paths = tasks.into_iter().flatten().flatten().map(|it| it.path());
    let mut names: Vec<_> = paths
        .filter_map(|path| fs::read_to_string(path.join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect();
    names.sort();
    names
}

/// Fields of `/proc/PID/stat` from the third on.
pub fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

pub fn children_of(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|other| stat(*other).is_some_and(|it| it[1] == pid.to_string()))
        .collect()
}

/// CPU seconds of a program after its end: its own and those of its children that it waited for.
pub fn cpu_seconds_at_end(program: &mut Program) -> (f64, f64, Child) {
    let child = program.command.spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    let fields = stat(child.id()).unwrap();
    let seconds = |index: usize| fields[index].parse::<f64>().unwrap() / 100.0;
    (seconds(11) + seconds(12), seconds(13) + seconds(14), child)
}
