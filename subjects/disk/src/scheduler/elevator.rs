//! The nearest request for a head that moves one way, and turns back only for short ways.

use super::lane::{Lane, Slot};

/// How far back the head may turn, in sectors, and what a sector back costs in sectors forward.
#[derive(Debug, Clone, Copy)]
pub struct Elevator {
    pub back_max: u64,
    pub back_penalty: u64,
}

impl Elevator {
    /// The waiting request that is nearest to the head: forward, or a short way back at a higher
    /// price; if there is none, the sweep starts again at the lowest sector.
    pub fn nearest(self, lane: &Lane, head: u64) -> Option<Slot> {
        let ahead = lane.from(head);
        let behind = lane
            .before(head)
            .filter(|&slot| head - lane.get(slot).sector <= self.back_max);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) => {
                let forward = lane.get(ahead).sector - head;
                let back = (head - lane.get(behind).sector) * self.back_penalty;
                Some(if back < forward { behind } else { ahead })
            }
            (found, None) | (None, found) => found.or_else(|| lane.first()),
        }
    }
}
