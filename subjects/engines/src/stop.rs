//! Asking engines to stop.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::{EnginesError, While};

/// A word to look at, and a descriptor to wait for. Made before engines are forked, so that all have
/// the same.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    is_asked: AtomicBool,
    event: EventFd,
}

impl Stop {
    pub fn new() -> Result<Self, EnginesError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_flags(flags).when("open an eventfd")?;
        Ok(Self(Arc::new(Inner {
            is_asked: AtomicBool::new(false),
            event,
        })))
    }

    pub fn ask(&self) {
        self.0.is_asked.store(true, Release);
        // Fails only if the counter is full: then it was asked already.
        let _ = self.0.event.write(1);
    }

    pub fn is_asked(&self) -> bool {
        self.0.is_asked.load(Acquire)
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
