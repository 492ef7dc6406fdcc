//! Whole trials of real programs, judged by their records.

mod common;

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Trial, alive_with, python, record, role, runner, taskstats_granted};
use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::{EndedBy, Exit, OutcomeKind, ThreadSource};
use concurve_wire::spec::PolicyClass;
use serde_json::json;

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
fn failures_of_the_program_carry_its_last_words() {
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
fn the_time_limit_ends_even_what_resists() {
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
fn children_that_exit_at_once_are_accounted_for() {
    let code = "
import os, resource
for _ in range(200):
    if os.fork() == 0:
        sum(range(20000))
        os._exit(0)
    os.wait()
u = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(x.ru_utime + x.ru_stime for x in u))
";
    let record = record(role("target", [python(), "-c", code]).into());
    let target = &record.roles[0];
    let own_ns = target.stdout.head.trim().parse::<f64>().unwrap() * 1e9;
    let ratio = target.usage.cpu_ns.unwrap() as f64 / own_ns;
    // The interpreter goes on for a moment after it has looked.
    assert!((0.99..1.25).contains(&ratio), "{ratio}");
    if taskstats_granted() {
        assert_eq!(target.threads.total, Some(201));
        assert_eq!(target.threads.processes, Some(201));
    }
}

#[test]
fn threads_that_die_at_once_are_counted() {
    let code = "
import threading
for _ in range(300):
    t = threading.Thread(target=lambda: None)
    t.start()
    t.join()
";
    let record = record(role("target", [python(), "-c", code]).into());
    let threads = &record.roles[0].threads;
    if taskstats_granted() {
        assert_eq!(threads.total, Some(301));
        assert_eq!(threads.processes, Some(1));
        assert!(
            threads
                .listed
                .iter()
                .all(|thread| thread.source == ThreadSource::Exit)
        );
    } else {
        assert!(threads.absent.contains_key("total"));
    }
}

#[test]
fn the_threads_own_accounts_agree_with_wait4() {
    let code = "
import hashlib, threading
def work():
    for _ in range(40): hashlib.sha256(b'x' * 2000000).digest()
ts = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in ts]
[t.join() for t in ts]
";
    if !taskstats_granted() {
        return;
    }
    let ratio = common::own_to_wait4(|| record(role("target", [python(), "-c", code]).into()));
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn roles_are_ordinary_tasks_although_the_runner_is_not() {
    let script = "cut -d' ' -f19,41 /proc/self/stat";
    let record = record(role("target", ["sh", "-c", script]).into());
    let target = &record.roles[0];
    // The nice value is inherited, and these tests may run under one.
    let own = ProcFs::default().stat(std::process::id()).unwrap().nice;
    let ordinary = format!("{own} 0");
    assert_eq!(target.stdout.head.trim(), ordinary, "nice value, policy");
    let told = record.instrument.sources.contains(&"real_time".to_owned());
    assert!(told != record.instrument.absent.contains_key("real_time"));
}

#[test]
fn garbage_on_the_report_channel_is_told_and_harmless() {
    let script = "printf 'x\\n{\"ready\":1}\\n\\377\\n{\"indicator\":\"a_ns\",\"value\":2}\\n{\"fact\":' >&3";
    let record = record(role("target", ["sh", "-c", script]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    let target = &record.roles[0];
    assert_eq!(target.indicators.len(), 1);
    let lines: Vec<u64> = target
        .report_errors
        .iter()
        .map(|error| error.line)
        .collect();
    assert_eq!(lines, [1, 2, 3, 5]);
}

#[test]
fn phases_are_differences_between_their_edges() {
    let code = "
import os, time
def say(text): os.write(int(os.environ['CONCURVE_REPORT']), text.encode() + b'\\n')
def burn(s):
    t = time.process_time()
    while time.process_time() - t < s: pass
burn(0.1)
say('{\"phase\":\"a\",\"edge\":\"begin\",\"at_ns\":%d}' % time.monotonic_ns())
time.sleep(0.3)
burn(0.15)
say('{\"phase\":\"a\",\"edge\":\"end\",\"at_ns\":%d}' % time.monotonic_ns())
time.sleep(0.3)
burn(0.05)
say('{\"phase\":\"b\",\"edge\":\"end\"}')
say('{\"phase\":\"c\",\"edge\":\"begin\"}')
burn(0.05)
";
    let record = record(role("target", [python(), "-c", code]).into());
    let target = &record.roles[0];
    let names: Vec<_> = target
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.open))
        .collect();
    assert_eq!(names, [("a", false), ("c", true)]);
    assert_eq!(target.report_errors.len(), 1);
    let phase = &target.phases[0];
    let cpu_ns = phase.usage.cpu_ns.unwrap();
    // The program sleeps after each edge: a busy machine makes the runner look late.
    assert!((100_000_000..200_000_000).contains(&cpu_ns), "{cpu_ns}");
    assert!(phase.wall_ns >= 450_000_000);
    assert!(phase.usage.cpu_ns < target.usage.cpu_ns);
    assert!(phase.begin_ns >= 100_000_000);
}

#[test]
fn roles_start_in_order_and_servers_are_stopped() {
    let mut server = role(
        "server",
        [
            "sh",
            "-c",
            "trap 'echo bye; exit 0' TERM; sleep 0.1; echo '{\"ready\":true}' >&3; while :; do sleep 0.01; done",
        ],
    );
    server["end"] = "serve".into();
    server["ready"] = "report".into();
    let load = role("load", ["sleep", "0.05"]);
    let mut verify = role("verify", ["true"]);
    verify["after"] = json!(["load"]);
    let record = record(Trial::of([server, load, verify]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let [server, load, verify] = &record.roles[..] else {
        panic!()
    };
    assert_eq!(server.ended_by, Some(EndedBy::Stopped));
    assert_eq!(server.stdout.head, "bye\n");
    assert!(load.released_ns >= 100_000_000);
    assert!(verify.released_ns >= load.released_ns + load.wall_ns);
    assert_eq!(record.wall_ns, verify.released_ns + verify.wall_ns);
}

#[test]
fn what_a_server_used_in_its_clients_phase_is_told() {
    let mut server = role(
        "server",
        [
            "sh",
            "-c",
            "echo '{\"ready\":true}' >&3; trap 'exit 0' TERM; while :; do :; done",
        ],
    );
    server["end"] = "serve".into();
    server["ready"] = "report".into();
    let say = |edge: &str| format!("echo '{{\"phase\":\"measure\",\"edge\":\"{edge}\"}}' >&3");
    let (begin, end) = (say("begin"), say("end"));
    let words = format!("sleep 0.1; {begin}; sleep 0.3; {end}; sleep 0.1");
    let record = record(Trial::of([server, role("load", ["sh", "-c", &words])]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let [server, load] = &record.roles[..] else {
        panic!()
    };
    let (own, theirs) = (&load.phases[0], &server.phases[0]);
    assert_eq!(own.marked_by, None);
    assert_eq!(theirs.marked_by.as_deref(), Some("load"));
    assert_eq!(theirs.wall_ns, own.wall_ns);
    assert_eq!(theirs.begin_ns, own.begin_ns);
    let used = theirs.usage.cpu_ns.unwrap();
    assert!(used > 0 && used < server.usage.cpu_ns.unwrap());
    assert!(used > own.usage.cpu_ns.unwrap(), "the server spins");
}

#[test]
fn a_server_that_resists_is_killed_after_its_grace() {
    let mut server = role(
        "server",
        ["sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"],
    );
    server["end"] = "serve".into();
    let mut trial = Trial::of([server, role("load", ["sleep", "0.05"])]);
    trial.0["stop_grace_ns"] = 100_000_000.into();
    let record = record(trial);
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    assert_eq!(record.roles[0].ended_by, Some(EndedBy::Killed));
}

#[test]
fn a_server_that_dies_fails_the_trial() {
    let mut server = role("server", ["sh", "-c", "sleep 0.05; exit 0"]);
    server["end"] = "serve".into();
    let begun = Instant::now();
    let died = record(Trial::of([server.clone(), role("load", ["sleep", "30"])]));
    assert_eq!(died.outcome.kind, OutcomeKind::ProgramFailed);
    assert_eq!(died.outcome.role.as_deref(), Some("server"));
    assert_eq!(died.roles[1].ended_by, Some(EndedBy::Killed));
    assert!(begun.elapsed() < Duration::from_secs(25));
    server["ready"] = "report".into();
    let unready = record(Trial::of([server, role("load", ["sleep", "30"])]));
    assert_eq!(unready.outcome.kind, OutcomeKind::NotReady);
    assert_eq!(unready.roles[1].pid, None);
}

#[test]
fn controls_are_granted_and_read_back() {
    let script =
        "import os; print(sorted(os.sched_getaffinity(0)), os.nice(0), os.sched_getscheduler(0))";
    let mut target = role("target", [python(), "-c", script]);
    target["controls"] = json!({"cpus": [0], "nice": 7, "policy": {"class": "batch"}});
    let record = record(target.into());
    let target = &record.roles[0];
    assert_eq!(target.stdout.head, "[0] 7 3\n");
    assert_eq!(
        (target.controls.cpus.clone(), target.controls.nice),
        (Some(vec![0]), Some(7))
    );
    assert_eq!(target.controls.policy.unwrap().class, PolicyClass::Batch);
    let thread = &target.threads.listed[0];
    assert_eq!(
        (thread.nice, thread.policy.unwrap().class),
        (Some(7), PolicyClass::Batch)
    );
}

#[test]
fn a_cpu_that_does_not_exist_stops_the_trial_before_it_runs() {
    let mut target = role("target", ["true"]);
    target["controls"] = json!({"cpus": [0, 4000]});
    let record = record(target.into());
    assert_eq!(record.outcome.kind, OutcomeKind::ControlRefused);
    assert!(record.outcome.message.unwrap().contains("4000"));
    assert_eq!(record.roles[0].exit, None);
}

#[test]
fn without_privilege_refusals_name_the_capability() {
    if !common::nobody_to_be_had() {
        eprintln!("skipped: setpriv cannot drop privileges here");
        return;
    }
    for (controls, missing) in [
        (json!({"nice": -5}), "RLIMIT_NICE"),
        (
            json!({"policy": {"class": "fifo", "priority": 5}}),
            "RLIMIT_RTPRIO",
        ),
    ] {
        let mut target = role("target", ["true"]);
        target["controls"] = controls;
        let refused = common::record_without_privilege(target.into());
        assert_eq!(refused.outcome.kind, OutcomeKind::ControlRefused);
        let message = refused.outcome.message.unwrap();
        assert!(
            message.contains(missing) && message.contains("CAP_SYS_NICE"),
            "{message}"
        );
    }
    // What is not granted is absent with its reason; the rest is there.
    let record =
        common::record_without_privilege(role("target", ["sh", "-c", "true | true"]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    assert!(record.instrument.absent["taskstats"].contains("CAP_NET_ADMIN"));
    let target = &record.roles[0];
    assert!(target.usage.cpu_ns.unwrap() > 0);
    assert!(target.usage.run_queue_ns.is_none() && target.usage.absent.contains_key("slices"));
    match target.threads.absent.get("peak") {
        // The shell, and two more for the pipe, or one if the shell runs the last itself.
        None => assert!((2..=3).contains(&target.threads.processes.unwrap())),
        Some(_) => assert!(target.threads.absent.contains_key("total")),
    }
}

#[test]
fn output_of_any_length_is_drained_and_bounded() {
    let script = "head -c 100000000 /dev/zero | tr '\\0' a; printf end";
    let mut trial = Trial::from(role("target", ["sh", "-c", script]));
    trial.0["output_bytes_max"] = 1000.into();
    let record = record(trial);
    let output = &record.roles[0].stdout;
    assert_eq!((output.bytes, output.dropped), (100_000_003, 99_999_003));
    assert_eq!((output.head.len(), output.tail.len()), (500, 500));
    assert!(output.tail.ends_with("aend"));
}

#[test]
fn the_program_gets_its_four_descriptors_and_no_other() {
    let script = "import os; print(sorted(os.listdir('/proc/self/fd')), os.read(0, 1), os.environ['CONCURVE_REPORT'], os.environ['CONCURVE_TRIAL'])";
    let record = record(role("target", [python(), "-c", script]).into());
    // The fourth is the listing's own.
    assert_eq!(
        record.roles[0].stdout.head,
        "['0', '1', '2', '3', '4'] b'' 3 t\n"
    );
}

#[test]
fn signals_arrive_as_if_started_by_hand() {
    let script = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), [s for s in (signal.SIGTERM, signal.SIGCHLD) if signal.getsignal(s) != signal.SIG_DFL])";
    let record = record(role("target", [python(), "-c", script]).into());
    assert_eq!(record.roles[0].stdout.head, "set() []\n");
}

#[test]
fn an_interruption_kills_and_records() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mark = format!("32.{}{signal}", std::process::id());
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

#[test]
fn invalid_specs_are_exit_code_2() {
    for (text, expected) in [
        ("", "EOF"),
        ("{\"format\":1,\"trial\":\"t\",\"rolls\":[]}", "rolls"),
        ("{\"format\":1,\"trial\":\"t\",\"roles\":[]}", "roles"),
    ] {
        let output = common::run(&[], text);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn closed_standard_input_is_an_invalid_spec() {
    let script = format!("'{}' <&-", common::RUNNER);
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn check_runs_nothing_and_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let touched = folder.path().join("touched");
    let mut refused = role("refused", ["true"]);
    refused["controls"] = json!({"cpus": [4000]});
    let trial = Trial::of([
        role("good", ["touch", touched.to_str().unwrap()]),
        role("missing", ["no-such-program"]),
        role("plain", ["/etc/passwd"]),
        refused,
    ]);
    let output = common::run(&["check"], &trial.0.to_string());
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<_> = report["roles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|role| role["problem"]["kind"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            json!(null),
            json!("not_found"),
            json!("not_executable"),
            json!("control_refused")
        ]
    );
    assert!(report["roles"][0]["controls"]["cpus"].is_array());
    assert!(!touched.exists());
}

#[test]
fn probes_say_why_not() {
    let output = common::run(&["probes"], "");
    let probes: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, probe) in probes.as_object().unwrap() {
        let granted = probe["granted"].as_bool().unwrap();
        assert_eq!(granted, probe["reason"].is_null(), "{name}");
    }
    assert_eq!(probes["schedstat"]["granted"], true);
}
