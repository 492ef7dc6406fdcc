//! Which worker computes which pixel, for a program that shows it.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::cut::Cut;

/// The worker that each unit of work was given to: the number in its name (1 is `Thread-1`), 0 where
/// nobody has it yet. Workers from 65,535 on share that number.
///
/// A worker writes one number for each unit that it takes, and nothing for a pixel.
#[derive(Debug)]
pub struct Owners {
    cut: Cut,
    by_unit: Vec<AtomicU16>,
}

impl Owners {
    /// Nobody has a unit yet.
    #[must_use]
    pub fn new(cut: Cut) -> Self {
        let units = cut.units() as usize;
        Self {
            cut,
            by_unit: std::iter::repeat_with(AtomicU16::default)
                .take(units)
                .collect(),
        }
    }

    /// Worker `worker`, counted from 0, takes a unit.
    #[inline]
    pub fn take(&self, unit: u64, worker: usize) {
        let number = u16::try_from(worker + 1).unwrap_or(u16::MAX);
        self.by_unit[unit as usize].store(number, Ordering::Relaxed);
    }

    /// Appends the workers of all pixels, line by line from the top left, in little-endian order.
    pub fn append_pixels(&self, bytes: &mut Vec<u8>) {
        for y in 0..self.cut.view.height {
            for (unit, pixels) in self.cut.units_of_line(y) {
                let owner = self.by_unit[unit as usize].load(Ordering::Relaxed);
                let [low, high] = owner.to_le_bytes();
                for _ in 0..pixels {
                    bytes.push(low);
                    bytes.push(high);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::Grain;
    use crate::location::Location;
    use crate::view::View;

    #[test]
    fn each_pixel_has_the_worker_of_its_unit() {
        let view = View::new(&Location::built_in(), 5, 3, 10);
        let owners = Owners::new(Cut::new(view, Grain::Tile(2)));
        // Tiles: three in a row, two rows.
        for (unit, worker) in [(0, 0), (2, 1), (4, 2), (5, 70_000)] {
            owners.take(unit, worker);
        }
        let mut bytes = Vec::new();
        owners.append_pixels(&mut bytes);
        let pairs = bytes.chunks_exact(2);
        let seen: Vec<u16> = pairs.map(|it| u16::from_le_bytes([it[0], it[1]])).collect();
        let expected = [[1, 1, 0, 0, 2], [1, 1, 0, 0, 2], [0, 0, 3, 3, u16::MAX]];
        assert_eq!(seen, expected.concat());
    }
}
