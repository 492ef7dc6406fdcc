//! The start barrier: all sessions are connected before the first request is sent.

use std::sync::{Condvar, Mutex, PoisonError};

/// Threads report in; one word lets all of them go, or none.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: u64,
    /// When the sessions begin, on CLOCK_MONOTONIC.
    begin_ns: Option<u64>,
    failed: bool,
}

impl Gate {
    /// Says that a thread is ready and waits; `None` if another one failed to get ready.
    pub fn wait(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready += 1;
        self.changed.notify_all();
        let state = self
            .changed
            .wait_while(state, |it| it.begin_ns.is_none() && !it.failed)
            .unwrap_or_else(PoisonError::into_inner);
        state.begin_ns.filter(|_| !state.failed)
    }

    /// Says that a thread cannot get ready, so that nobody waits for it.
    pub fn fail(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failed = true;
        self.changed.notify_all();
    }

    /// Waits until so many threads are ready; `false` if one failed.
    pub fn all_ready(&self, threads: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .changed
            .wait_while(state, |it| it.ready < threads && !it.failed)
            .unwrap_or_else(PoisonError::into_inner);
        !state.failed
    }

    /// Lets the threads go.
    pub fn open(&self, begin_ns: u64) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin_ns = Some(begin_ns);
        self.changed.notify_all();
    }
}
