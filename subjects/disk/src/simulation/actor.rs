//! A process under simulation.

use crate::workload::Process;

/// Where a process is.
pub struct Actor {
    pub process: Box<dyn Process>,
    /// I/Os of it that are not done.
    pub under_way: usize,
    /// It goes on when fewer than this are under way.
    pub waits_below: Option<usize>,
    pub parked: bool,
    /// How often it has gone on.
    pub nap: u32,
    /// Another process has said that it may go on, while it was not parked.
    pub called: bool,
    pub ended: bool,
}

impl Actor {
    pub fn new(process: Box<dyn Process>) -> Self {
        Self {
            process,
            under_way: 0,
            waits_below: None,
            parked: false,
            nap: 0,
            called: false,
            ended: false,
        }
    }
}
