//! Programs that have children, or end badly.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::looking::{children_of, cpu_seconds_at_end, stat, until};
use crate::program::target;

#[test]
fn fork_waits_for_its_children_and_their_cpu_time() {
    let mut program = target("fork --children 5 --cpu-ms 100 --parallel 2");
    let (_, children_s, child) = cpu_seconds_at_end(&mut program);
    program.finish(child).ok().measured(5.0, 1);
    assert!((0.4..1.5).contains(&children_s), "{children_s}");
}

#[test]
fn fork_leaves_orphans_that_work_on() {
    set_child_subreaper(true).unwrap();
    let mut program = target("fork --children 3 --cpu-ms 1500 --orphans");
    let child = program.command.spawn().unwrap();
    program.finish(child).ok().measured(3.0, 1);
    let me = std::process::id();
    let orphans = until("three orphans", || {
        let mine = children_of(me).into_iter().filter(|other| {
            let command = fs::read_to_string(format!("/proc/{other}/cmdline"));
            command.is_ok_and(|it| it.contains("--daemon"))
        });
        Some(mine.collect::<Vec<_>>()).filter(|orphans| orphans.len() == 3)
    });
    for orphan in orphans {
        let leads = || (stat(orphan)?[3] == orphan.to_string()).then_some(());
        until("a session of its own", leads);
        kill(Pid::from_raw(orphan as i32), Signal::SIGKILL).unwrap();
        waitpid(Pid::from_raw(orphan as i32), None).unwrap();
    }
}

#[test]
fn crash_ends_as_requested() {
    for (how, signal) in [
        ("KILL", 9),
        ("SEGV", 11),
        ("ABRT", 6),
        ("TERM", 15),
        ("BUS", 7),
    ] {
        let ended = target(&format!("crash --signal {how}")).run();
        assert_eq!(
            ended.status.signal(),
            Some(signal),
            "{how}: {}",
            ended.stderr
        );
    }
    assert_eq!(target("crash --exit-code 37").run().status.code(), Some(37));
    let ended = target("crash --panic --after-ms 1").run();
    assert_eq!(ended.status.code(), Some(101));
    assert!(ended.stderr.contains("requested by --panic"));
}

#[test]
fn hang_ignores_sigterm_and_its_children_outlive_it() {
    set_child_subreaper(true).unwrap();
    let mut program = target("hang --ignore-term --children 2 --own-sessions --limit-s 120");
    program.command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut parent = program.command.spawn().unwrap();
    let pid = parent.id();
    let blocks = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigBlk:\t"))?;
        (u64::from_str_radix(mask, 16).ok()? & 1 << 14 != 0).then_some(())
    };
    let children = until("two children", || {
        Some(children_of(pid)).filter(|children| children.len() == 2)
    });
    for one in children.iter().chain([&pid]) {
        until("SIGTERM blocked", || blocks(*one));
        kill(Pid::from_raw(*one as i32), Signal::SIGTERM).unwrap();
    }
    thread::sleep(Duration::from_millis(20));
    assert!(parent.try_wait().unwrap().is_none());
    parent.kill().unwrap();
    parent.wait().unwrap();
    for child in children {
        // It blocks SIGTERM from its beginning, as its parent does, and makes its session after that.
        until("a session of its own", || {
            let fields = stat(child).expect("children outlive the parent");
            assert_ne!(fields[0], "Z");
            (fields[3] == child.to_string()).then_some(())
        });
        kill(Pid::from_raw(child as i32), Signal::SIGKILL).unwrap();
        waitpid(Pid::from_raw(child as i32), None).unwrap();
    }
}
