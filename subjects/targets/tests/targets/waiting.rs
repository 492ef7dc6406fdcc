//! Programs whose threads wait: asleep, for one another, for the disk.

use std::collections::BTreeSet;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::looking::{thread_names, until};
use crate::program::target;

#[test]
fn sleep_has_a_thread_for_each_sleeper() {
    let mut program = target("sleep --threads 5 --ms 3000");
    let child = program.command.spawn().unwrap();
    let pid = child.id();
    // A thread takes its name itself, some time after it has begun.
    let sleepers = ["worker-0", "worker-1", "worker-2", "worker-3", "worker-4"];
    until("five sleepers", || {
        let names = thread_names(pid);
        (names.len() == 6 && names[1..] == sleepers).then_some(())
    });
    program.finish(child).ok().measured(5.0, 5);
}

#[test]
fn mutex_does_its_operations_at_any_share() {
    for percent in ["0", "20", "80", "100", "50 --vary"] {
        let arguments = format!(
            "mutex --threads 4 --operations 1000 --operation-iterations 200 --hold-percent {percent}"
        );
        target(&arguments).run().ok().measured(1000.0, 4);
    }
}

#[test]
fn an_operation_is_as_long_as_asked_for_by_calibration() {
    let iterations = |us: u32| {
        let arguments = format!("mutex --operations 1 --operation-us {us}");
        let ended = target(&arguments).run().ok();
        ended.fact("iterations_per_operation").as_f64().unwrap()
    };
    // Of one calibration to the next, on a noisy machine.
    let ratios: Vec<f64> = (0..10).map(|_| iterations(100) / iterations(10)).collect();
    let near = |ratio: &f64| (5.0..20.0).contains(ratio);
    assert!(ratios.iter().any(near), "{ratios:?}");
}

#[test]
fn many_locks_parks_its_threads_on_locks_of_their_own() {
    let mut program = target("many-locks --threads 6 --operations 100 --every-ms 30");
    let child = program.command.spawn().unwrap();
    let pid = child.id();
    // On x86-64 a futex call shows as `202 0xADDRESS …`; elsewhere the number differs.
    let mut seen = BTreeSet::new();
    let look = || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        for task in tasks.flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let call = fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
            if let (true, Some(address)) = (name.starts_with("worker"), call.split(' ').nth(1)) {
                seen.insert(address.to_owned());
            }
        }
        (seen.len() >= 6).then_some(())
    };
    until("six addresses", look);
    program.finish(child).ok().measured(100.0, 6);
}

#[test]
fn shared_counter_loses_no_count() {
    for padded in ["", "--padded"] {
        let arguments = format!("shared-counter --threads 3 --operations 100001 {padded}");
        target(&arguments).run().ok().measured(100_001.0, 3);
    }
}

#[test]
fn switch_switches_voluntarily() {
    // On one CPU a thread must sleep before the other can run. Only this test's thread is bound.
    let me = Pid::from_raw(0);
    let allowed = sched_getaffinity(me).unwrap();
    let first = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap());
    let mut one = CpuSet::new();
    one.set(first.unwrap()).unwrap();
    sched_setaffinity(me, &one).unwrap();
    for through in ["condvar", "pipe"] {
        let arguments = format!("switch --threads 2 --operations 150000 --through {through}");
        let mut program = target(&arguments);
        let child = program.command.spawn().unwrap();
        let pid = child.id();
        until("1000 voluntary switches", || {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
            let switches = tasks.filter_map(|task| {
                let status = fs::read_to_string(task.path().join("status")).ok()?;
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
                line.trim().parse::<u64>().ok()
            });
            (switches.sum::<u64>() > 1000).then_some(())
        });
        program.finish(child).ok().measured(150_000.0, 2);
    }
}

#[test]
fn fsync_leaves_no_file_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let ended = target(&format!(
        "fsync --threads 2 --operations 7 --directory {path}"
    ))
    .run();
    ended.ok().measured(7.0, 2);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn fsync_leaves_no_file_behind_when_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let mut program = target(&format!("fsync --operations 1000000000 --directory {path}"));
    let child = program.command.spawn().unwrap();
    until("measuring", || {
        fs::metadata(program.report.path())
            .unwrap()
            .len()
            .gt(&0)
            .then_some(())
    });
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let ended = program.finish(child);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("stopped after"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
