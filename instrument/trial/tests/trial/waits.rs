//! What real programs wait for, by samples. Shares are asserted loosely: other programs may delay
//! any of these for a while, but cannot change what it waits for.

use std::path::{Path, PathBuf};

use concurve_wire::record::{RoleRecord, SiteRecord, ThreadRecord, TrialRecord, Waits};
use serde_json::json;

use crate::common::{self, Trial, can_run_as_nobody, python, record, role};

/// Marks the phase `wait` around the program's own `wait()`.
const PHASED: &str = "
import os, time
def edge(edge):
    os.write(int(os.environ['CONCURVE_REPORT']), b'{\"phase\":\"wait\",\"edge\":\"%s\"}\\n' % edge)
def phased(wait):
    edge(b'begin'); wait(); edge(b'end')
";

/// Fewest samples of a thread whose shares are asserted.
const LOOKS_MIN: u64 = 5;

/// The record of a program that waits for `S` seconds; longer if the machine allows few samples.
fn target(code: &str) -> RoleRecord {
    looked_at(|seconds| {
        let code = format!("{PHASED}S = {seconds}\n{code}");
        record(role("target", [python(), "-c", &code]).into())
    })
}

fn looked_at(trial: impl Fn(f64) -> TrialRecord) -> RoleRecord {
    let role = |seconds| {
        let target = trial(seconds).roles.into_iter().next().unwrap();
        assert_eq!(target.stderr.head, "");
        target
    };
    let longest = 15.0;
    let mut roles = [0.6, 3.0].into_iter().map(role);
    roles.find(enough).unwrap_or_else(|| role(longest))
}

fn enough(role: &RoleRecord) -> bool {
    let looks = |thread: &ThreadRecord| thread.waits.as_ref().map_or(0, |waits| waits.readings);
    let mut threads = role.threads.listed.iter();
    is_forbidden(role) || threads.all(|thread| looks(thread) >= LOOKS_MIN)
}

/// A host may forbid tracing to those without privilege.
fn is_forbidden(role: &RoleRecord) -> bool {
    let why = role.absent.get("waits");
    why.is_some_and(|why| why.contains("ptrace"))
}

/// Waits of the phase `wait`.
fn phase(role: &RoleRecord) -> &Waits {
    let phase = &role.phases[0];
    phase
        .waits
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", phase.absent))
}

/// A program that waits for one thing only does most of its waiting there. How long it runs, or
/// waits for a CPU, depends on the machine.
fn mostly(of_kind: u64, waits: &Waits) {
    let elsewhere = waits.readings - waits.running - of_kind;
    assert!(of_kind > elsewhere, "{waits:?}");
    let kinds = [
        waits.running,
        waits.futex,
        waits.disk,
        waits.network,
        waits.poll,
        waits.pipe,
        waits.sleep,
        waits.child,
        waits.file_lock.unwrap(),
        waits.memory.unwrap(),
        waits.wake_up.unwrap(),
        waits.other,
    ];
    assert_eq!(kinds.iter().sum::<u64>(), waits.readings, "{waits:?}");
}

#[test]
fn a_sleeper_sleeps() {
    let target = target("phased(lambda: time.sleep(S))");
    mostly(phase(&target).sleep, phase(&target));
    let whole = target.waits.unwrap();
    assert!(whole.readings >= target.phases[0].waits.as_ref().unwrap().readings);
    let thread = &target.threads.listed[0];
    // A sample that is taken after the thread's end counts for the role alone.
    let of_thread = thread.waits.as_ref().unwrap().readings;
    assert!((1..=whole.readings).contains(&of_thread), "{of_thread}");
}

#[test]
fn a_busy_thread_runs() {
    let code = "
def burn():
    begin = time.process_time()
    while time.process_time() - begin < S * 2 / 3: pass
phased(burn)
";
    let target = target(code);
    let waits = phase(&target);
    assert!(2 * waits.running > waits.readings, "{waits:?}");
}

/// Reads from a descriptor that is never written to, until it is closed.
fn reader(open: &str) -> RoleRecord {
    let code = format!(
        "
import select, socket, subprocess, threading
{open}
phased(wait)
"
    );
    target(&code)
}

#[test]
fn a_reader_of_a_pipe() {
    let target = reader(
        "
r, w = os.pipe()
threading.Timer(S, lambda: os.write(w, b'x')).start()
wait = lambda: os.read(r, 1)
",
    );
    let main = main_thread(&target);
    mostly(main.pipe, main);
}

#[test]
fn a_reader_of_a_socket_by_read_and_by_recv() {
    for wait in ["os.read(a.fileno(), 1)", "a.recv(1)"] {
        let target = reader(&format!(
            "
a, b = socket.socketpair()
threading.Timer(S, lambda: b.send(b'x')).start()
wait = lambda: {wait}
"
        ));
        let main = main_thread(&target);
        mostly(main.network, main);
    }
}

#[test]
fn a_poll_and_a_parent() {
    let polling = reader("wait = lambda: select.select([], [], [], S)");
    mostly(phase(&polling).poll, phase(&polling));
    let code = "
child = os.fork()
if child == 0:
    time.sleep(S)
    os._exit(0)
phased(lambda: os.waitpid(child, 0))
";
    let parent = target(code);
    let main = main_thread(&parent);
    mostly(main.child, main);
}

#[test]
fn who_watches_no_socket_waits_to_be_woken() {
    let waiting = |beside: &str| {
        let target = reader(&format!(
            "
r, w = os.pipe()
a, b = socket.socketpair()
watched = select.epoll()
for it in [r, {beside}]: watched.register(it, select.EPOLLIN)
threading.Timer(S, lambda: os.write(w, b'x')).start()
wait = watched.poll
"
        ));
        main_thread(&target).clone()
    };
    let inside = waiting("");
    mostly(inside.wake_up.unwrap(), &inside);
    let served = waiting("a");
    mostly(served.poll, &served);
}

#[test]
fn a_process_that_waits_for_a_lock_on_a_file() {
    let code = "
import fcntl, tempfile
file = tempfile.NamedTemporaryFile()
fcntl.flock(file, fcntl.LOCK_EX)
child = os.fork()
if child == 0:
    own = open(file.name)
    edge(b'begin'); fcntl.flock(own, fcntl.LOCK_EX); edge(b'end')
    os._exit(0)
time.sleep(S)
fcntl.flock(file, fcntl.LOCK_UN)
os.waitpid(child, 0)
";
    let target = target(code);
    let waits = phase(&target);
    assert!(waits.file_lock.unwrap() > 0, "{waits:?}");
    if let Some(sites) = target.sites.as_ref().filter(|it| it.readings > 0) {
        let of_files = |it: &SiteRecord| it.primitive == "file_lock" && it.call == "flock";
        assert!(sites.listed.iter().any(of_files), "{sites:?}");
    }
}

#[test]
fn a_thread_that_runs_while_another_waits_for_it_is_alone() {
    let code = "
import threading
def burn():
    begin = time.process_time()
    while time.process_time() - begin < S * 2 / 3: pass
gate = threading.Semaphore(0)
waiter = threading.Thread(target=gate.acquire)
waiter.start()
phased(burn)
gate.release()
waiter.join()
";
    let main = target(code);
    let main = main_thread(&main);
    assert!(
        main.alone.unwrap() > 0 && main.alone.unwrap() <= main.running,
        "{main:?}"
    );
}

/// Waits of the role's first thread over its life.
fn main_thread(role: &RoleRecord) -> &Waits {
    let mut threads = role.threads.listed.iter();
    let main = threads.find(|thread| Some(thread.tid) == role.pid).unwrap();
    main.waits
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", main.absent))
}

/// Three threads, of which one holds the lock.
const ONE_LOCK: &str = "
import threading
lock = threading.Lock()
def hold():
    for _ in range(10):
        with lock: time.sleep(S / 30)
def all():
    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
phased(all)
";

#[test]
fn one_lock_is_one_word_with_several_threads() {
    let target = target(ONE_LOCK);
    let waits = phase(&target);
    assert!(waits.futex > 0, "{waits:?}");
    let shared = waits.futexes.iter().find(|word| word.threads >= 2);
    let shared = shared.unwrap_or_else(|| panic!("{waits:?}"));
    assert!(shared.address.starts_with("0x"), "{shared:?}");
    assert_eq!(shared.pid, None, "one process");
    assert!(shared.readings <= waits.futex);
}

#[test]
fn threads_that_wait_for_a_lock_have_a_site() {
    let target = target(ONE_LOCK);
    let Some(sites) = &target.sites else {
        assert!(target.absent.contains_key("sites"), "{:?}", target.absent);
        return;
    };
    let tried = sites.readings + sites.unknown + sites.torn + sites.skipped;
    assert!(tried > 0, "{sites:?}");
    for site in &sites.listed {
        assert_eq!(site.call, "futex", "{site:?}");
        assert!(site.function.is_some() || site.line.is_none(), "{site:?}");
        // Python's locks are no mutexes of glibc.
        assert_eq!(site.held, None, "{site:?}");
    }
    // Of a version whose frames are known: what takes a lock, or starts and ends threads.
    let of_python = sites.listed.iter().filter(|it| it.runtime.is_some());
    for site in of_python.filter(|it| it.primitive == "mutex" && it.lock.is_none()) {
        let function = site.function.as_deref();
        assert!(matches!(function, Some("hold" | "all")), "{site:?}");
    }
    let listed: u64 = sites.listed.iter().map(|site| site.readings).sum();
    assert!(listed <= sites.readings, "{sites:?}");
}

#[test]
fn locks_of_their_own_are_words_of_their_own() {
    let code = "
import threading
gates = [threading.Semaphore(0) for _ in range(12)]
def all():
    threads = [threading.Thread(target=gate.acquire) for gate in gates]
    for thread in threads: thread.start()
    time.sleep(S)
    for gate in gates: gate.release()
    for thread in threads: thread.join()
phased(all)
";
    let target = target(code);
    let waits = phase(&target);
    assert!(waits.futex_words >= 12, "{waits:?}");
    assert_eq!(waits.futexes.len(), 8, "the list is bounded");
    let parked: Vec<&ThreadRecord> = target
        .threads
        .listed
        .iter()
        .filter(|thread| Some(thread.tid) != target.pid)
        .collect();
    assert_eq!(parked.len(), 12);
    for thread in parked {
        let waits = thread.waits.as_ref().unwrap();
        assert!(
            waits.futexes.is_empty() && waits.futex_words > 0,
            "{waits:?}"
        );
        assert!(thread.lived_ns.is_some() || thread.absent.contains_key("lived_ns"));
    }
}

#[test]
fn a_writer_that_flushes_waits_for_the_disk() {
    // Not on a tmpfs, where flushing costs nothing; some disks answer as fast.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("written");
    let code = format!(
        "
file = os.open({path:?}, os.O_CREAT | os.O_WRONLY)
def write():
    end = time.monotonic() + S
    while time.monotonic() < end:
        os.pwrite(file, b'x' * 4096, 0)
        os.fdatasync(file)
phased(write)
"
    );
    let target = target(&code);
    let waits = phase(&target);
    let slept = slept_share(&target);
    // Of few looks at a thread that sleeps a quarter of the time none may see it asleep.
    if slept < 0.5 {
        let folder = folder.path().display();
        return eprintln!("skipped: writers to {folder} hardly wait ({slept:.2} of the time)");
    }
    let elsewhere = waits.readings - waits.running - waits.disk;
    assert!(waits.disk > elsewhere, "{waits:?}");
}

/// Share of the phase in which its one thread neither ran nor waited for a CPU, by the kernel's
/// account.
fn slept_share(role: &RoleRecord) -> f64 {
    let phase = &role.phases[0];
    let awake = phase.usage.cpu_ns.unwrap() + phase.usage.run_queue_ns.unwrap_or(0);
    1.0 - awake as f64 / phase.wall_ns as f64
}

#[test]
fn every_absence_has_its_reason() {
    let record = record(role("target", ["true"]).into());
    let target = &record.roles[0];
    for (waits, absent) in [
        (&target.waits, &target.absent),
        (
            &target.threads.listed[0].waits,
            &target.threads.listed[0].absent,
        ),
    ] {
        assert_eq!(waits.is_none(), absent.contains_key("waits"), "{absent:?}");
    }
    let never = common::record(role("target", ["/no/such/program"]).into());
    assert!(never.roles[0].absent["waits"].contains("never ran"));
}

#[test]
fn a_process_each_has_its_words_named_with_it() {
    let code = "
import threading
def park():
    gate = threading.Semaphore(0)
    threading.Timer(S, gate.release).start()
    gate.acquire()
child = os.fork()
park()
if child == 0: os._exit(0)
os.waitpid(child, 0)
";
    let target = target(code);
    let waits = target.waits.unwrap();
    assert!(!waits.futexes.is_empty(), "{waits:?}");
    assert!(waits.futexes.iter().all(|word| word.pid.is_some()));
}

#[test]
fn an_unprivileged_user_gets_waits_too() {
    let system_python = "/usr/bin/python3";
    if !can_run_as_nobody() || !std::path::Path::new(system_python).exists() {
        return eprintln!("skipped: needs setpriv and {system_python}");
    }
    let target = looked_at(|seconds| {
        let code = format!("import time\ntime.sleep({seconds})");
        let trial = Trial::from(role("target", [system_python, "-c", &code]));
        common::record_without_privilege(trial)
    });
    match &target.waits {
        Some(waits) => mostly(waits.sleep, waits),
        None => assert!(is_forbidden(&target), "{target:?}"),
    }
    let thread = &target.threads.listed[0];
    if !thread.absent.contains_key("lived_ns") {
        let lived_ns = thread.lived_ns.unwrap_or(u64::MAX);
        assert!(lived_ns >= 600_000_000, "{thread:?}");
    }
}

#[test]
fn a_trial_that_asks_for_it_says_what_each_thread_did_in_its_course() {
    let code = "
import threading, time
def work():
    end = time.monotonic() + S
    while time.monotonic() < end: pass
thread = threading.Thread(target=work); thread.start()
thread.join(); time.sleep(S)";
    let trial = |seconds: f64| {
        let code = format!("S = {seconds}\n{code}");
        let mut trial = Trial::from(role("target", [python(), "-c", &code]));
        trial.0["sampling"] = json!({"thread_timelines": true});
        record(trial)
    };
    let role = looked_at(trial);
    let found = role.thread_timelines.unwrap();
    assert_eq!((found.threads, found.listed.len()), (2, 2));
    assert!(found.ends_ns.len() > 4, "{found:?}");
    assert!(found.ends_ns.is_sorted_by(|one, next| one < next));
    for thread in &found.listed {
        let until = thread.first as usize + thread.running.len();
        assert!(until <= found.ends_ns.len());
        assert_eq!(thread.running.len(), thread.runnable.len());
        assert_eq!(thread.running.len(), thread.waits.len());
        let shares = thread.running.iter().zip(&thread.runnable);
        assert!(shares.into_iter().all(|(a, b)| a + b <= 100));
    }
    // The worker is busy, or would like to be, to its end; the first thread waits.
    let busy = |place: usize| {
        let thread = &found.listed[place];
        let each = thread.running.iter().zip(&thread.runnable);
        each.map(|(a, b)| u64::from(a + b)).sum::<u64>() / thread.running.len() as u64
    };
    let worker = usize::from(busy(1) > busy(0));
    assert!(busy(worker) > 60, "{found:?}");
}

/// Blocks a thread in `mremap` until the program ends: a filter asks somebody about this call who never answers.
/// Nothing else calls it here.
const CHANGES_ITS_ADDRESS_SPACE: &str = "
import ctypes, threading
libc = ctypes.CDLL(None, use_errno=True)
MREMAP, SECCOMP, NO_NEW_PRIVILEGES, LISTEN = 25, 317, 38, 8
class Step(ctypes.Structure):
    _fields_ = [('code', ctypes.c_ushort), ('yes', ctypes.c_ubyte), ('no', ctypes.c_ubyte), ('k', ctypes.c_uint)]
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('steps', ctypes.POINTER(Step))]
def change():
    steps = (Step * 4)((0x20, 0, 0, 0), (0x15, 0, 1, MREMAP), (6, 0, 0, 0x7fc00000), (6, 0, 0, 0x7fff0000))
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.syscall(SECCOMP, 1, LISTEN, ctypes.byref(Filter(4, steps))) < 0:
        print('refused', flush=True)
    else:
        libc.syscall(MREMAP, 0, 0, 0, 0)
threading.Thread(target=change, daemon=True).start()
";

/// Whether the host let a program have its filter.
fn is_filtered(role: &RoleRecord) -> bool {
    let refused = role.stdout.head.contains("refused");
    if refused {
        eprintln!("left out: the host permits no filter of system calls that asks somebody");
    }
    !refused
}

/// The samples of a role's threads in all, and those that saw the change. A sample may have missed some thread, and
/// with the one that changes the address space it saw none.
fn turns_of(role: &RoleRecord) -> (u64, u64) {
    let changing = role.waits.as_ref().unwrap().memory.unwrap();
    assert!(changing >= LOOKS_MIN, "{role:?}");
    let threads = role.threads.listed.iter();
    let readings = threads.filter_map(|thread| thread.waits.as_ref().map(|waits| waits.readings));
    (readings.max().unwrap(), changing)
}

#[test]
fn no_stack_is_copied_while_the_address_space_changes() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let code = format!(
        "{CHANGES_ITS_ADDRESS_SPACE}
lock = threading.Lock()
lock.acquire()
waiter = threading.Thread(target=lock.acquire)
waiter.start()
time.sleep(S)
lock.release()
waiter.join()
os._exit(0)
"
    );
    let target = target(&code);
    if is_forbidden(&target) || !is_filtered(&target) {
        return;
    }
    let (turns, changing) = turns_of(&target);
    let sites = target.sites.as_ref().unwrap();
    assert!(sites.skipped > 0, "{sites:?}");
    // Before the first sample that saw the change, its waiter may have been copied.
    let tried = sites.readings + sites.unknown + sites.torn;
    assert!(
        tried + changing <= turns + 1,
        "{turns} {changing} {sites:?}"
    );
}

/// The same of a program in Go, and a second goroutine that waits for a lock.
const GO_CHANGES_ITS_ADDRESS_SPACE: &str = r#"
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type step struct {
	code    uint16
	yes, no uint8
	k       uint32
}
type filter struct {
	length uint16
	steps  *step
}

func change() {
	runtime.LockOSThread()
	steps := []step{{0x20, 0, 0, 0}, {0x15, 0, 1, 25}, {6, 0, 0, 0x7fc00000}, {6, 0, 0, 0x7fff0000}}
	all := filter{4, &steps[0]}
	syscall.RawSyscall6(syscall.SYS_PRCTL, 38, 1, 0, 0, 0, 0)
	if _, _, refused := syscall.RawSyscall(317, 1, 8, uintptr(unsafe.Pointer(&all))); refused != 0 {
		os.Stdout.WriteString("refused\n")
		return
	}
	syscall.Syscall6(25, 0, 0, 0, 0, 0, 0)
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	var lock sync.Mutex
	lock.Lock()
	go change()
	go lock.Lock()
	runtime.LockOSThread()
	end := time.Now().Add(time.Duration(seconds * 1e9))
	for time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	os.Exit(0)
}
"#;

/// A program in Go, built into a folder; none without the compiler.
fn built_in_go(folder: &Path, code: &str) -> Option<PathBuf> {
    let (source, program) = (folder.join("main.go"), folder.join("program"));
    std::fs::write(&source, code).unwrap();
    let mut build = std::process::Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]);
    build.arg(&program).arg(&source);
    // Never another version of Go from the network.
    match build.env("GOTOOLCHAIN", "local").status() {
        Ok(status) => assert!(status.success(), "{build:?}"),
        Err(error) => {
            eprintln!("left out: go: {error}");
            return None;
        }
    }
    Some(program)
}

/// A server that has no goroutine at a lock for a while, and then one, before it is ready.
const GO_SERVER: &str = r#"
package main

import (
	"os"
	"sync"
	"time"
)

func main() {
	time.Sleep(3 * time.Second)
	var lock sync.Mutex
	lock.Lock()
	go lock.Lock()
	time.Sleep(50 * time.Millisecond)
	os.NewFile(3, "report").WriteString("{\"ready\":true}\n")
	for {
		time.Sleep(time.Millisecond)
	}
}
"#;

#[test]
fn goroutines_of_a_server_are_those_under_its_load() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built_in_go(folder.path(), GO_SERVER) else {
        return;
    };
    let mut server = role("server", [program.to_str().unwrap()]);
    server["end"] = "serve".into();
    server["ready"] = "report".into();
    // A reading may fall into a moment in which the goroutine is on its way to the lock, and on a busy
    // machine all of a trial do. Of those before the load, which are most of all, none has it there.
    let mut found = Vec::new();
    for _ in 0..3 {
        let server = looked_at(|seconds| {
            let load = role("load", ["sleep", &seconds.to_string()]);
            record(Trial::of([server.clone(), load]))
        });
        if is_forbidden(&server) || server.absent.contains_key("runtime") {
            return;
        }
        let runtime = server.runtime.unwrap();
        let waited = runtime.waiting.get("sync.Mutex.Lock").copied().unwrap_or(0);
        if runtime.readings > 0 && 4 * waited >= 3 * runtime.readings {
            return;
        }
        found.push(runtime);
    }
    panic!("{found:?}");
}

#[test]
fn no_goroutine_is_read_while_the_address_space_changes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built_in_go(folder.path(), GO_CHANGES_ITS_ADDRESS_SPACE) else {
        return;
    };
    let target = looked_at(|seconds| {
        let seconds = seconds.to_string();
        record(role("target", [program.to_str().unwrap(), &seconds]).into())
    });
    if is_forbidden(&target) || !is_filtered(&target) {
        return;
    }
    let (turns, changing) = turns_of(&target);
    let runtime = target.runtime.as_ref().unwrap();
    // Those before the first sample that saw the change.
    assert!(
        runtime.readings + changing <= turns + 1,
        "{turns} {changing} {runtime:?}"
    );
    let says = target.absent.get("runtime");
    assert_eq!(says.is_some(), runtime.readings == 0, "{says:?}");
}
