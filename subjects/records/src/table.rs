//! Hash tables that processes share.

use foldhash::fast::FixedState;

/// A hash table that hashes alike in all processes, also in those that were forked before it was made.
pub type Table<K, V> = hashbrown::HashMap<K, V, FixedState>;

/// How its keys are hashed.
pub type Hashing = FixedState;
