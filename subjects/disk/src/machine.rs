//! The hardware of a simulation: disks of one model, their scheduler, and the volume that they
//! make.

use crate::disk::{Disk, Model};
use crate::scheduler::kind::{Kind, Tuned};

/// The hardware, and how it is scheduled.
#[derive(Debug, Clone)]
pub struct Machine {
    pub disk: Model,
    pub disks: usize,
    pub layout: Layout,
    pub scheduler: Kind,
    pub tuned: Tuned,
    /// Sectors of the first disk that lie before the volume: the system's own partitions.
    pub before: u64,
}

impl Machine {
    /// Sectors of the volume.
    pub fn sectors(&self) -> u64 {
        self.volume().sectors()
    }

    /// All disks as one.
    pub fn volume(&self) -> Volume {
        let sectors = Disk::new(self.disk.clone()).sectors();
        Volume::new(self.layout, self.disks, sectors).behind(self.before)
    }
}

/// How the sectors of a volume are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One disk after the other.
    Linear,
    /// In turn, so many sectors at a time.
    Stripe { chunk: u64 },
}

/// A piece of a request on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub disk: usize,
    pub sector: u64,
    pub sectors: u32,
}

/// Disks of equal size as one.
#[derive(Debug, Clone, Copy)]
pub struct Volume {
    layout: Layout,
    disks: usize,
    disk_sectors: u64,
    /// Sectors of the first disk that are not the volume's.
    before: u64,
}

impl Volume {
    pub fn new(layout: Layout, disks: usize, disk_sectors: u64) -> Self {
        Self {
            layout,
            disks,
            disk_sectors,
            before: 0,
        }
    }

    /// The same behind so many sectors of the first disk. Stripes need equal parts of all disks: they
    /// leave the first disk to the volume.
    pub fn behind(self, before: u64) -> Self {
        match self.layout {
            Layout::Linear => Self { before, ..self },
            Layout::Stripe { .. } => self,
        }
    }

    pub fn sectors(&self) -> u64 {
        match self.layout {
            Layout::Linear => self.disk_sectors * self.disks as u64 - self.before,
            Layout::Stripe { chunk } => self.disk_sectors / chunk * chunk * self.disks as u64,
        }
    }

    /// The pieces of `sectors` from `sector` on, in order.
    pub fn pieces(&self, sector: u64, sectors: u32) -> impl Iterator<Item = Piece> + use<> {
        let volume = *self;
        let end = sector + u64::from(sectors);
        let mut next = sector;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let (disk, at, room) = volume.locate(next);
                let sectors = room.min(end - next);
                next += sectors;
                Piece {
                    disk,
                    sector: at,
                    sectors: sectors as u32,
                }
            })
        })
    }

    /// Disk, sector there, and how many sectors follow on the same disk.
    fn locate(&self, sector: u64) -> (usize, u64, u64) {
        match self.layout {
            Layout::Linear => {
                let sector = sector + self.before;
                let disk = sector / self.disk_sectors;
                let at = sector % self.disk_sectors;
                (disk as usize, at, self.disk_sectors - at)
            }
            Layout::Stripe { chunk } => {
                let (index, within) = (sector / chunk, sector % chunk);
                let disks = self.disks as u64;
                let at = index / disks * chunk + within;
                ((index % disks) as usize, at, chunk - within)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(layout: Layout, sector: u64, sectors: u32) -> Vec<(usize, u64, u32)> {
        Volume::new(layout, 3, 1000)
            .pieces(sector, sectors)
            .map(|it| (it.disk, it.sector, it.sectors))
            .collect()
    }

    #[test]
    fn a_linear_volume_goes_from_disk_to_disk() {
        assert_eq!(pieces(Layout::Linear, 990, 20), [(0, 990, 10), (1, 0, 10)]);
        assert_eq!(pieces(Layout::Linear, 2000, 8), [(2, 0, 8)]);
    }

    #[test]
    fn a_linear_volume_begins_behind_the_partitions_of_the_system() {
        let volume = Volume::new(Layout::Linear, 3, 1000).behind(400);
        assert_eq!(volume.sectors(), 2600);
        let pieces: Vec<Piece> = volume.pieces(590, 20).collect();
        let at = |disk, sector| Piece {
            disk,
            sector,
            sectors: 10,
        };
        assert_eq!(pieces, [at(0, 990), at(1, 0)]);
    }

    #[test]
    fn a_stripe_takes_turns() {
        let stripe = Layout::Stripe { chunk: 16 };
        let expected = [(0, 8, 8), (1, 0, 16), (2, 0, 16), (0, 16, 4)];
        assert_eq!(pieces(stripe, 8, 44), expected);
        assert_eq!(Volume::new(stripe, 3, 1000).sectors(), 62 * 16 * 3);
    }
}
