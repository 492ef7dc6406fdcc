//! Hash tables that processes share.

use foldhash::fast::FixedState;

/// A hash table that hashes alike in all processes, also in those forked before it was made.
pub type Table<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// The hash function of its keys.
pub type Hashing = FixedState;
