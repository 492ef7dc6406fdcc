//! Every thread is counted exactly, with and without privilege, on an idle and on a busy machine.

use std::process::{Child, Command};

use concurve_wire::record::{OutcomeKind, RoleRecord, TrialRecord};

use crate::common::{self, Trial, can_run_as_nobody, lives_granted, python, record, role};

/// Threads of the C library, which are joined no earlier than they have left their program;
/// Python's own may be joined while they live.
const PTHREADS: &str = "
import ctypes, os
libc = ctypes.CDLL(None)
def create(function, argument=None):
    thread = ctypes.c_ulong()
    if libc.pthread_create(ctypes.byref(thread), None, function, argument): raise OSError
    return thread
";

/// Busy competitors that end by themselves.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start() -> Self {
        let code = "import time\nend = time.time() + 2\nwhile time.time() < end: pass";
        let spinner = || Command::new(python()).args(["-c", code]).spawn().unwrap();
        Self((0..4).map(|_| spinner()).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The role's record of a run as this user, and of one as the user nobody if setpriv allows it.
fn roles(code: &str) -> Vec<RoleRecord> {
    let code = format!("{PTHREADS}{code}");
    let trial = |python| Trial::from(role("target", [python, "-c", &code]));
    let mut records = vec![record(trial(python()))];
    if can_run_as_nobody() {
        // The user nobody may not be allowed to execute this user's python; the system's it may.
        let record = common::record_without_privilege(trial("/usr/bin/python3"));
        records.extend(Some(record).filter(|one| one.outcome.kind != OutcomeKind::ExecFailed));
    }
    let ended_well = |record: TrialRecord| {
        assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
        record.roles.into_iter().next()
    };
    records.into_iter().filter_map(ended_well).collect()
}

/// Total, peak, processes of each run; none if the host does not report births.
fn census(code: &str) -> Vec<(u64, u64, u64)> {
    if !lives_granted() {
        eprintln!("skipped: births and deaths are not granted here (`concurve-trial probes`)");
        return Vec::new();
    }
    let roles = roles(code).into_iter();
    let census = |role: RoleRecord| {
        let threads = role.threads;
        assert!(threads.absent.is_empty(), "{:?}", threads.absent);
        (
            threads.total.unwrap(),
            threads.peak.unwrap(),
            threads.processes.unwrap(),
        )
    };
    roles.map(census).collect()
}

const AT_ONCE: &str = "
read, write = os.pipe()
def held():
    libc.read(read, ctypes.create_string_buffer(1), 1)
held = ctypes.CFUNCTYPE(None)(held)
threads = [create(held) for _ in range(200)]
os.write(write, b'x' * 200)
for thread in threads: libc.pthread_join(thread, None)
";

#[test]
fn threads_alive_at_once() {
    for census in census(AT_ONCE) {
        assert_eq!(census, (201, 201, 1));
    }
}

#[test]
fn threads_alive_at_once_on_a_busy_machine() {
    let _spinners = Spinners::start();
    for census in census(AT_ONCE) {
        assert_eq!(census, (201, 201, 1));
    }
}

#[test]
fn threads_one_after_another() {
    let code = "
for _ in range(300): libc.pthread_join(create(libc.getpid), None)
";
    for (total, peak, processes) in census(code) {
        assert_eq!((total, processes), (301, 1));
        // Older kernels remove the counters after they have woken the joining thread.
        match kernel_at_least(6, 16) {
            true => assert_eq!(peak, 2),
            false => assert!((2..=301).contains(&peak)),
        }
    }
}

#[test]
fn processes_one_after_another() {
    let code = "
for _ in range(100):
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
";
    for census in census(code) {
        assert_eq!(census, (101, 2, 101));
    }
}

#[test]
fn children_that_start_threads() {
    let code = "
import threading
gate, opened = os.pipe()
def child():
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=barrier.wait) for _ in range(3)]
    for thread in threads: thread.start()
    barrier.wait()
    os.read(gate, 1)
    os._exit(0)
for _ in range(50):
    if os.fork() == 0: child()
os.write(opened, b'x' * 50)
for _ in range(50): os.wait()
";
    for (total, peak, processes) in census(code) {
        assert_eq!((total, processes), (201, 51));
        assert!((51..=201).contains(&peak), "{peak}");
    }
}

#[test]
fn a_storm_of_thousands() {
    let code = "
for _ in range(6000): libc.pthread_join(create(libc.getpid), None)
";
    for (total, _, _) in census(code) {
        assert_eq!(total, 6001);
    }
}

#[test]
fn killed_threads_count_as_dead() {
    let code = "
for _ in range(100): create(libc.pause)
os._exit(0)
";
    for census in census(code) {
        assert_eq!(census, (101, 101, 1));
    }
}

#[test]
fn each_phase_has_its_own_peak() {
    let code = "
import time
def edge(edge):
    line = '{\"phase\":\"p\",\"edge\":\"%s\",\"at_ns\":%d}\\n' % (edge, time.monotonic_ns())
    os.write(int(os.environ['CONCURVE_REPORT']), line.encode())
def together(count):
    for _ in range(count): create(libc.pause)
together(3)
edge('begin')
together(2)
edge('end')
together(5)
os._exit(0)
";
    for role in roles(code) {
        let expected = lives_granted().then_some(6);
        assert_eq!(role.phases[0].threads_peak, expected);
    }
}

#[test]
fn the_cpu_time_of_threads_lacks_only_the_end_of_each_exit() {
    let code = "
import hashlib
text = bytes(1_000_000)
def work():
    for _ in range(20): hashlib.sha256(text).digest()
work = ctypes.CFUNCTYPE(None)(work)
for _ in range(5):
    for thread in [create(work) for _ in range(4)]: libc.pthread_join(thread, None)
";
    if !lives_granted() {
        return;
    }
    let code = format!("{PTHREADS}{code}");
    let trial = |python| Trial::from(role("target", [python, "-c", &code]));
    let mut ratios = vec![common::own_to_wait4(|| record(trial(python())))];
    let system_python = "/usr/bin/python3";
    if can_run_as_nobody() && std::path::Path::new(system_python).exists() {
        let run = || common::record_without_privilege(trial(system_python));
        ratios.push(common::own_to_wait4(run));
    }
    for ratio in ratios {
        assert!((0.98..1.01).contains(&ratio), "{ratio}");
    }
}

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(major), Some(minor))
}
