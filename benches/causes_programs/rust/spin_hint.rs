// A lock of the program's own: a word that is swapped from free to taken, with a hint that it spins. It
// is held for two thirds of each operation.
use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

#[repr(align(128))]
struct Cell {
    word: AtomicU32,
    total: UnsafeCell<u64>,
}

unsafe impl Sync for Cell {}

static CELL: Cell = Cell { word: AtomicU32::new(0), total: UnsafeCell::new(1) };

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    thread::scope(|scope| {
        for index in 0..threads {
            scope.spawn(move || {
                let mut own = index + 1;
                for _ in 0..3500 / threads {
                    own = compute(3000 + (own >> 33) % 10000, own);
                    while CELL
                        .word
                        .compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed)
                        .is_err()
                    {
                        spin_loop();
                    }
                    unsafe { *CELL.total.get() = compute(10000 + (own >> 40) % 15000, own) };
                    CELL.word.store(0, Ordering::Release);
                }
            });
        }
    });
}
