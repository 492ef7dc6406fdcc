//! Actors with mailboxes: the main thread deals ranges of numbers out to the actors in turn, by
//! bounded channels, and gathers their answers. A range takes an actor about 0.8 ms, dealing it out
//! a microsecond or two: the main thread sleeps in send() nearly always and is no stage that
//! limits. The ranges are alike, 300 for each of two actors. Nothing limits.

use std::sync::mpsc;
use std::thread;

const RANGES: u64 = 600;
const NUMBERS: u64 = 2_000;

struct Range {
    first: u64,
    count: u64,
}

fn steps_to_one(mut number: u64) -> u64 {
    let mut steps = 0;
    while number != 1 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let (answer, answers) = mpsc::channel::<u64>();
    let mut mailboxes = Vec::new();
    let mut actors = Vec::new();
    for _ in 0..threads {
        let (mailbox, mail) = mpsc::sync_channel::<Range>(4);
        let answer = answer.clone();
        mailboxes.push(mailbox);
        actors.push(thread::spawn(move || {
            for range in mail {
                let longest = (range.first..range.first + range.count).map(steps_to_one).max();
                answer.send(longest.unwrap_or(0)).unwrap();
            }
        }));
    }
    drop(answer);
    for number in 0..RANGES {
        let range = Range { first: 1_000_000 + number * NUMBERS, count: NUMBERS };
        mailboxes[number as usize % threads].send(range).unwrap();
    }
    drop(mailboxes);
    let longest = answers.iter().max();
    for actor in actors {
        actor.join().unwrap();
    }
    println!("{}", longest.unwrap_or(0));
}
