//! The lock service: what SAP's enqueue server does, as a data structure.

pub mod argument;
pub mod book;
pub mod entry;
pub mod index;
pub mod latched;
pub mod mode;
pub mod overflow;
pub mod owners;
pub mod patterns;
pub mod request;
pub mod room;
pub mod slab;
pub mod trie;
