//! Compares the cost of the shared heap with that of the system's allocator; prints one JSON
//! object.
//!
//! `memory_costs ROUNDS` measures, in so many interleaved rounds, allocating and freeing: one piece
//! at a time, many pieces of mixed sizes, the same by two threads, and pieces that another thread
//! frees. Values are ns a piece. `system_again` is measured as the others are: its difference from
//! `system` is noise.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant;

use concurve_engines::memory::{self, SharedAllocator};

/// Pieces timed together.
const GROUP: usize = 200_000;
/// Pieces that are allocated at the same time.
const HELD: usize = 500;

fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .map_or(3, |it| it.parse().expect("rounds"));
    memory::open(1 << 30, "give it more").expect("shared memory");
    let works: [(&str, Work); 4] = [
        ("one", |it| one(it)),
        ("many", |it| many(it)),
        ("many_two_threads", |it| {
            std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| many(it)))));
        }),
        ("freed_by_another", |it| freed_by_another(it)),
    ];
    let kinds: [(&str, Kind); 3] = [
        ("shared", &SharedAllocator),
        ("system", &System),
        ("system_again", &System),
    ];
    let mut lines = Vec::new();
    for (name, work) in works {
        let mut taken = vec![Vec::new(); kinds.len()];
        for round in 0..rounds {
            for at in 0..kinds.len() {
                let kind = (at + round) % kinds.len();
                let begin = Instant::now();
                work(kinds[kind].1);
                taken[kind].push(begin.elapsed().as_nanos() as f64 / GROUP as f64);
            }
        }
        let members = kinds.iter().zip(&taken);
        let members: Vec<_> = members
            .map(|((name, _), rounds)| format!("\"{name}\": {rounds:.2?}"))
            .collect();
        lines.push(format!("\"{name}\": {{{}}}", members.join(", ")));
    }
    println!("{{{}}}", lines.join(",\n "));
}

type Work = fn(Kind);
type Kind = &'static (dyn GlobalAlloc + Sync);

struct Piece(*mut u8, Layout);

// SAFETY: only the piece uses its memory.
unsafe impl Send for Piece {}

fn piece(kind: Kind, number: usize) -> Piece {
    let bytes = [24, 64, 100, 300, 1500, 4096][number % 6];
    let layout = Layout::from_size_align(bytes, 8).expect("sound");
    // SAFETY: the size is not 0, and the place is this long.
    unsafe {
        let place = kind.alloc(layout);
        place.write(number as u8);
        Piece(place, layout)
    }
}

fn free(kind: Kind, piece: Piece) {
    // SAFETY: it was allocated with this layout.
    unsafe { kind.dealloc(piece.0, piece.1) };
}

fn one(kind: Kind) {
    for number in 0..GROUP {
        free(kind, black_box(piece(kind, number)));
    }
}

fn many(kind: Kind) {
    for _ in 0..GROUP / HELD {
        let pieces: Vec<_> = (0..HELD).map(|number| piece(kind, number)).collect();
        pieces.into_iter().for_each(|it| free(kind, it));
    }
}

fn freed_by_another(kind: Kind) {
    let (send, receive) = mpsc::sync_channel::<Vec<Piece>>(4);
    std::thread::scope(|scope| {
        scope.spawn(move || receive.into_iter().flatten().for_each(|it| free(kind, it)));
        for _ in 0..GROUP / HELD {
            let pieces = (0..HELD).map(|number| piece(kind, number)).collect();
            send.send(pieces).expect("it listens");
        }
        drop(send);
    });
}
