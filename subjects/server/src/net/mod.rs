//! Connections, and the threads that serve them. I/O threads read, parse and answer; a request is
//! executed by the I/O thread itself, or by an engine that takes it from the run queue; what must be
//! durable goes on from there to the disk's thread. An engine that is a process is an I/O thread that
//! accepts and executes, too.

pub mod batch;
pub mod connection;
pub mod disk;
pub mod dispatch;
pub mod executor;
pub mod give_back;
pub mod idle;
pub mod inbox;
pub mod io_thread;
pub mod listener;
pub mod poller;
pub mod reception;
pub mod run_queue;
pub mod until;
