//! Connections, and the threads that process their requests.
//!
//! [`ClientSockets`](sockets::ClientSockets) reads and parses requests into a
//! [`Batch`](batch::Batch) and writes its replies. An engine executes batches: see [`engine`](crate::engine).
//! Depending on the [`ThreadModel`](crate::options::ThreadModel), the engine itself owns the
//! sockets, or I/O threads own them ([`io_thread`]) and a run queue and a thread that waits for the
//! disk are in between. The threads share the [`Network`](network::Network).

pub mod batch;
pub mod client_connection;
pub mod clients;
pub mod handover;
pub mod inbox;
pub mod incidents;
pub mod io_thread;
pub mod listener;
pub mod network;
pub mod newcomers;
pub mod poller;
pub mod run_queue;
pub mod sockets;
pub mod threads;
mod transfer;
