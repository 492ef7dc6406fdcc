//! Something for each process. Processes are numbered from 0, so it is an array, not a map.

use crate::request::{ProcessId, Request};

/// Something for each process, made when it is first asked for.
#[derive(Debug, Default)]
pub struct PerProcess<T> {
    entries: Vec<T>,
}

impl<T: Default> PerProcess<T> {
    pub fn of(&mut self, process: ProcessId) -> &mut T {
        let index = process as usize;
        if index >= self.entries.len() {
            self.entries.resize_with(index + 1, T::default);
        }
        &mut self.entries[index]
    }
}

/// Which queue a request goes to: that of its process if somebody waits for it, else a common one.
#[derive(Debug, Default)]
pub struct QueueIndex {
    of_process: PerProcess<Option<usize>>,
    common: Option<usize>,
}

impl QueueIndex {
    /// Its place; `None` as long as there is no such queue.
    pub fn of(&mut self, request: &Request) -> &mut Option<usize> {
        if request.sync {
            self.of_process.of(request.process)
        } else {
            &mut self.common
        }
    }
}
