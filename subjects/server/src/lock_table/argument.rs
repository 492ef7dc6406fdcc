//! Lock arguments: concatenated key fields, in which `@` stands for any byte.

use std::fmt;

/// The byte that matches any other at its position.
pub const WILDCARD: u8 = b'@';

/// Longest argument, and longest table name, in bytes.
pub const LENGTH_MAX: usize = 255;

/// Bytes stored inside the value, so that arguments of usual length need no heap memory.
const INLINE: usize = 30;

/// A stored argument or name: 32 bytes in place, longer ones on the heap.
#[derive(Clone, PartialEq, Eq)]
pub enum Text {
    Inline { length: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Text {
    pub fn new(text: &[u8]) -> Self {
        if text.len() > INLINE {
            return Text::Heap(text.into());
        }
        let mut bytes = [0; INLINE];
        bytes[..text.len()].copy_from_slice(text);
        Text::Inline {
            length: text.len() as u8,
            bytes,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Text::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Text::Heap(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Whether an argument has a wildcard anywhere.
pub fn is_generic(argument: &[u8]) -> bool {
    argument.contains(&WILDCARD)
}

/// Whether two arguments overlap: they have the same length, and at every position their bytes are
/// equal or one of them is the wildcard.
pub fn overlap(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| bytes_overlap(*a, *b))
}

pub fn bytes_overlap(a: u8, b: u8) -> bool {
    a == b || a == WILDCARD || b == WILDCARD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_enqueue_service_hold() {
        assert!(overlap(b"AB@@", b"ABCD"));
        assert!(!overlap(b"@@CDE", b"AB@@"));
        assert!(overlap(b"@@CD", b"AB@@"));
        assert!(!overlap(b"AB@@", b"ACCD"));
        assert!(overlap(b"", b""));
    }

    #[test]
    fn a_text_takes_32_bytes_and_keeps_what_it_was_given() {
        assert_eq!(size_of::<Text>(), 32);
        for length in [0, 1, INLINE, INLINE + 1, LENGTH_MAX] {
            let bytes = vec![b'x'; length];
            assert_eq!(Text::new(&bytes).as_bytes(), bytes);
        }
    }
}
