//! Work on shared memory that no latch guards.

use std::marker::PhantomData;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crate::class::Class;
use crate::seat::mine;

/// Counts as a held latch of its class while it lives, and locks nothing: for what must be whole
/// when a process dies, but is protected otherwise, such as a count of users that will be taken back.
#[derive(Debug)]
pub struct Section {
    class: Class,
    /// It counts for its own thread.
    _of_thread: PhantomData<*const ()>,
}

impl Section {
    pub fn enter(class: Class) -> Self {
        mine().tally(class).begin();
        // What is done in it is done after it is counted. A process dies between two instructions:
        // only the compiler could bring them out of order.
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
