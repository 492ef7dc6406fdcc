//! A mutex of Rust's library, which asks the kernel itself. HELD, APART: steps.
//!
//! PROGRAM KIND THREADS OPERATIONS HELD APART
use std::hint::black_box;
use std::sync::Mutex;

static LEDGER: Mutex<u64> = Mutex::new(0);

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
    let mut ledger = LEDGER.lock().unwrap();
    *ledger = work(seed, held);
    *ledger
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
