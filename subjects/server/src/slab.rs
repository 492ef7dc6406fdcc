//! Values in numbered places, which are reused. The place that was freed last is reused first,
//! because it is likely to be in a CPU cache.
//!
//! Places are in blocks that do not move: growing copies only the first block, and each block can
//! request huge pages before it is written.

use concurve_probe::huge_pages;

/// No place.
pub const NONE: u32 = u32::MAX;

/// Places of a block; a power of two.
const BLOCK: usize = 1 << BLOCK_BITS;
const BLOCK_BITS: u32 = 17;

#[derive(Debug)]
pub struct Slab<T> {
    blocks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            free: Vec::new(),
        }
    }
}

fn place(at: u32) -> (usize, usize) {
    ((at >> BLOCK_BITS) as usize, at as usize & (BLOCK - 1))
}

impl<T> Slab<T> {
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            let (block, within) = place(at);
            self.blocks[block][within] = Some(value);
            return at;
        }
        let at = self.places();
        if at & (BLOCK - 1) == 0 {
            self.blocks.push(new_block(at > 0));
        }
        let block = self.blocks.last_mut().expect("one was made");
        block.push(Some(value));
        at as u32
    }

    pub fn remove(&mut self, at: u32) -> Option<T> {
        let (block, within) = place(at);
        let value = self.blocks.get_mut(block)?.get_mut(within)?.take()?;
        self.free.push(at);
        Some(value)
    }

    pub fn get(&self, at: u32) -> Option<&T> {
        let (block, within) = place(at);
        self.blocks.get(block)?.get(within)?.as_ref()
    }

    pub fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        let (block, within) = place(at);
        self.blocks.get_mut(block)?.get_mut(within)?.as_mut()
    }

    /// Places in use.
    pub fn len(&self) -> usize {
        self.places() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of places that were ever used: all numbers are below it.
    pub fn places(&self) -> usize {
        let last = self.blocks.last();
        last.map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.blocks.iter().flatten().enumerate();
        numbered.filter_map(|(at, value)| Some((at as u32, value.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let numbered = self.blocks.iter_mut().flatten().enumerate();
        numbered.filter_map(|(at, value)| Some((at as u32, value.as_mut()?)))
    }
}

/// The first block grows with its contents: most slabs never need another.
fn new_block<T>(is_whole: bool) -> Vec<Option<T>> {
    let mut block = Vec::new();
    if is_whole {
        block.reserve_exact(BLOCK);
        huge_pages::prefer(block.spare_capacity_mut());
    }
    block
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    /// The value at a place that is known to be in use.
    fn index(&self, at: u32) -> &T {
        let (block, within) = place(at);
        self.blocks[block][within].as_ref().expect("place in use")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        let (block, within) = place(at);
        self.blocks[block][within].as_mut().expect("place in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbered_over_blocks_and_used_again() {
        let (mut slab, count) = (Slab::default(), 2 * BLOCK as u32 + 3);
        for number in 0..count {
            assert_eq!(slab.insert(number), number);
        }
        for at in [0, BLOCK as u32 - 1, BLOCK as u32, count - 1] {
            assert_eq!((slab[at], slab.remove(at)), (at, Some(at)));
            assert_eq!(slab.remove(at), None, "it is free");
            assert_eq!(slab.get(at), None);
            assert_eq!(slab.insert(at + 7), at);
            assert_eq!(slab.get_mut(at), Some(&mut (at + 7)));
        }
        assert_eq!(slab.get(count), None);
        slab.remove(1);
        let numbers: Vec<u32> = slab.iter().map(|(at, _)| at).collect();
        assert!(numbers.iter().copied().eq((0..count).filter(|at| *at != 1)));
        assert_eq!((slab.len(), slab.places()), (numbers.len(), count as usize));
    }
}
