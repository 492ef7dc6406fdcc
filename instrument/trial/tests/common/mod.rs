//! Starts the runner on a spec and reads its record.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use concurve_wire::record::TrialRecord;
use serde_json::{Value, json};

/// A name that no other test has: a runner that was killed leaves processes, which are found by it.
pub const TRIAL: &str = "tests-of-the-runner";

pub const RUNNER: &str = env!("CARGO_BIN_EXE_trial");

/// Arguments of setpriv that drop all privileges.
pub const NOBODY: [&str; 5] = [
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all",
    "--no-new-privs",
];

/// A spec under construction.
pub struct Trial(pub Value);

impl From<Value> for Trial {
    fn from(role: Value) -> Self {
        Self::of([role])
    }
}

impl Trial {
    pub fn of(roles: impl Into<Vec<Value>>) -> Self {
        let roles: Vec<Value> = roles.into();
        let limit_ns = 60_000_000_000u64;
        Self(json!({"format": 1, "trial": TRIAL, "roles": roles, "time_limit_ns": limit_ns}))
    }
}

pub fn role<'a>(name: &str, argv: impl IntoIterator<Item = &'a str>) -> Value {
    let argv: Vec<&str> = argv.into_iter().collect();
    json!({"name": name, "argv": argv})
}

pub fn runner() -> Command {
    Command::new(RUNNER)
}

pub fn run(arguments: &[&str], input: &str) -> Output {
    feed(runner().args(arguments), input)
}

pub fn record(trial: Trial) -> TrialRecord {
    let output = run(&[], &trial.0.to_string());
    assert!(output.status.success(), "{output:?}");
    parse(&output.stdout)
}

/// A command of the runner as the user nobody, from a copy that this user may execute.
pub fn record_without_privilege(trial: Trial) -> TrialRecord {
    record_as(&NOBODY, "true", trial)
}

/// The same with the privileges that setpriv leaves it, after a command of the shell that sets limits. A runner
/// that does not end is ended.
pub fn record_as(privileges: &[&str], limits: &str, trial: Trial) -> TrialRecord {
    let folder = folder_for_all();
    let copy = copy_of(RUNNER, &folder.path().join("trial"));
    let script = format!("{limits}; exec '{}'", copy.display());
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "60", "setpriv"])
        .args(privileges)
        .args(["sh", "-c", &script])
        .current_dir("/");
    let output = feed(&mut command, &trial.0.to_string());
    assert!(output.status.success(), "{output:?}");
    parse(&output.stdout)
}

/// The record of a runner under limits that a command of the shell sets.
pub fn record_under(limits: &str, trial: Trial) -> TrialRecord {
    record_as(&[], limits, trial)
}

/// A temporary folder in which each user may execute programs.
pub fn folder_for_all() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// `cp` writes the copy: if this process wrote it, a child that another test forks would inherit the
/// descriptor, and a file that is open for writing cannot be executed.
pub fn copy_of(program: &str, copy: &Path) -> PathBuf {
    let copied = Command::new("cp").arg(program).arg(copy).status().unwrap();
    assert!(copied.success());
    copy.to_owned()
}

pub fn parse(stdout: &[u8]) -> TrialRecord {
    let text = std::str::from_utf8(stdout).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "one line");
    serde_json::from_str(text).unwrap()
}

/// The threads' own CPU time over that of `wait4`, the best of a few trials. The counters run on
/// while a hypervisor or an interrupt has the CPU and `wait4`'s clock does not, so one trial
/// may be off by what was stolen from it; an error in the accounts would be in each.
pub fn own_to_wait4(mut trial: impl FnMut() -> TrialRecord) -> f64 {
    let mut ratio = || {
        let role = &trial().roles[0];
        role.threads.cpu_ns.unwrap() as f64 / role.usage.cpu_ns.unwrap() as f64
    };
    let farness = |ratio: &f64| (ratio - 1.0).abs();
    let ratios = std::iter::repeat_with(&mut ratio).take(20);
    let mut best = f64::INFINITY;
    for ratio in ratios {
        if farness(&ratio) < farness(&best) {
            best = ratio;
        }
        if farness(&best) < 0.005 {
            break;
        }
    }
    best
}

/// The interpreter itself, not a script that starts it.
pub fn python() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let output = Command::new("python3")
            .args([
                "-c",
                "import os, sys; print(os.path.realpath(sys.executable))",
            ])
            .output()
            .expect("python3 is needed by these tests; apt-get install python3");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
}

pub fn taskstats_granted() -> bool {
    granted("taskstats")
}

/// Whether births and deaths are reported. At the usual setting an unprivileged user gets them too.
pub fn lives_granted() -> bool {
    granted("perf_lives")
}

/// Whether it is sampled where threads run.
pub fn samples_granted() -> bool {
    granted("perf_samples")
}

fn granted(probe: &str) -> bool {
    static PROBES: OnceLock<Value> = OnceLock::new();
    let probes = PROBES.get_or_init(|| {
        let output = run(&["probes"], "");
        serde_json::from_slice(&output.stdout).unwrap()
    });
    probes[probe]["granted"] == true
}

/// Whether setpriv can run programs as the user nobody here.
pub fn can_run_as_nobody() -> bool {
    let probe = Command::new("setpriv").args(NOBODY).arg("true").output();
    probe.is_ok_and(|output| output.status.success())
}

/// Processes that are alive and have `mark` on their command line.
pub fn alive_with(mark: &str) -> usize {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            if name == own || name.parse::<u32>().is_err() {
                return None;
            }
            let command = std::fs::read(path.join("cmdline")).ok()?;
            String::from_utf8_lossy(&command)
                .contains(mark)
                .then_some(())
        })
        .count()
}

fn feed(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A runner that refuses without reading closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}
