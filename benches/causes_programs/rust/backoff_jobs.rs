//! Deliveries that fail twice and are tried again after 4 and 8 ms: the workers take them from a
//! queue behind a mutex and sleep between the attempts. 40 equal jobs of 12 ms: the CPUs are idle
//! (20 us of formatting a job) and the queue is locked 48 times at most. With two workers it takes
//! half as long, with eight an eighth, since sleeping needs no CPU: nothing limits, nor needs to run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const JOBS: u32 = 40;

struct Delivery {
    number: u32,
    failures: u32,
}

fn attempt(delivery: &mut Delivery) -> Result<usize, Duration> {
    if delivery.failures < 2 {
        let pause = Duration::from_millis(4u64 << delivery.failures);
        delivery.failures += 1;
        return Err(pause);
    }
    let mut body = String::from("{\"items\":[");
    for item in 0..100 {
        if item > 0 {
            body.push(',');
        }
        body.push_str(&format!("{{\"id\":{},\"job\":{}}}", item, delivery.number));
    }
    body.push_str("]}");
    Ok(body.len())
}

fn deliver(mut delivery: Delivery) -> usize {
    loop {
        match attempt(&mut delivery) {
            Ok(length) => return length,
            Err(pause) => thread::sleep(pause),
        }
    }
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let queue: VecDeque<Delivery> = (0..JOBS).map(|number| Delivery { number, failures: 0 }).collect();
    let queue = Arc::new(Mutex::new(queue));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let mut sent = 0;
                loop {
                    // The guard ends with this statement: nobody sleeps with the lock.
                    let next = queue.lock().unwrap().pop_front();
                    match next {
                        Some(delivery) => sent += deliver(delivery),
                        None => return sent,
                    }
                }
            })
        })
        .collect();
    let sent: usize = workers.into_iter().map(|it| it.join().unwrap()).sum();
    println!("{} bytes", sent);
}
