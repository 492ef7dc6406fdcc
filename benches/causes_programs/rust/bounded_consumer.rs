// Threads that send to a channel of one place; the main thread takes each message and needs as long
// for it as three of the senders need.
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |text| text.parse().expect("a number"));
    let (sender, receiver) = sync_channel(1);
    for index in 0..threads {
        let sender = sender.clone();
        thread::spawn(move || {
            for i in 0..1200 / threads {
                sender.send(compute(60_000, index + i)).expect("the receiver is there");
            }
        });
    }
    drop(sender);
    let sum = receiver.iter().fold(1, |sum, value| compute(180_000, sum ^ value));
    assert!(sum != 0, "the work was left out");
}
