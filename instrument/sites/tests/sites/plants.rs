//! Planted programs in C and C++, compiled here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use concurve_probe::proc_fs::ProcFs;
use concurve_sites::{Captured, Watched, Watcher};

use crate::plant::{Plant, Verdict, judge, true_sites};

const SAMPLES: usize = 40;
const LIMIT: Duration = Duration::from_secs(30);

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../benches/sites_programs")
        .join(name)
}

/// The verdict on a plant; none, with a word on it, if there is no such compiler here.
fn judged(compiler: &str, name: &str, options: &[&str]) -> Option<Verdict> {
    let options = ["-O2", "-pthread"].iter().chain(options);
    judged_build(compiler, name, &options.copied().collect::<Vec<_>>())
}

fn judged_build(compiler: &str, name: &str, options: &[&str]) -> Option<Verdict> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("plant");
    let mut build = Command::new(compiler);
    build
        // Never another version of Go from the network.
        .env("GOTOOLCHAIN", "local")
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source(name));
    match build.status() {
        Ok(status) => assert!(status.success(), "{build:?}"),
        Err(error) => {
            eprintln!("left out: {compiler}: {error}");
            return None;
        }
    }
    Some(judged_command(name, &[program.to_str().unwrap()]))
}

fn judged_command(name: &str, command: &[&str]) -> Verdict {
    let command: Vec<String> = command
        .iter()
        .chain(&["4"])
        .map(|it| (*it).into())
        .collect();
    let plant = Plant::start(&command).unwrap();
    let verdict = judge(&plant, &true_sites(&source(name)).unwrap(), SAMPLES, LIMIT);
    assert!(verdict.judged > 0, "{verdict:?}");
    // Only of a mutex of glibc it is said who has it.
    assert_eq!(verdict.misread, 0, "{verdict:?}");
    verdict
}

/// The verdict on a script; none, with a word on it, if there is no version of Python here whose frames are known.
fn judged_script(name: &str) -> Option<Verdict> {
    let known = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))";
    match Command::new("python3").args(["-c", known]).status() {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("left out: python3: {other:?}");
            return None;
        }
    }
    Some(judged_command(
        name,
        &["python3", source(name).to_str().unwrap()],
    ))
}

#[test]
fn sources_say_which_sites_there_are() {
    let sites = true_sites(&source("c/mutex.c")).unwrap();
    let functions: Vec<_> = sites.values().map(|it| it.function.as_str()).collect();
    assert_eq!(functions, ["add_left", "add_right"]);
    let says_owner = |name| {
        let sites = true_sites(&source(name)).unwrap();
        sites.values().map(|it| it.says_owner).collect::<Vec<_>>()
    };
    assert_eq!(says_owner("c/mutex.c"), [true, true]);
    assert_eq!(says_owner("cpp/std_mutex.cpp"), [true, true]);
    assert_eq!(says_owner("c/condition.c"), [true, false, true, false]);
    for other in [
        "c/rwlock.c",
        "c/semaphore.c",
        "rust/std_mutex.rs",
        "go/mutex.go",
    ] {
        assert_eq!(says_owner(other), [false, false], "{other}");
    }
}

#[test]
fn no_holder_is_read_of_another_kind_of_lock() {
    for name in ["c/rwlock.c", "c/semaphore.c", "c/condition.c"] {
        if let Some(verdict) = judged("gcc", name, &["-g"]) {
            assert_eq!(verdict.held, 0, "{name} {verdict:?}");
        }
    }
}

#[test]
fn a_pthread_mutex_is_found_at_its_line_and_with_its_holder() {
    if let Some(verdict) = judged("gcc", "c/mutex.c", &["-g"]) {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
        assert!(verdict.held > 0, "{verdict:?}");
        assert_eq!(verdict.holder, verdict.held, "{verdict:?}");
    }
}

#[test]
fn without_debug_information_there_is_the_function() {
    if let Some(verdict) = judged("gcc", "c/mutex.c", &["-fno-omit-frame-pointer"]) {
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
    }
}

#[test]
fn without_symbols_no_function_is_named() {
    if let Some(verdict) = judged("gcc", "c/mutex.c", &["-s"]) {
        assert_eq!(
            (verdict.unknown, verdict.wrong),
            (verdict.judged, 0),
            "{verdict:?}"
        );
    }
}

#[test]
fn a_mutex_of_cpp_is_found_in_its_method() {
    if let Some(verdict) = judged("g++", "cpp/std_mutex.cpp", &["-g"]) {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
    }
}

/// Its frame is found by a register that is not known.
#[test]
fn a_mutex_of_rust_is_found_at_its_line() {
    let edition = ["--edition", "2021", "-O", "-g"];
    if let Some(verdict) = judged_build("rustc", "rust/std_mutex.rs", &edition) {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
    }
}

#[test]
fn a_function_of_python_waits_for_the_interpreters_lock() {
    if let Some(verdict) = judged_script("python/gil.py") {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.named("GIL"), verdict.judged, "{verdict:?}");
    }
}

#[test]
fn a_lock_of_python_is_found_in_the_function_that_takes_it() {
    if let Some(verdict) = judged_script("python/lock.py") {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
        assert!(verdict.named("GIL") < verdict.judged, "{verdict:?}");
    }
}

#[test]
fn waits_in_pythons_library_are_those_of_its_caller() {
    if let Some(verdict) = judged_script("python/queue_of_one.py") {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
    }
}

#[test]
fn a_mutex_of_go_is_found_by_its_goroutines() {
    if let Some(verdict) = judged_build("go", "go/mutex.go", &["build", "-buildvcs=false"]) {
        assert_eq!(verdict.line, verdict.judged, "{verdict:?}");
        assert_eq!(verdict.function, verdict.judged, "{verdict:?}");
    }
}

#[test]
fn a_function_that_wakes_all_where_it_waits_is_a_barrier() {
    for options in [
        &["-g"][..],
        &["-fno-inline"],
        &["-g", "-fno-plt", "-no-pie", "-fno-pie"],
    ] {
        if let Some(verdict) = judged("gcc", "c/rounds.c", options) {
            let primitives: Vec<_> = verdict.primitives.keys().copied().collect();
            let is_barrier = |it: &&str| matches!(*it, "barrier" | "mutex");
            assert!(primitives.iter().all(is_barrier), "{options:?} {verdict:?}");
            assert!(primitives.contains(&"barrier"), "{options:?} {verdict:?}");
        }
    }
}

#[test]
fn a_function_that_wakes_all_elsewhere_is_none() {
    for options in [&["-g"][..], &["-fno-inline"]] {
        if let Some(verdict) = judged("gcc", "c/permit.c", options) {
            assert!(
                !verdict.primitives.contains_key("barrier"),
                "{options:?} {verdict:?}"
            );
            assert!(
                verdict.primitives.contains_key("condition"),
                "{options:?} {verdict:?}"
            );
        }
    }
}

/// A thread that waits for ever, until another one executes the program again.
const EXECUTES: &str = "
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>
static sem_t never;
static void *waits(void *unused) {
    sem_wait(&never);
    return unused;
}
int main(int count, char **words) {
    pthread_t thread;
    char byte;
    if (count > 1) {
        alarm(60);
        return pause();
    }
    pthread_create(&thread, 0, waits, 0);
    while (read(0, &byte, 1) < 0) {}
    return execl(words[0], words[0], \"again\", (char *)0);
}
";

/// Whoever samples it need not ask whether what is mapped is that of another program.
#[test]
fn a_thread_ends_when_its_process_executes_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("it.c"), folder.path().join("it"));
    std::fs::write(&source, EXECUTES).unwrap();
    let mut build = Command::new("gcc");
    build.arg("-pthread").arg("-o").arg(&program).arg(&source);
    match build.status() {
        Ok(status) => assert!(status.success(), "{build:?}"),
        Err(error) => return eprintln!("left out: gcc: {error}"),
    }
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (proc_fs, pid) = (ProcFs::default(), child.id());
    let begin = Instant::now();
    let until = |is_so: &mut dyn FnMut() -> bool| {
        while !is_so() {
            assert!(begin.elapsed() < LIMIT);
            thread::sleep(Duration::from_millis(1));
        }
    };
    let mut tid = pid;
    until(&mut || {
        let threads = proc_fs.threads(pid).unwrap();
        tid = threads.into_iter().find(|it| *it != pid).unwrap_or(pid);
        tid != pid
    });
    let mut watcher = Watcher::new(proc_fs.clone());
    let mut watched = Watched::open(&proc_fs, pid, tid).unwrap();
    let call = proc_fs.open_syscall(pid, tid).unwrap();
    let mut captured = || {
        watcher.begin(&[pid]);
        watcher.capture(&mut watched, &call)
    };
    until(&mut || matches!(captured(), Some(Captured::Wait(_))));
    assert!(matches!(captured(), Some(Captured::SameWait(_))));
    drop(child.stdin.take());
    until(&mut || captured().is_none());
    assert!(proc_fs.threads(pid).is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
}
