//! The request to stop, which all engines see.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::EnginesError;

/// A flag to check, and a descriptor to wait for. Made before engines are forked, so that all share
/// it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    is_requested: AtomicBool,
    event: EventFd,
}

impl Stop {
    pub fn new() -> Result<Self, EnginesError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_flags(flags).map_err(EnginesError::system("open an eventfd"))?;
        Ok(Self(Arc::new(Inner {
            is_requested: AtomicBool::new(false),
            event,
        })))
    }

    pub fn request(&self) {
        self.0.is_requested.store(true, Release);
        // Fails only if the counter is full: then the stop was already requested.
        let _ = self.0.event.write(1);
    }

    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Acquire)
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
