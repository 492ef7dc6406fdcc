//! What client threads use and move.

use serde::{Deserialize, Serialize};

/// What a client thread has used and moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub user_ns: u64,
    pub system_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Times that another session of an embedded engine was in the way.
    pub waits: u64,
}

impl Spent {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            bytes_received: self.bytes_received - before.bytes_received,
            waits: self.waits - before.waits,
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.waits += other.waits;
    }

    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}
