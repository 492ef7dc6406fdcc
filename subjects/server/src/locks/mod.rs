//! The lock service, with the functions of SAP's enqueue server: the lock table ([`latched`], over
//! one or many [`partition`]s), and the state around it ([`service`], [`session`]).

pub mod argument;
pub mod entry;
pub mod index;
pub mod latched;
pub mod mode;
pub mod overflow;
pub mod owners;
pub mod partition;
pub mod patterns;
pub mod request;
pub mod service;
pub mod session;
pub mod trie;
pub mod usage;
