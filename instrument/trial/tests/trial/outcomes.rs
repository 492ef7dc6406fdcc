//! How trials end, and what their records say of it.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use concurve_wire::record::{EndedBy, Exit, OutcomeKind};
use nix::sys::signal::Signal;

use crate::common::{self, Trial, alive_with, python, record, role, runner, taskstats_granted};

#[test]
fn a_program_that_succeeds() {
    let record = record(role("target", ["true"]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    let target = &record.roles[0];
    assert_eq!(target.exit, Some(Exit::Code(0)));
    assert_eq!(target.ended_by, Some(EndedBy::Itself));
    assert_eq!(target.wall_ns, record.wall_ns);
    assert!(target.usage.cpu_ns.unwrap() > 0);
    assert!(target.usage.rss_bytes_max.unwrap() > 100_000);
    assert!(record.instrument.clock_step_ns > 0);
}

#[test]
fn a_program_that_does_not_exist() {
    for program in ["no-such-program", "/no/such/program"] {
        let record = record(role("target", [program]).into());
        assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
        assert_eq!(record.outcome.role.as_deref(), Some("target"));
        assert!(record.outcome.message.unwrap().contains("not found"));
        assert_eq!((record.roles[0].pid, record.roles[0].exit), (None, None));
    }
}

#[test]
fn a_first_process_that_cannot_be_forked() {
    // Root may start any number.
    let privileges: &[&str] = match nix::unistd::geteuid().is_root() {
        true => &common::NOBODY,
        false => &[],
    };
    if !privileges.is_empty() && !common::can_run_as_nobody() {
        return;
    }
    let trial = role("target", ["true"]).into();
    let record = common::record_as(privileges, "prlimit --nproc=1 --pid=$$", trial);
    assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
    let message = record.outcome.message.unwrap();
    assert!(message.contains("fork"), "{message}");
    assert!(!message.contains("still run"), "nothing was there: {message}");
    assert_eq!(record.roles[0].pid, None);
}

#[test]
fn a_file_that_is_not_executable_and_a_directory_that_is_not_there() {
    let message = |trial: Trial| {
        let record = record(trial);
        assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
        record.outcome.message.unwrap()
    };
    assert!(message(role("target", ["/etc/passwd"]).into()).contains("chmod"));
    let mut lost = role("target", ["true"]);
    lost["cwd"] = "/no/such/place".into();
    assert!(message(lost.into()).contains("/no/such/place"));
}

#[test]
fn a_server_that_leaves_for_the_background_is_told_of_its_option() {
    let mut daemon = role("server", ["sh", "-c", "exit 0"]);
    daemon["end"] = "serve".into();
    daemon["ready"] = "report".into();
    let message = |trial: Trial| record(trial).outcome.message.unwrap();
    let both = Trial::of([daemon, role("target", ["true"])]);
    assert!(message(both).contains("option to stay in the foreground"));
}

#[test]
fn failures_quote_the_last_line_of_standard_error() {
    let record = record(role("target", ["sh", "-c", "echo one >&2; echo two >&2; exit 3"]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::ProgramFailed);
    assert!(record.outcome.message.unwrap().ends_with("two"));
    assert_eq!(record.roles[0].exit, Some(Exit::Code(3)));
    assert_eq!(record.roles[0].stderr.head, "one\ntwo\n");
}

#[test]
fn death_by_signal() {
    let record = record(role("target", ["sh", "-c", "kill -SEGV $$"]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::ProgramFailed);
    assert_eq!(record.roles[0].exit, Some(Exit::Signal(libc::SIGSEGV)));
    assert!(record.outcome.message.unwrap().contains("SIGSEGV"));
}

#[test]
fn the_time_limit_kills_programs_that_ignore_sigterm() {
    let mark = format!("31.{}", std::process::id());
    let script = format!("trap '' TERM; (trap '' TERM; setsid sleep {mark}) & sleep {mark} & wait");
    let mut trial = Trial::from(role("target", ["sh", "-c", &script]));
    trial.0["time_limit_ns"] = 200_000_000.into();
    let begun = Instant::now();
    let record = record(trial);
    assert_eq!(record.outcome.kind, OutcomeKind::TimedOut);
    assert_eq!(record.roles[0].ended_by, Some(EndedBy::Killed));
    assert_eq!(record.roles[0].exit, Some(Exit::Signal(libc::SIGKILL)));
    assert!(record.wall_ns >= 200_000_000);
    assert!(begun.elapsed() < Duration::from_secs(25));
    assert_eq!(alive_with(&mark), 0);
}

#[test]
fn a_daemon_left_behind_is_killed_and_counted_once() {
    let code = "
import os, time
def burn(s):
    t = time.process_time()
    while time.process_time() - t < s: pass
burn(0.1)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        burn(0.15)
        os.write(w, b'x')
        time.sleep(60)
    os._exit(0)
os.read(r, 1)
";
    let code = format!("import os\nr, w = os.pipe()\n{code}");
    let record = record(role("target", [python(), "-c", &code]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let target = &record.roles[0];
    assert_eq!(target.stragglers_killed, 1);
    let cpu_ns = target.usage.cpu_ns.unwrap();
    assert!((250_000_000..900_000_000).contains(&cpu_ns), "{cpu_ns}");
    if taskstats_granted() {
        assert_eq!(target.threads.processes, Some(3));
    }
}

#[test]
fn an_interruption_kills_and_records() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mark = format!("32.{}{}", std::process::id(), signal as i32);
        let script = format!("setsid sleep {mark} & sleep {mark}");
        let trial = Trial::from(role("target", ["sh", "-c", &script]));
        let mut child = runner()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(trial.0.to_string().as_bytes())
            .unwrap();
        let begun = Instant::now();
        while alive_with(&mark) < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "never started");
            std::thread::sleep(Duration::from_millis(5));
        }
        concurve_probe::process::kill(child.id(), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let record = common::parse(&output.stdout);
        assert_eq!(record.outcome.kind, OutcomeKind::Interrupted);
        assert_eq!(record.roles[0].ended_by, Some(EndedBy::Killed));
        assert_eq!(alive_with(&mark), 0);
    }
}

#[test]
fn the_death_of_the_parent_ends_the_trial() {
    let mark = format!("33.{}", std::process::id());
    let trial = Trial::from(role("target", ["sleep", &mark]));
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("spec.json");
    std::fs::write(&spec, trial.0.to_string()).unwrap();
    let script = format!("'{}' < '{}' & sleep 30", common::RUNNER, spec.display());
    let mut parent = std::process::Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while alive_with(&mark) < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begun = Instant::now();
    while alive_with(&mark) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(25));
        std::thread::sleep(Duration::from_millis(5));
    }
}
