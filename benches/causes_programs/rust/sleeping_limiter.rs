//! Requests at a limited rate: who wants to send one sleeps until its time has come, and keeps the
//! mutex of the limiter meanwhile. What a request does otherwise is a wait of its own.

use std::sync::Mutex;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const REQUESTS: u32 = 60;
const APART: Duration = Duration::from_millis(4);

fn main() {
    let threads: u32 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let next = Mutex::new(Instant::now());
    scope(|all| {
        for _ in 0..threads {
            all.spawn(|| {
                for _ in 0..REQUESTS / threads {
                    {
                        let mut next = next.lock().unwrap();
                        sleep(APART);
                        *next = Instant::now();
                    }
                    sleep(Duration::from_millis(1));
                }
            });
        }
    });
}
