//! The sizes of blocks.

use std::alloc::Layout;

/// How many sizes there are.
pub const SIZES: usize = 40;

/// Larger allocations get units.
pub const BLOCK_MAX: usize = 32 << 10;

/// Bytes of a unit.
pub const UNIT: usize = 64 << 10;

/// Bytes that move between a thread cache and a pool at a time, approximately.
const BATCH_BYTES: usize = 8 << 10;
/// Blocks that move at a time, at most.
const BATCH_MAX: usize = 64;

/// The size of block for a layout; `None`: units.
///
/// Blocks stand at multiples of their size in a slab, so a size that is a multiple of the alignment
/// keeps it.
#[inline]
pub fn size_of_layout(layout: Layout) -> Option<usize> {
    let (bytes, align) = (layout.size(), layout.align());
    if bytes > BLOCK_MAX || align > BLOCK_MAX {
        return None;
    }
    if align <= 16 {
        return Some(at_least(bytes));
    }
    // All powers of two are sizes, and a power of two is a multiple of all smaller ones.
    let rounded = bytes.max(align).next_multiple_of(align);
    let size = at_least(rounded);
    if block_bytes(size) & (align - 1) == 0 {
        Some(size)
    } else {
        Some(at_least(rounded.next_power_of_two()))
    }
}

/// The smallest size of at least so many bytes: 16, 32 … 128, then four for each doubling.
#[inline]
fn at_least(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.saturating_sub(1) / 16;
    }
    // 129 … 256 are of the octave 0.
    let last = bytes - 1;
    let octave = last.ilog2() as usize - 7;
    8 + octave * 4 + ((last >> (octave + 5)) & 3)
}

/// Bytes of a block.
#[inline]
pub fn block_bytes(size: usize) -> usize {
    if size < 8 {
        return (size + 1) * 16;
    }
    let (octave, quarter) = ((size - 8) / 4, (size - 8) % 4);
    (quarter + 5) << (octave + 5)
}

/// Blocks that move between a thread cache and a pool at a time.
#[inline]
pub fn batch(size: usize) -> usize {
    (BATCH_BYTES / block_bytes(size)).clamp(1, BATCH_MAX)
}

/// Blocks in a slab.
pub fn blocks(size: usize) -> usize {
    UNIT / block_bytes(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_ascend_from_16_bytes_to_32_kib() {
        let all: Vec<_> = (0..SIZES).map(block_bytes).collect();
        assert!(all.is_sorted());
        assert_eq!(all[..10], [16, 32, 48, 64, 80, 96, 112, 128, 160, 192]);
        assert_eq!(all[SIZES - 1], BLOCK_MAX);
    }

    proptest! {
        #[test]
        fn a_block_is_large_enough_aligned_and_the_smallest(
            bytes in 0..=BLOCK_MAX,
            shift in 0_u32..=15,
        ) {
            let layout = Layout::from_size_align(bytes, 1 << shift).expect("sound");
            let size = size_of_layout(layout).expect("a block");
            prop_assert!(block_bytes(size) >= bytes);
            let is_aligned = |bytes: usize| bytes & (layout.align() - 1) == 0;
            prop_assert!(is_aligned(block_bytes(size)));
            // No smaller size is large enough and aligned, powers of two apart.
            let smaller = (0..size).map(block_bytes);
            let fitting = |it: &usize| *it >= bytes && is_aligned(*it);
            prop_assert!(layout.align() > 16 || smaller.filter(fitting).count() == 0);
        }
    }

    #[test]
    fn larger_or_more_aligned_layouts_get_units() {
        let layout = |bytes, align| Layout::from_size_align(bytes, align).expect("sound");
        assert_eq!(size_of_layout(layout(BLOCK_MAX + 1, 1)), None);
        assert_eq!(size_of_layout(layout(1, UNIT)), None);
    }
}
