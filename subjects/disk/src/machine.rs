//! The hardware of a simulation.

use crate::disk::{Disk, Model};
use crate::scheduler::Kind;
use crate::volume::{Layout, Volume};

/// The hardware, and how it is scheduled.
#[derive(Debug, Clone)]
pub struct Machine {
    pub disk: Model,
    pub disks: usize,
    pub layout: Layout,
    pub scheduler: Kind,
}

impl Machine {
    /// Sectors of the volume.
    pub fn sectors(&self) -> u64 {
        self.volume().sectors()
    }

    /// All disks as one.
    pub fn volume(&self) -> Volume {
        let sectors = Disk::new(self.disk.clone()).sectors();
        Volume::new(self.layout, self.disks, sectors)
    }
}
