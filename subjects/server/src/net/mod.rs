//! Connections, and the threads that serve them.
//!
//! [`ClientSockets`](sockets::ClientSockets) reads and parses requests into a [`Batch`](batch::Batch)
//! and writes its replies. An engine executes batches: see [`engine`](crate::engine). In between, by the
//! [`ThreadModel`](crate::options::ThreadModel), there is nothing (the engine has the sockets), or a
//! run queue, with I/O threads that have the sockets ([`io_thread`]) and a thread that waits for the
//! disk. What the threads share is the [`Network`](network::Network).

pub mod batch;
pub mod client_connection;
pub mod clients;
pub mod handover;
pub mod inbox;
pub mod io_thread;
pub mod listener;
pub mod network;
pub mod poller;
pub mod run_queue;
pub mod sockets;
pub mod threads;
