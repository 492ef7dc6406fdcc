//! How long the threads of an engine go on.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use concurve_engines::Engine;

/// Until the engine is to stop, or one of its threads has given up.
#[derive(Debug)]
pub struct Until<'a> {
    engine: &'a Engine,
    gave_up: AtomicBool,
}

impl<'a> Until<'a> {
    pub fn stopped(engine: &'a Engine) -> Self {
        Self {
            engine,
            gave_up: AtomicBool::new(false),
        }
    }

    pub fn is_over(&self) -> bool {
        self.gave_up.load(SeqCst) || self.engine.is_stopping()
    }

    /// Ends the engine, in half a second at most.
    pub fn give_up(&self) {
        self.gave_up.store(true, SeqCst);
    }
}

impl AsFd for Until<'_> {
    /// Becomes readable when the engine is to stop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.engine.stop_descriptor()
    }
}
