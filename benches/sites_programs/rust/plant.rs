// What the planted Rust programs share; `c/plant.h` says what it is for.

use std::hint::black_box;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const THREADS_MAX: usize = 16;
const ROUNDS_ALONE: u64 = 8;

/// A cache line for each thread.
#[repr(C, align(64))]
pub struct Slot {
    site: AtomicU64,
}

static TRUTH: [Slot; THREADS_MAX] = [const {
    Slot {
        site: AtomicU64::new(0),
    }
}; THREADS_MAX];
static CONTENDED: AtomicBool = AtomicBool::new(false);

/// A call that may wait, at the site of this number.
macro_rules! wait {
    ($thread:expr, $number:expr, $call:expr) => {{
        at($thread, $number);
        let got = $call;
        at($thread, 0);
        got
    }};
}

pub fn at(thread: usize, number: u64) {
    TRUTH[thread].site.store(number, Ordering::SeqCst);
}

pub fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn tid() -> String {
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    own.file_name().unwrap().to_string_lossy().into_owned()
}

/// Calls everything a few times alone; then starts the threads and says where everything stands.
pub fn plant(turn: fn(usize, u64)) {
    let threads = std::env::args().nth(1).map_or(4, |it| it.parse().unwrap());
    (0..ROUNDS_ALONE).for_each(|round| turn(0, round));
    let (sender, tids) = std::sync::mpsc::channel();
    for thread in 0..threads {
        let sender = sender.clone();
        std::thread::spawn(move || {
            sender.send((thread, tid())).unwrap();
            while !CONTENDED.load(Ordering::SeqCst) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let mut round = compute(1, thread as u64);
            loop {
                turn(thread, round >> 33);
                round = compute(1, round);
            }
        });
    }
    println!("truth {:p} {}", &TRUTH, size_of::<Slot>());
    for _ in 0..threads {
        let (thread, tid) = tids.recv().unwrap();
        println!("thread {thread} {tid}");
    }
    println!("ready");
    CONTENDED.store(true, Ordering::SeqCst);
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
    std::process::exit(0);
}
