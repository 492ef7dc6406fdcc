//! The lock table, as a data structure: [`latched`], over one or many [`partition`]s. It knows of no
//! thread, clock, socket or file; what must survive is told to a [`Journal`](request::Journal).

pub mod argument;
pub mod entry;
pub mod index;
pub mod latched;
pub mod mode;
pub mod partition;
pub mod patterns;
pub mod request;
pub mod trie;
pub mod usage;
