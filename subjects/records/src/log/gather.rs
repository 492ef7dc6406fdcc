//! What sessions gather for the log: a transaction appends its records in one step, when it commits or
//! when something else must not be in the log before them.
//!
//! The change that a gathered record describes is made on its page at once. So changes of different sessions
//! may stand in the log in another order than they were made. Changes of slots may: each is that of a record
//! which the transaction has locked until it ends. Where an entry of a key stands depends on the others of
//! its node: so a node knows which buffer may have records of it, and that is appended to the log before
//! another session changes the node ([`Store`](crate::store::Store)). Records of one session keep their
//! order.
//!
//! Who writes pages to the disk appends before what all sessions have gathered until then
//! ([`sync_before_pages`](crate::log::Log::sync_before_pages)). The buffers are in memory that processes share.

use std::ops::Range;

use concurve_latch::{Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::classes;

const BUFFERS: usize = 128;

/// A larger buffer is appended to the log.
pub(super) const BYTES_MAX: usize = 1 << 14;

/// The buffer of a session. Sessions whose numbers differ by a multiple of [`BUFFERS`] share one.
pub fn buffer_of(session: u32) -> u32 {
    session % BUFFERS as u32
}

/// All buffers; each is empty, or a frame that is not sealed.
pub(super) struct Gathered(Box<[CachePadded<Mutex<Vec<u8>>>]>);

impl Gathered {
    pub fn new() -> Self {
        let buffer = |_| CachePadded::new(classes::gathered().mutex(Vec::new()));
        Self((0..BUFFERS).map(buffer).collect())
    }

    /// A session's buffer.
    pub fn lock(&self, buffer: u32) -> MutexGuard<'_, Vec<u8>> {
        self.0[buffer as usize].lock()
    }

    /// The numbers of all buffers.
    pub fn all() -> Range<u32> {
        0..BUFFERS as u32
    }
}
