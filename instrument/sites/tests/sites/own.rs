//! Threads of this process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use concurve_fuzz::Target;
use concurve_probe::proc_fs::ProcFs;
use concurve_sites::{Captured, Primitive, Resolver, Samples, Watched, Watcher};

/// A thread that does not block by then will not.
const LIMIT: Duration = Duration::from_secs(30);

static TABLE: Mutex<u64> = Mutex::new(1);

#[inline(never)]
fn takes_the_table(tid: &AtomicU32) -> u64 {
    tid.store(own_tid(), Ordering::SeqCst);
    let table = TABLE.lock().unwrap();
    *table + 1
}

fn own_tid() -> u32 {
    nix::unistd::gettid().as_raw() as u32
}

/// Samples a thread again and again until it is blocked for a lock.
fn blocked(samples: &mut Samples, watcher: &mut Watcher, tid: u32) -> Watched {
    let proc_fs = ProcFs::default();
    let own = std::process::id();
    let mut thread = Watched::open(&proc_fs, own, tid).unwrap();
    let call = proc_fs.open_syscall(own, tid).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        watcher.begin(&[own]);
        if let Some(Captured::Wait(sample)) = watcher.capture(&mut thread, &call) {
            samples.add(Captured::Wait(sample));
            return thread;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("thread {tid} did not block");
}

#[test]
fn a_mutex_of_the_standard_library_is_found_where_it_is_taken() {
    let tid = AtomicU32::new(0);
    let mut samples = Samples::default();
    let mut watcher = Watcher::new(ProcFs::default());
    thread::scope(|scope| {
        let table = TABLE.lock().unwrap();
        let waiting = scope.spawn(|| takes_the_table(&tid));
        while tid.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let tid = tid.load(Ordering::SeqCst);
        let mut thread = blocked(&mut samples, &mut watcher, tid);
        // It waits still: nothing is copied again.
        let call = ProcFs::default()
            .open_syscall(std::process::id(), tid)
            .unwrap();
        let again = watcher.capture(&mut thread, &call).unwrap();
        assert!(matches!(again, Captured::SameWait(0)), "{again:?}");
        samples.add(again);
        drop(table);
        waiting.join().unwrap();
    });
    let sites = Resolver::default().resolve(&samples);
    assert_eq!((sites.readings, sites.unknown, sites.torn), (2, 0, 0));
    let [site] = sites.found.as_slice() else {
        panic!("{sites:?}")
    };
    let function = site.function.as_deref().unwrap();
    assert!(function.ends_with("takes_the_table"), "{site:?}");
    assert_eq!(site.primitive, Primitive::Mutex, "{site:?}");
    assert_eq!(
        (site.call, site.readings, site.threads.len()),
        ("futex", 2, 1)
    );
    // Its word says nothing of who has it.
    assert!(site.holders.is_empty(), "{site:?}");
    let lock = site.lock.as_deref().unwrap();
    assert!(lock.ends_with("::TABLE"), "{site:?}");
}

static HOSTILE: Mutex<u64> = Mutex::new(1);

#[inline(never)]
fn takes_the_hostile_one(tid: &AtomicU32) -> u64 {
    tid.store(own_tid(), Ordering::SeqCst);
    let table = HOSTILE.lock().unwrap();
    *table + 2
}

/// A program may have anything on its stack.
#[test]
fn whatever_stands_on_a_stack() {
    let tid = AtomicU32::new(0);
    let mut samples = Samples::default();
    let mut watcher = Watcher::new(ProcFs::default());
    thread::scope(|scope| {
        let table = HOSTILE.lock().unwrap();
        let waiting = scope.spawn(|| takes_the_hostile_one(&tid));
        while tid.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        blocked(&mut samples, &mut watcher, tid.load(Ordering::SeqCst));
        drop(table);
        waiting.join().unwrap();
    });
    let sample = samples.iter().next().unwrap();
    let resolver = std::cell::RefCell::new(Resolver::default());
    let instruction = sample.instruction.to_le_bytes();
    Target::new(
        env!("CARGO_PKG_NAME"),
        "own::whatever_stands_on_a",
        std::slice::from_ref(&sample.stack),
    )
    .words(&[&instruction, &[0xff; 8], &[0; 8]])
    .bytes_max(8192)
    .memory_max(u64::MAX)
    .cases(500)
    .run(|input, draw| {
        let mut changed = sample.clone();
        changed.stack = input.to_vec();
        if draw.below(4) == 0 {
            changed.stack_pointer = u64::MAX - draw.below(64) as u64;
            changed.instruction = sample.instruction + draw.below(4096) as u64;
        }
        let _ = resolver.borrow_mut().site_of(&changed);
    });
}
