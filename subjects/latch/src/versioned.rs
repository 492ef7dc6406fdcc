//! Bytes behind a latch, which can also be read without it.
#![allow(unsafe_code)]

use std::ops::{Deref, Range};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::class::Class;
use crate::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::version::Version;

/// Bytes that many threads may read, or one may change; and that others may read at any time
/// without the latch, if they throw away what they have read when it has changed in the meantime
/// ([`Snapshot`]). Such readers write nothing, so they do not delay each other, and one that dies
/// leaves nothing behind.
///
/// The bytes are words that are changed by atomic stores and read without the latch by atomic
/// loads: a race yields bytes of several versions, and never undefined behaviour.
///
/// `BYTES` is 8 times `WORDS`. At first, all bytes are 0 and not valid. They stand behind the latch and the
/// version: who reads the first ones finds them in the same cache line.
#[derive(Debug)]
#[repr(C)]
pub struct Versioned<const BYTES: usize, const WORDS: usize> {
    latch: RwLock<()>,
    version: Version,
    words: [AtomicU64; WORDS],
}

/// Holds the latch shared, until it is dropped.
#[derive(Debug)]
pub struct VersionedRead<'a, const BYTES: usize, const WORDS: usize> {
    bytes: &'a Versioned<BYTES, WORDS>,
    _latch: RwLockReadGuard<'a, ()>,
}

/// Holds the latch exclusively, until it is dropped.
#[derive(Debug)]
pub struct VersionedWrite<'a, const BYTES: usize, const WORDS: usize> {
    bytes: &'a Versioned<BYTES, WORDS>,
    /// The bytes will be valid when it is dropped.
    ends_valid: bool,
    // Dropped after the version has changed.
    _latch: RwLockWriteGuard<'a, ()>,
}

/// Reads bytes without their latch. What it returns counts only if [`Snapshot::is_current`] holds
/// afterwards; until then it may be of several versions, and nothing may rely on it.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a, const WORDS: usize> {
    version: &'a Version,
    seen: u64,
    words: &'a [AtomicU64; WORDS],
}

impl<const BYTES: usize, const WORDS: usize> Versioned<BYTES, WORDS> {
    /// Zeros, which are not valid.
    pub fn new(class: Class) -> Self {
        const { assert!(BYTES == 8 * WORDS) };
        Self {
            latch: class.rwlock(()),
            version: Version::invalid(),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Waits for the latch, and takes it shared.
    #[inline]
    pub fn read(&self) -> VersionedRead<'_, BYTES, WORDS> {
        let latch = self.latch.read();
        VersionedRead {
            bytes: self,
            _latch: latch,
        }
    }

    /// Takes the latch shared, if it is available now.
    #[inline]
    pub fn try_read(&self) -> Option<VersionedRead<'_, BYTES, WORDS>> {
        let latch = self.latch.try_read()?;
        Some(VersionedRead {
            bytes: self,
            _latch: latch,
        })
    }

    /// Waits for the latch, and takes it exclusively.
    #[inline]
    pub fn write(&self) -> VersionedWrite<'_, BYTES, WORDS> {
        let latch = self.latch.write();
        VersionedWrite {
            bytes: self,
            ends_valid: self.version.is_valid(),
            _latch: latch,
        }
    }

    /// Takes the latch exclusively, if it is available now.
    #[inline]
    pub fn try_write(&self) -> Option<VersionedWrite<'_, BYTES, WORDS>> {
        let latch = self.latch.try_write()?;
        Some(VersionedWrite {
            bytes: self,
            ends_valid: self.version.is_valid(),
            _latch: latch,
        })
    }

    /// Begins to read without the latch; `None` while the bytes change, or if they are not valid.
    #[inline]
    pub fn snapshot(&self) -> Option<Snapshot<'_, WORDS>> {
        let seen = self.version.to_read()?;
        Some(Snapshot {
            version: &self.version,
            seen,
            words: &self.words,
        })
    }

    /// To be called by a holder of the latch, who does not change the bytes while the reference
    /// lives.
    #[inline]
    fn bytes(&self) -> &[u8; BYTES] {
        // SAFETY: the words are BYTES bytes, and any byte is a valid u8. Words change only through
        // a `&mut VersionedWrite`, whose latch excludes all others, and which is borrowed while
        // the reference lives if it is its own. Others load the words, which is no conflict.
        unsafe { &*ptr::from_ref(&self.words).cast() }
    }
}

impl<const BYTES: usize, const WORDS: usize> VersionedRead<'_, BYTES, WORDS> {
    /// Whether the bytes are valid.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.bytes.version.is_valid()
    }
}

impl<const BYTES: usize, const WORDS: usize> Deref for VersionedRead<'_, BYTES, WORDS> {
    type Target = [u8; BYTES];

    #[inline]
    fn deref(&self) -> &[u8; BYTES] {
        self.bytes.bytes()
    }
}

impl<const BYTES: usize, const WORDS: usize> Deref for VersionedWrite<'_, BYTES, WORDS> {
    type Target = [u8; BYTES];

    #[inline]
    fn deref(&self) -> &[u8; BYTES] {
        self.bytes.bytes()
    }
}

impl<const BYTES: usize, const WORDS: usize> VersionedWrite<'_, BYTES, WORDS> {
    /// Whether the bytes are valid, or will be when the latch is released.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.ends_valid
    }

    /// From now on, until the latch is released, nobody reads the bytes without it. Each change does the
    /// same; this is for who must know before the first one that all later readers will wait.
    pub fn begin_change(&mut self) {
        self.bytes.version.begin_change();
    }

    /// From now on, until [`VersionedWrite::validate`], nobody reads the bytes without the latch.
    pub fn invalidate(&mut self) {
        self.bytes.version.begin_change();
        self.ends_valid = false;
    }

    /// The bytes are valid when the latch is released.
    pub fn validate(&mut self) {
        self.ends_valid = true;
    }

    /// Changes some bytes.
    ///
    /// # Panics
    /// If they end after the last one.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at <= BYTES && bytes.len() <= BYTES - at,
            "a change after the end"
        );
        self.bytes.version.begin_change();
        let words = &self.bytes.words[..];
        let head = bytes.len().min((8 - at % 8) % 8);
        let (head, rest) = bytes.split_at(head);
        patch(words, at, head);
        let (at, (whole, tail)) = (at + head.len(), rest.as_chunks::<8>());
        for (word, bytes) in words[at / 8..].iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        patch(words, at + 8 * whole.len(), tail);
    }

    /// Copies some bytes to another place, which may overlap theirs.
    ///
    /// # Panics
    /// If one of the places ends after the last byte.
    pub fn shift(&mut self, from: Range<usize>, to: usize) {
        let moved = self[from].to_vec();
        self.put(to, &moved);
    }
}

/// Changes a part of one word.
fn patch(words: &[AtomicU64], at: usize, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    let (word, offset) = (&words[at / 8], at % 8);
    let mut bytes = word.load(Relaxed).to_ne_bytes();
    bytes[offset..offset + part.len()].copy_from_slice(part);
    word.store(u64::from_ne_bytes(bytes), Relaxed);
}

impl<const BYTES: usize, const WORDS: usize> Drop for VersionedWrite<'_, BYTES, WORDS> {
    fn drop(&mut self) {
        // After a panic the bytes may be half changed, and the latch is never free again.
        if self.ends_valid && !std::thread::panicking() {
            self.bytes.version.end_change();
        }
    }
}

impl<const WORDS: usize> Snapshot<'_, WORDS> {
    /// Whether nothing has changed since the snapshot began: then all that it returned was there
    /// at the same time.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.version.is_still(self.seen)
    }

    /// Eight bytes as a big-endian number, which compares as they do. Bytes after the end are 0.
    #[inline]
    pub fn number(&self, at: usize) -> u64 {
        let (index, shift) = (at / 8, at % 8 * 8);
        let low = u64::from_le(self.word(index)) >> shift;
        let high = match shift {
            0 => 0,
            _ => u64::from_le(self.word(index + 1)) << (64 - shift),
        };
        (low | high).swap_bytes()
    }

    /// Copies bytes from a place on. Bytes after the end are 0.
    #[inline]
    pub fn copy(&self, at: usize, to: &mut [u8]) {
        let (whole, tail) = to.as_chunks_mut::<8>();
        let shift = at % 8 * 8;
        let mut low = u64::from_le(self.word(at / 8));
        for (step, bytes) in whole.iter_mut().enumerate() {
            let high = u64::from_le(self.word(at / 8 + step + 1));
            *bytes = match shift {
                0 => low.to_le_bytes(),
                _ => (low >> shift | high << (64 - shift)).to_le_bytes(),
            };
            low = high;
        }
        let last = self.number(at + 8 * whole.len()).to_be_bytes();
        tail.copy_from_slice(&last[..tail.len()]);
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |it| it.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Small = Versioned<64, 8>;

    fn valid() -> Small {
        let bytes = Small::new(Class::OTHER);
        bytes.write().validate();
        bytes
    }

    #[test]
    fn bytes_are_changed_and_read_at_any_place() {
        let bytes = valid();
        let mut model = [0_u8; 64];
        for at in 0..64 {
            for length in 0..=64 - at {
                let part: Vec<u8> = (0..length)
                    .map(|it| (at * 7 + it * 3 + length) as u8)
                    .collect();
                bytes.write().put(at, &part);
                model[at..at + length].copy_from_slice(&part);
                assert_eq!(*bytes.read(), model);
                let snapshot = bytes.snapshot().unwrap();
                let mut copied = vec![0; length];
                snapshot.copy(at, &mut copied);
                assert_eq!(copied, part);
                let mut eight = [0; 8];
                let end = 64.min(at + 8);
                eight[..end - at].copy_from_slice(&model[at..end]);
                assert_eq!(snapshot.number(at), u64::from_be_bytes(eight));
                assert!(snapshot.is_current());
            }
        }
        let mut write = bytes.write();
        write.shift(3..40, 9);
        model.copy_within(3..40, 9);
        assert_eq!(*write, model);
    }

    #[test]
    fn places_after_the_end_read_as_zeros() {
        let bytes = valid();
        bytes.write().put(0, &[0xff; 64]);
        let snapshot = bytes.snapshot().unwrap();
        assert_eq!(snapshot.number(61), 0xff_ffff << 40);
        assert_eq!(snapshot.number(64), 0);
        assert_eq!(snapshot.number(usize::MAX - 100), 0);
        let mut copied = [7; 20];
        snapshot.copy(60, &mut copied);
        assert_eq!(copied[..5], [0xff, 0xff, 0xff, 0xff, 0]);
    }

    #[test]
    #[should_panic(expected = "a change after the end")]
    fn changes_after_the_end_are_refused() {
        valid().write().put(60, &[1; 5]);
    }

    #[test]
    fn a_change_ends_snapshots_and_a_look_does_not() {
        let bytes = valid();
        let before = bytes.snapshot().unwrap();
        drop(bytes.read());
        drop(bytes.write());
        assert!(before.is_current());
        let mut write = bytes.write();
        write.put(5, &[1]);
        assert!(!before.is_current());
        assert!(bytes.snapshot().is_none());
        drop(write);
        assert!(!before.is_current());
        assert!(bytes.snapshot().unwrap().is_current());
    }

    #[test]
    fn invalid_bytes_are_read_by_nobody() {
        let bytes = Small::new(Class::OTHER);
        assert!(bytes.snapshot().is_none());
        assert!(!bytes.read().is_valid());
        assert!(!bytes.write().is_valid());
        bytes.write().put(0, &[1]);
        assert!(bytes.snapshot().is_none());
        bytes.write().validate();
        let before = bytes.snapshot().unwrap();
        bytes.write().invalidate();
        assert!(!before.is_current());
        assert!(bytes.snapshot().is_none());
        bytes.write().validate();
        assert!(!before.is_current());
        assert!(bytes.read().is_valid());
    }

    #[test]
    fn a_latch_that_is_taken_is_not_waited_for() {
        let bytes = valid();
        let read = bytes.read();
        assert!(bytes.try_read().is_some() && bytes.try_write().is_none());
        drop(read);
        let mut write = bytes.try_write().unwrap();
        write.put(0, &[1]);
        assert!(bytes.try_read().is_none() && bytes.try_write().is_none());
        drop(write);
        assert!(bytes.snapshot().is_some_and(|it| it.number(0) >> 56 == 1));
    }

    #[test]
    fn bytes_whose_writer_panicked_are_not_read() {
        let bytes = valid();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut write = bytes.write();
            write.put(0, &[1]);
            panic!("in the middle");
        }));
        assert!(panicked.is_err());
        assert!(bytes.snapshot().is_none());
    }
}
