//! Changes of shared memory that no latch guards.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crate::class::Class;
use crate::thread::mine;

/// Counts as a held latch of its class while it lives, and locks nothing. For changes that must not
/// be half done when a process dies, but that are protected by other means, for example a count of
/// users that the process will decrement.
#[derive(Debug)]
pub struct Section {
    class: Class,
    /// It is counted in the seat of its own thread.
    _of_thread: PhantomData<*const ()>,
}

impl Section {
    pub fn enter(class: Class) -> Self {
        mine().tally(class).begin();
        // The section must be counted before its first instruction. A process dies between two
        // instructions, so only the compiler could reorder them.
        compiler_fence(SeqCst);
        Self {
            class,
            _of_thread: PhantomData,
        }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        mine().tally(self.class).end();
    }
}
