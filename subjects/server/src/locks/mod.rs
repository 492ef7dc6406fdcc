//! The lock service, with the functions of SAP's enqueue server, over the
//! [`lock_table`](crate::lock_table): owners and their names, the backup file, and the state of a
//! connection.

pub mod overflow;
pub mod owners;
pub mod service;
pub mod session;
