//! Accounts of threads and children, and of phases.

use concurve_wire::record::{OutcomeKind, ThreadSource};

use crate::common::{self, Trial, lives_granted, python, record, role, taskstats_granted};

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
    // The interpreter still runs for a short time after it has read its own CPU time.
    assert!((0.99..1.25).contains(&ratio), "{ratio}");
    if taskstats_granted() || lives_granted() {
        assert_eq!(target.threads.total, Some(201));
        assert_eq!(target.threads.processes, Some(201));
    }
}

#[test]
fn children_that_nobody_waits_for_are_accounted_for() {
    let code = "
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
        os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
";
    if !taskstats_granted() && !lives_granted() {
        return;
    }
    let record = record(role("target", [python(), "-c", code]).into());
    let usage = &record.roles[0].usage;
    let cpu_ns = usage.cpu_ns.unwrap();
    assert!(cpu_ns >= 500_000_000, "{cpu_ns}");
    for (name, value) in [
        ("user_ns", usage.user_ns),
        ("minor_faults", usage.minor_faults),
    ] {
        assert_eq!(value, None, "wait4 has a part of it");
        assert!(usage.absent[name].contains("not waited for"));
    }
    if taskstats_granted() {
        assert!(usage.voluntary_switches.is_some());
    }
}

/// Threads that begin and end within a phase; each gives up its CPU 50 times.
const SWITCHING: &str = "
import ctypes, os, time
libc = ctypes.CDLL(None)
def mark(edge):
    os.write(3, b'{\"phase\":\"measure\",\"edge\":\"%s\"}\\n' % edge)
def work(_):
    for _ in range(50): libc.usleep(1000)
work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)
mark(b'begin')
time.sleep(0.3)
for _ in range(4):
    thread = ctypes.c_ulong()
    if libc.pthread_create(ctypes.byref(thread), None, work, None): raise OSError
    libc.pthread_join(thread, None)
mark(b'end')
time.sleep(0.3)
";

#[test]
fn a_phase_has_the_switches_of_threads_that_ended_in_it() {
    if !taskstats_granted() {
        return;
    }
    let record = record(role("target", [python(), "-c", SWITCHING]).into());
    let usage = &record.roles[0].phases[0].usage;
    let switches = usage.voluntary_switches.unwrap() + usage.involuntary_switches.unwrap();
    // A slice ends with a switch. On a busy machine the edge may be read late, for both alike.
    let slices = usage.slices.unwrap();
    assert!(
        (slices / 2..=slices * 3 / 2 + 20).contains(&switches),
        "{usage:?}"
    );
}

#[test]
fn a_phase_without_exit_accounts_says_that_it_lacks_threads() {
    if !common::can_run_as_nobody() || !lives_granted() {
        return;
    }
    let trial = role("target", ["/usr/bin/python3", "-c", SWITCHING]);
    let record = common::record_without_privilege(trial.into());
    if record.outcome.kind == OutcomeKind::ExecFailed {
        return; // no python here that this user may execute
    }
    let usage = &record.roles[0].phases[0].usage;
    for name in ["run_queue_ns", "slices", "voluntary_switches"] {
        assert!(usage.absent[name].contains("threads ended"), "{usage:?}");
    }
    assert_eq!((usage.run_queue_ns, usage.voluntary_switches), (None, None));
    assert!(usage.cpu_ns.is_some());
}

/// Children that have computed before a phase, and that their parent waits for within it.
const POOL: &str = "
import os, time
def mark(edge):
    os.write(3, b'{\"phase\":\"measure\",\"edge\":\"%s\"}\\n' % edge)
    time.sleep(0.3)
ready, tell = os.pipe()
wait, go = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.close(go)
        while time.process_time() < 0.1: pass
        os.write(tell, b'x')
        os.read(wait, 1)
        os._exit(0)
for _ in range(4): os.read(ready, 1)
mark(b'begin')
os.close(go)
for _ in range(4): os.wait()
mark(b'end')
";

#[test]
fn a_phase_in_which_processes_end_has_their_cpu_time_or_says_that_it_lacks_it() {
    if !common::can_run_as_nobody() {
        return;
    }
    let trial = role("target", ["/usr/bin/python3", "-c", POOL]);
    let record = common::record_without_privilege(trial.into());
    if record.outcome.kind == OutcomeKind::ExecFailed {
        return; // no python here that this user may execute
    }
    let target = &record.roles[0];
    let usage = &target.phases[0].usage;
    assert_eq!(usage.run_queue_ns, None, "{usage:?}");
    assert!(usage.absent["run_queue_ns"].contains("ended meanwhile"));
    // A counter of the tree has what they used in the phase.
    if usage.cpu_ns.is_none() {
        assert!(usage.absent["cpu_ns"].contains("4 processes ended meanwhile"));
    }
    let has_counter = record.instrument.sources.iter().any(|it| it == "perf");
    assert_eq!(usage.cpu_ns.is_some(), has_counter, "{usage:?}");
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
    if taskstats_granted() || lives_granted() {
        assert_eq!(threads.total, Some(301));
        assert_eq!(threads.processes, Some(1));
    } else {
        assert!(threads.absent.contains_key("total"));
    }
    if taskstats_granted() {
        assert!(
            threads
                .listed
                .iter()
                .all(|thread| thread.source == ThreadSource::Exit)
        );
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
fn garbage_on_the_report_channel_is_reported_and_harmless() {
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
    // The program sleeps after each edge: on a busy machine the runner reads late.
    assert!((100_000_000..200_000_000).contains(&cpu_ns), "{cpu_ns}");
    assert!(phase.wall_ns >= 450_000_000);
    assert!(phase.usage.cpu_ns < target.usage.cpu_ns);
    assert!(phase.begin_ns >= 100_000_000);
}

#[test]
fn what_a_server_used_in_its_clients_phase_is_reported() {
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
fn cache_misses_are_counted_or_said_to_be_absent_where_they_are_asked_for() {
    let code = "
import json, os
def mark(edge):
    line = json.dumps({'phase': 'measure', 'edge': edge}) + '\\n'
    os.write(int(os.environ['CONCURVE_REPORT']), line.encode())
mark('begin')
memory = bytearray(64 << 20)
for place in range(0, len(memory), 4096):
    memory[place] = 1
mark('end')
";
    let spec = || Trial::from(role("target", [python(), "-c", code]));
    let unasked = record(spec());
    let usage = &unasked.roles[0].usage;
    assert_eq!(usage.cache_misses, None);
    assert!(!usage.absent.contains_key("cache_misses"));

    let mut asking = spec();
    asking.0["cache_misses"] = serde_json::json!(true);
    let record = record(asking);
    let target = &record.roles[0];
    let phase = &target.phases[0].usage;
    let sources: Vec<_> = record.instrument.sources.iter().collect();
    let counts = sources.iter().any(|name| name.starts_with("cache_misses"));
    assert_eq!(counts, target.usage.cache_misses.is_some(), "{sources:?}");
    if counts {
        let (whole, part) = (target.usage.cache_misses, phase.cache_misses);
        assert!(part > Some(0) && part <= whole, "{part:?} of {whole:?}");
    } else {
        for usage in [&target.usage, phase] {
            assert!(!usage.absent["cache_misses"].is_empty());
        }
    }
}
