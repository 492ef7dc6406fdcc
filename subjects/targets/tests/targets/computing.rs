//! Programs that use CPU time, or memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use concurve_reporter::line::ReportLine;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::looking::{cpu_seconds_at_end, thread_names, until};
use crate::program::{PROGRAM, target};

#[test]
fn busy_divides_a_fixed_number_of_iterations() {
    let ended = target("busy --threads 3 --total-iterations 100000")
        .run()
        .ok();
    let ended = ended.measured(100_000.0, 3);
    assert_eq!(ended.worker_operations(), [33_334.0, 33_333.0, 33_333.0]);
    assert!(
        ended.stdout.contains("operations 100000\n"),
        "{}",
        ended.stdout
    );

    let ended = target("busy --threads 3 --iterations-per-thread 1000").run();
    ended.ok().measured(3000.0, 3);
}

#[test]
fn busy_uses_the_cpu_time_that_it_was_asked_for() {
    let mut program = target("busy --threads 2 --cpu-ms 150");
    let (own_s, _, child) = cpu_seconds_at_end(&mut program);
    program.finish(child).ok();
    // User and system time are cut to ticks of 10 ms; start and end add a little.
    assert!((0.27..0.9).contains(&own_s), "{own_s}");
}

#[test]
fn busy_until_stopped_ends_well_at_sigterm() {
    let mut program = target("busy --threads 2 --until-stopped --limit-s 120");
    let child = program.command.spawn().unwrap();
    until("two workers", || {
        (thread_names(child.id()).len() == 3).then_some(())
    });
    let report = program.report.path().to_owned();
    until("measuring", || {
        fs::read_to_string(&report)
            .unwrap()
            .contains("begin")
            .then_some(())
    });
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let ended = program.finish(child).ok();
    assert!(matches!(ended.lines()[0], ReportLine::Ready(_)));
    let operations = ended.indicator("operations");
    ended.measured(operations, 2);
}

#[test]
fn busy_until_stopped_ends_with_its_parent() {
    set_child_subreaper(true).unwrap();
    // The shell lives until its stdin ends.
    let script = "\"$0\" busy --until-stopped --limit-s 60 <&- >&- 2>&- & echo $!; cat";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, PROGRAM])
        .env_remove("CONCURVE_REPORT");
    let mut shell = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(shell.stdout.as_mut().unwrap())
        .read_line(&mut first)
        .unwrap();
    let pid: u32 = first.trim().parse().unwrap();
    until("a worker", || (thread_names(pid).len() == 2).then_some(()));
    drop(shell.stdin.take());
    shell.wait().unwrap();
    // This process is its parent now, so it is a zombie when it has ended.
    let ended = until("the competitor's end", || {
        let status = waitpid(Pid::from_raw(pid as i32), Some(WaitPidFlag::WNOHANG));
        status.ok().filter(|it| *it != WaitStatus::StillAlive)
    });
    assert_eq!(ended, WaitStatus::Exited(Pid::from_raw(pid as i32), 0));
}

#[test]
fn noisy_draws_by_its_seed_and_uses_what_it_drew() {
    let draw = |seed: &str| {
        let arguments = format!("noisy --mean-ms 20 --cv 0.3 --dry-run {seed}");
        let ended = target(&arguments).run().ok();
        (ended.indicator("drawn_cpu_seconds"), ended.fact("seed"))
    };
    assert_eq!(draw("--seed 5"), draw("--seed 5"));
    assert_ne!(draw("--seed 5").0, draw("--seed 6").0);
    assert_ne!(draw("").1, draw("").1);

    let mut program = target("noisy --mean-ms 300 --cv 0 --seed 1");
    let (own_s, _, child) = cpu_seconds_at_end(&mut program);
    program.finish(child).ok();
    assert!((0.27..0.9).contains(&own_s), "{own_s}");
}

#[test]
fn memory_is_resident() {
    let mut program = target("memory --bytes 48MiB --ms 3000");
    let child = program.command.spawn().unwrap();
    let pid = child.id();
    until("48 MiB resident", || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        (kib >= 48 * 1024).then_some(())
    });
    program.finish(child).ok().measured((48 << 20) as f64, 1);
    let ended = target("memory --bytes 100000GiB").run();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("not available"), "{}", ended.stderr);
}
