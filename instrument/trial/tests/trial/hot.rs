//! Where in their programs threads run, by real programs that say so themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use concurve_wire::record::RoleRecord;

use crate::common::{Trial, record, role, samples_granted};

/// Two functions that no compiler merges: one takes four times as long as the other. Their lengths differ from
/// call to call: samples at equal distances would see one of two that alternate evenly too often.
const BUSY: &str = "
#define SPINS(name) __attribute__((noinline)) static void name(long n) { \\
    for (volatile long i = 0; i < n; i++) __asm__ volatile(\"\"); }
SPINS(much) SPINS(little)
int main() { for (long i = 0; i < 100; i++) { long n = 1000000 * (1 + i * i % 7); much(2 * n); little(n / 2); } }
";
/// Less than half of what a quiet machine gives.
const SAMPLES_MIN: u64 = 30;

/// A program of this source, unless there is no compiler here.
fn compiled(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-w", "-pthread", "-o"]);
    let done = compiler.arg(&program).arg(&file).status();
    done.is_ok_and(|it| it.success()).then_some(program)
}

fn target(argv: &[&str]) -> RoleRecord {
    let trial = record(Trial::of([role("target", argv.iter().copied())]));
    trial.roles.into_iter().next().unwrap()
}

#[test]
fn the_function_that_a_program_runs_in_is_found_in_whichever_process() {
    if !samples_granted() {
        return eprintln!("skipped: samples are not granted here (`concurve-trial probes`)");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), "busy", BUSY) else {
        return eprintln!("skipped: no gcc here");
    };
    let program = program.to_str().unwrap();
    let in_a_shell = format!("{program}; :");
    for argv in [&[program][..], &["sh", "-c", &in_a_shell]] {
        let role = target(argv);
        let hot = role
            .hot
            .as_ref()
            .unwrap_or_else(|| panic!("{:?}", role.absent));
        assert!(hot.samples >= SAMPLES_MIN, "{hot:?}");
        assert_eq!(hot.lost, 0, "{hot:?}");
        let first = &hot.listed[0];
        assert_eq!(first.function.as_deref(), Some("much"), "{hot:?}");
        assert_eq!((first.file.as_str(), first.first), ("busy", first.samples));
        let share = first.samples as f64 / hot.samples as f64;
        assert!((0.5..0.98).contains(&share), "{hot:?}");
    }
}

#[test]
fn a_program_that_hardly_runs_has_no_samples_and_says_why() {
    let role = target(&["true"]);
    if samples_granted() && role.hot.is_none() {
        let reason = &role.absent["hot"];
        assert!(reason.starts_with("too short"), "{reason}");
    }
}

/// Two threads that work by turns, and so switch 20,000 times in some two seconds of CPU time. Nearly all of that is in
/// one function.
const BY_TURNS: &str = "
#include <pthread.h>
#include <unistd.h>
static int there[2], back[2];
__attribute__((noinline)) static void work(void) { for (volatile long i = 0; i < 100000; i++); }
static void *other(void *unused) { char byte; while (read(there[0], &byte, 1) == 1) { work(); write(back[1], &byte, 1); }
    return unused; }
int main() { pthread_t thread; char byte = 0; pipe(there); pipe(back); pthread_create(&thread, 0, other, 0);
    for (int i = 0; i < 10000; i++) { write(there[1], &byte, 1); read(back[0], &byte, 1); } }
";

#[test]
fn who_switches_often_is_sampled_in_a_part_of_the_time() {
    if !samples_granted() {
        return eprintln!("skipped: samples are not granted here (`concurve-trial probes`)");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), "turns", BY_TURNS) else {
        return eprintln!("skipped: no gcc here");
    };
    let role = target(&[program.to_str().unwrap()]);
    let hot = role
        .hot
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", role.absent));
    assert!(hot.halved > 0, "{hot:?}");
    let all = role.usage.cpu_ns.unwrap() / 5_000_000;
    assert!(hot.samples > 0 && hot.samples < all / 2, "{all}: {hot:?}");
    assert_eq!(hot.files[0].name, "turns", "{hot:?}");
}

/// Two threads, of which one only looks at a word until the other has done its work, all in one function.
const SPINNING: &str = "
#include <pthread.h>
static volatile int done;
static void *body(void *first) {
    if (first) { for (volatile long i = 0; i < 200000000; i++); done = 1; }
    while (!done) __builtin_ia32_pause();
    return 0;
}
int main() { pthread_t one, other; pthread_create(&one, 0, body, 0); pthread_create(&other, 0, body, &other);
    pthread_join(one, 0); pthread_join(other, 0); }
";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_loop_that_waits_is_known_by_its_instructions() {
    if !samples_granted() {
        return eprintln!("skipped: samples are not granted here (`concurve-trial probes`)");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path(), "spin", SPINNING) else {
        return eprintln!("skipped: no gcc here");
    };
    let role = target(&[program.to_str().unwrap()]);
    let hot = role.hot.as_ref().unwrap();
    let body = &hot.listed[0];
    assert_eq!(body.function.as_deref(), Some("body"), "{hot:?}");
    // On a busy machine one of them may have run alone for long.
    assert!(body.waiting * 20 > body.samples, "{hot:?}");
    assert_eq!(hot.threads.len(), 2, "{hot:?}");
    let mut threads = hot.threads.clone();
    threads.sort_by_key(|it| it.waiting);
    assert_eq!(threads[0].waiting, 0, "{hot:?}");
    assert!(threads[1].waiting * 10 > threads[1].samples * 9, "{hot:?}");
}
