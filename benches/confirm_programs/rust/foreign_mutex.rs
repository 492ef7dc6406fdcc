//! A mutex of the C library, taken by Rust. HELD, APART: steps.
//!
//! PROGRAM KIND THREADS OPERATIONS HELD APART
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::hint::black_box;

#[repr(C, align(16))]
struct Mutex(UnsafeCell<[u8; 64]>);
// SAFETY: the C library guards it.
unsafe impl Sync for Mutex {}

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut u8) -> c_int;
    fn pthread_mutex_unlock(mutex: *mut u8) -> c_int;
}

static LEDGER: Mutex = Mutex(UnsafeCell::new([0; 64]));

#[inline(never)]
fn work(mut seed: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    black_box(seed)
}

#[inline(never)]
fn enter_in_ledger(seed: u64, held: u64) -> u64 {
    // SAFETY: it is a mutex in its initial state, which is all zeros.
    unsafe { pthread_mutex_lock(LEDGER.0.get().cast()) };
    let seed = work(seed, held);
    // SAFETY: this thread has it.
    unsafe { pthread_mutex_unlock(LEDGER.0.get().cast()) };
    seed
}

fn main() {
    let asked: Vec<u64> = std::env::args().skip(2).map(|it| it.parse().unwrap()).collect();
    let [threads, operations, held, apart] = asked[..] else { panic!("four numbers") };
    std::thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || {
                let mut seed = 88172645463325252 + number;
                for _ in 0..operations / threads {
                    seed = work(enter_in_ledger(seed, held), apart);
                }
            });
        }
    });
}
