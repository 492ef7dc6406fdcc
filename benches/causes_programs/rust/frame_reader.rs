//! A receiver: one reader thread makes frames of 32 kB and checks each with a bitwise CRC (8 steps a
//! byte, 0.3 ms), and deals them out in turn to the workers, each with a bounded channel of its own.
//! A worker takes about 0.1 ms for a frame's statistics. The reader is always busy, with one worker
//! already, and the workers wait for frames: two are no faster, and half a CPU or more is idle.

use std::sync::mpsc::{sync_channel, Receiver};
use std::thread;

const FRAMES: usize = 1500;
const SIZE: usize = 32768;

fn receive(number: usize) -> Vec<u8> {
    let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut frame = Vec::with_capacity(SIZE);
    while frame.len() < SIZE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        frame.extend_from_slice(&state.to_le_bytes());
    }
    frame
}

fn crc(frame: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in frame {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let mask = (crc & 1).wrapping_neg();
            crc = (crc >> 1) ^ (0xedb8_8320 & mask);
        }
    }
    !crc
}

fn statistics(frame: &[u8]) -> u64 {
    let mut counts = [0u32; 256];
    let mut steps = 0u64;
    let mut last = 0u8;
    for &byte in frame {
        counts[usize::from(byte)] += 1;
        steps += u64::from(byte.wrapping_sub(last));
        last = byte;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for pair in frame.chunks(2) {
        hash = (hash ^ u64::from(pair[0]) ^ (u64::from(pair[1]) << 8)).wrapping_mul(0x0100_0000_01b3);
    }
    steps ^ hash ^ u64::from(most)
}

fn consume(frames: Receiver<(u32, Vec<u8>)>) -> u64 {
    let mut sum = 0u64;
    for (check, frame) in frames {
        sum = sum.wrapping_add(statistics(&frame) ^ u64::from(check));
    }
    sum
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let mut senders = Vec::new();
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (sender, frames) = sync_channel(4);
        senders.push(sender);
        workers.push(thread::spawn(move || consume(frames)));
    }
    let reader = thread::spawn(move || {
        for number in 0..FRAMES {
            let frame = receive(number);
            let check = crc(&frame);
            senders[number % threads].send((check, frame)).unwrap();
        }
    });
    reader.join().unwrap();
    let mut sum = 0u64;
    for worker in workers {
        sum = sum.wrapping_add(worker.join().unwrap());
    }
    println!("{:016x}", sum);
}
