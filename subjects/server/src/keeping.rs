//! Whether the server may keep more for its clients. Memory that is exhausted ends the engines for all of them,
//! so what a client would have it keep (locks, keys, statements, files) is refused before.

use std::cell::Cell;

use concurve_engines::memory;

/// Each thread looks at the memory after requests of so many bytes.
const LOOK_EVERY_BYTES: usize = 64 << 10;

/// About what is kept of a request besides its bytes.
const OVERHEAD_BYTES: usize = 256;

/// So much must be left, and half as much again as is used since the start: a table that grows is copied into
/// one of twice its size.
const SPARE_BYTES: u64 = 2 << 20;

thread_local! {
    static SINCE_LOOK: Cell<usize> = const { Cell::new(LOOK_EVERY_BYTES) };
}

/// What the memory of the engines had in use when the services were open: caches take their part at once.
#[derive(Debug, Clone, Copy)]
pub struct AtStart(u64);

impl AtStart {
    pub fn now() -> Self {
        Self(used())
    }

    /// Whether the memory holds what a request of so many bytes brings.
    pub fn holds(self, request_bytes: usize) -> bool {
        let bytes = request_bytes + OVERHEAD_BYTES;
        let since = SINCE_LOOK.get() + bytes;
        if since < LOOK_EVERY_BYTES {
            SINCE_LOOK.set(since);
            return true;
        }
        let more = used().saturating_sub(self.0);
        if memory::left() < more + more / 2 + SPARE_BYTES + bytes as u64 {
            return false;
        }
        SINCE_LOOK.set(0);
        true
    }
}

fn used() -> u64 {
    memory::usage().map_or(0, |it| it.used_bytes as u64)
}
