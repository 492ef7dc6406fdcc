//! Every target once, for real and small: what it does and what it says, never how long it
//! takes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use concurve_wire::report::{Edge, ReportLine};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getuid};
use tempfile::NamedTempFile;

const PROGRAM: &str = env!("CARGO_BIN_EXE_concurve-targets-under-test");

/// Longer than anything here takes on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose report channel is a file. The file is its stdin: that is a descriptor which
/// can be handed down without unsafe code, and the channel is opened anew through it anyway.
struct Program {
    command: Command,
    report: NamedTempFile,
}

/// What a program left behind.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    report: Vec<u8>,
}

fn target(arguments: &str) -> Program {
    wrapped(&[PROGRAM], arguments)
}

/// The target, started by another program that executes it.
fn wrapped(prefix: &[&str], arguments: &str) -> Program {
    let report = NamedTempFile::new().unwrap();
    let mut command = Command::new(prefix[0]);
    command
        .args(&prefix[1..])
        .args(arguments.split_whitespace())
        .env("CONCURVE_REPORT", "0")
        .stdin(report.reopen().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Program { command, report }
}

impl Program {
    fn run(mut self) -> Ended {
        let output = self.command.output().unwrap();
        self.ended(output)
    }

    fn ended(&self, output: std::process::Output) -> Ended {
        Ended {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: fs::read(self.report.path()).unwrap(),
        }
    }

    /// Waits for the end, and sees to it that it comes.
    fn finish(&self, mut child: Child) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the program did not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.ended(child.wait_with_output().unwrap())
    }
}

impl Ended {
    fn ok(self) -> Self {
        assert!(self.status.success(), "{}: {}", self.status, self.stderr);
        self
    }

    /// The report, of which every line must be valid.
    fn lines(&self) -> Vec<ReportLine> {
        let text = std::str::from_utf8(&self.report).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|it| panic!("{line}: {it}")))
            .collect()
    }

    fn indicator(&self, name: &str) -> f64 {
        let lines = self.lines();
        let found = lines.iter().find_map(|line| match line {
            ReportLine::Indicator(it) if it.indicator == name && it.worker.is_none() => {
                Some(it.value)
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no indicator {name}"))
    }

    fn fact(&self, name: &str) -> serde_json::Value {
        let lines = self.lines();
        let found = lines.iter().find_map(|line| match line {
            ReportLine::Fact(it) if it.fact == name => Some(it.value.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no fact {name}"))
    }

    fn worker_operations(&self) -> Vec<f64> {
        let values = self.lines().into_iter().filter_map(|line| match line {
            ReportLine::Indicator(it) => it.worker.map(|_| it.value),
            _ => None,
        });
        values.collect()
    }

    /// Asserts that the phase `measure` began and ended, in this order, and that the workers'
    /// operations sum to the program's.
    fn measured(self, operations: f64, workers: usize) -> Self {
        let edges: Vec<_> = self
            .lines()
            .into_iter()
            .filter_map(|line| match line {
                ReportLine::Phase(it) if it.phase == "measure" => Some((it.edge, it.at_ns)),
                _ => None,
            })
            .collect();
        assert!(
            matches!(edges[..], [(Edge::Begin, Some(begin)), (Edge::End, Some(end))] if begin <= end),
            "{edges:?}"
        );
        assert_eq!(self.indicator("operations"), operations);
        assert!(self.indicator("compute_seconds") > 0.0);
        assert_eq!(self.worker_operations().len(), workers);
        assert_eq!(self.worker_operations().iter().sum::<f64>(), operations);
        self
    }
}

/// Waits for something that is bound to happen; gives up after a time that no machine needs.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "never {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn thread_names(pid: u32) -> Vec<String> {
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
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

fn children_of(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|other| stat(*other).is_some_and(|it| it[1] == pid.to_string()))
        .collect()
}

/// CPU seconds of a program after its end: its own and those of its children that it waited for.
fn cpu_seconds_at_end(program: &mut Program) -> (f64, f64, Child) {
    let child = program.command.spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    let fields = stat(child.id()).unwrap();
    let seconds = |index: usize| fields[index].parse::<f64>().unwrap() / 100.0;
    (seconds(11) + seconds(12), seconds(13) + seconds(14), child)
}

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
    // It is our child now, and a zombie when it has ended.
    let ended = until("the competitor's end", || {
        let status = waitpid(Pid::from_raw(pid as i32), Some(WaitPidFlag::WNOHANG));
        status.ok().filter(|it| *it != WaitStatus::StillAlive)
    });
    assert_eq!(ended, WaitStatus::Exited(Pid::from_raw(pid as i32), 0));
}

#[test]
fn sleep_has_a_thread_for_each_sleeper() {
    let mut program = target("sleep --threads 5 --ms 1500");
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
    let mut program = target("many-locks --threads 6 --operations 40 --every-ms 30");
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
    program.finish(child).ok().measured(40.0, 6);
}

#[test]
fn shared_counter_loses_no_count() {
    for padded in ["", "--padded"] {
        let arguments = format!("shared-counter --threads 3 --operations 100001 {padded}");
        target(&arguments).run().ok().measured(100_001.0, 3);
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
fn thread_storm_reaches_what_it_was_asked_for() {
    let ended = target("thread-storm --threads 300")
        .run()
        .ok()
        .measured(300.0, 1);
    assert_eq!(ended.indicator("threads_reached"), 300.0);
    assert!(!ended.stdout.contains("limited"));
}

#[test]
fn churning_threads_end_at_once() {
    let ended = target("thread-storm --churn 200 --cpu-us 5").run();
    ended.ok().measured(200.0, 1);
}

#[test]
fn thread_storm_survives_the_limit_of_a_cgroup() {
    let Some(group) = PidsCgroup::create(40) else {
        eprintln!("skipped: no pids cgroup can be created here");
        return;
    };
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"",
        group.0.display()
    );
    let storm = |threads: &str| {
        let arguments = format!("thread-storm --threads {threads}");
        wrapped(&["sh", "-c", &enter, PROGRAM], &arguments).run()
    };

    // The first thread of the program counts too.
    let ended = storm("max").ok().measured(39.0, 1);
    assert_eq!(ended.indicator("threads_reached"), 39.0);
    let cause = ended.fact("threads_limited_by").to_string();
    assert!(
        cause.contains("pids cgroup") && cause.contains("40 of 40"),
        "{cause}"
    );
    assert!(cause.contains("EAGAIN"), "{cause}");

    let ended = storm("100");
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("reached 39 of 100 threads"),
        "{}",
        ended.stderr
    );
}

#[test]
fn thread_storm_survives_rlimit_nproc() {
    const NOBODY: u32 = 65_534;
    if !getuid().is_root() {
        eprintln!("skipped: needs root to become a user without other processes");
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = directory.path().join("targets");
    // By another process: a fork of another test would inherit the descriptor that this one
    // writes through, and nothing that is open for writing may be executed.
    let copied = Command::new("cp").arg(PROGRAM).arg(&program).status();
    assert!(copied.unwrap().success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();

    let path = program.to_str().unwrap();
    let mut storm = wrapped(
        &["prlimit", "--nproc=50:50", path],
        "thread-storm --threads max",
    );
    storm.command.uid(NOBODY).gid(NOBODY);
    fs::set_permissions(
        storm.report.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    )
    .unwrap();
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: prlimit is missing (util-linux)");
        return;
    }
    let ended = storm.run().ok();
    let cause = ended.fact("threads_limited_by").to_string();
    assert!(
        cause.contains("RLIMIT_NPROC") && cause.contains("of 50"),
        "{cause}"
    );
    let reached = ended.indicator("threads_reached");
    assert!((1.0..50.0).contains(&reached), "{reached}");
}

/// A cgroup for one test, removed at its end.
struct PidsCgroup(PathBuf);

impl PidsCgroup {
    fn create(limit: u32) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let roots = groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
            match controllers {
                "pids" => Some(Path::new("/sys/fs/cgroup/pids").join(path)),
                // Beside our own group: one with processes can have no children in version 2.
                "" => Some(Path::new("/sys/fs/cgroup").join(Path::new(path).parent()?)),
                _ => None,
            }
        });
        for root in roots {
            let group = Self(root.join(format!("concurve-test-{}", std::process::id())));
            if fs::create_dir(&group.0).is_ok()
                && fs::write(group.0.join("pids.max"), limit.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for PidsCgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn crash_ends_as_told() {
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
    assert!(ended.stderr.contains("as told"));
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
        let fields = stat(child).expect("children outlive the parent");
        assert_ne!(fields[0], "Z");
        assert_eq!(fields[3], child.to_string(), "a session of its own");
        kill(Pid::from_raw(child as i32), Signal::SIGKILL).unwrap();
        waitpid(Pid::from_raw(child as i32), None).unwrap();
    }
}

#[test]
fn garbage_is_garbage_and_a_valid_line_follows_it() {
    for kind in ["text", "binary", "huge-line", "unknown-keys"] {
        let ended = target(&format!("garbage --kind {kind} --amount 5000"))
            .run()
            .ok();
        let mut lines: Vec<_> = ended.report.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.pop(), Some(&b""[..]), "{kind} ends its last line");
        let last = lines.pop().unwrap();
        assert!(serde_json::from_slice::<ReportLine>(last).is_ok(), "{kind}");
        for line in lines {
            let parsed = serde_json::from_slice::<ReportLine>(line);
            assert!(parsed.is_err(), "{kind}: {}", String::from_utf8_lossy(line));
        }
    }
    let ended = target("garbage --kind partial").run().ok();
    assert!(!ended.report.is_empty() && !ended.report.ends_with(b"\n"));
    let ended = target("garbage --kind flood --amount 5000").run().ok();
    assert_eq!(ended.lines().len(), 5001);
}

#[test]
fn garbage_needs_a_channel() {
    let mut program = target("garbage --kind text");
    program.command.env_remove("CONCURVE_REPORT");
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("CONCURVE_REPORT"), "{}", ended.stderr);
}

#[test]
fn output_has_exactly_the_size_asked_for() {
    let ended = target("output --bytes 100001 --stream both").run().ok();
    assert_eq!((ended.stdout.len(), ended.stderr.len()), (100_001, 100_001));
    let ended = target("output --lines 1000 --line-bytes 50").run().ok();
    assert_eq!(ended.stdout.len(), 50_000);
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("line 1000 .."), "{last}");
}

#[test]
fn memory_is_resident() {
    let mut program = target("memory --bytes 48MiB --ms 1500");
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

#[test]
fn switch_switches_voluntarily() {
    // On one CPU a thread must sleep before the other can run; this test's thread alone is bound.
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
fn a_server_answers_each_request_of_its_clients_and_leaves_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("port");
    let file = port_file.to_str().unwrap();
    let mut server = target(&format!(
        "request-server --threads 3 --operation-iterations 1000 --limit-s 60 --port-file {file}"
    ));
    let serving = server.command.spawn().unwrap();
    until("ready", || {
        let report = fs::read_to_string(server.report.path()).unwrap();
        report.contains("ready").then_some(())
    });
    for busy in ["", "--busy"] {
        let client = target(&format!(
            "slow-client --threads 2 --operations 20 --think-us 200 {busy} --port-file {file}"
        ));
        client.run().ok().measured(20.0, 2);
    }
    // One that stays connected must not keep the server.
    let port: u16 = fs::read_to_string(&port_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let _idle = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    kill(Pid::from_raw(serving.id() as i32), Signal::SIGTERM).unwrap();
    server.finish(serving).ok().measured(40.0, 3);
    assert!(!port_file.exists());

    let alone = target(&format!("slow-client --operations 1 --port-file {file}")).run();
    assert_eq!(alone.status.code(), Some(1));
    assert!(
        alone.stderr.contains("is request-server ready?"),
        "{}",
        alone.stderr
    );
}

#[test]
fn serve_reports_ready_and_serves_until_sigterm() {
    let mut program = target("serve --ready-ms 5 --limit-s 120");
    let mut child = program.command.spawn().unwrap();
    let report = program.report.path().to_owned();
    until("ready", || {
        fs::metadata(&report).unwrap().len().gt(&0).then_some(())
    });
    thread::sleep(Duration::from_millis(20));
    assert!(child.try_wait().unwrap().is_none(), "left unasked");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let ended = program.finish(child).ok();
    assert!(matches!(ended.lines()[..], [ReportLine::Ready(_)]));

    let ended = target("serve --leave-after-ms 5 --limit-s 120").run().ok();
    assert_eq!(ended.lines().len(), 1);
}

#[test]
fn bad_values_are_refused_with_the_name_of_the_flag() {
    for (arguments, named) in [
        ("busy --threads 0 --cpu-ms 1", "--threads"),
        ("busy --threads 1", "--total-iterations"),
        ("busy --cpu-ms 1 --iterations 5", "--cpu-ms"),
        ("sleep --threads two --ms 1", "--threads"),
        ("mutex --operations 10 --hold-percent 101", "--hold-percent"),
        ("mutex --operations 10 --operation-us nan", "--operation-us"),
        ("mutex --operations 0", "--operations"),
        ("many-locks --operations 0", "--operations"),
        ("shared-counter --operations -5", "-5"),
        ("fsync --operations 5", "--directory"),
        ("fork --children 0", "--children"),
        ("thread-storm --threads 0", "--threads"),
        ("thread-storm --threads max --churn 3", "--churn"),
        ("crash --signal STOP", "--signal"),
        ("crash --exit-code 256", "--exit-code"),
        ("crash", "--signal"),
        ("garbage --kind nice", "--kind"),
        ("output --lines 1 --line-bytes 3", "--line-bytes"),
        ("memory --bytes 5MB", "--bytes"),
        ("switch --operations 0", "--operations"),
        ("noisy --mean-ms 0", "--mean-ms"),
        ("noisy --mean-ms 1 --cv=-1", "--cv"),
        ("serve --ready-ms soon", "--ready-ms"),
        ("juggle", "juggle"),
    ] {
        let ended = target(arguments).run();
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains(named),
            "{arguments}: {}",
            ended.stderr
        );
        assert!(ended.report.is_empty(), "{arguments}");
    }
}

#[test]
fn a_channel_that_cannot_be_opened_is_an_error() {
    for channel in ["99", "stdout"] {
        let mut program = target("sleep --ms 1");
        program.command.env("CONCURVE_REPORT", channel);
        let ended = program.run();
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains("CONCURVE_REPORT"), "{}", ended.stderr);
    }
}

#[test]
fn nothing_is_reported_without_a_channel() {
    let mut program = target("sleep --ms 1");
    program.command.env_remove("CONCURVE_REPORT");
    let ended = program.run().ok();
    assert!(ended.report.is_empty());
    assert!(ended.stdout.contains("compute_seconds"));
}

#[test]
fn a_flood_waits_for_a_slow_reader() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let mut program = target("garbage --kind flood --amount 20000");
    program.command.stdin(Stdio::from(writer));
    let mut child = program.command.spawn().unwrap();
    drop(program);
    thread::sleep(Duration::from_millis(20));
    let mut text = String::new();
    fs::File::from(reader).read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(text.lines().count(), 20_001);
}
