//! The lock service: what SAP's enqueue server does, over the [`lock_table`](crate::lock_table):
//! owners and their names, the backup file, and what the service remembers of a connection.

pub mod overflow;
pub mod owners;
pub mod service;
pub mod session;
