//! Connections, and the threads that serve them: a listener hands each connection to one of the
//! I/O threads, which read, parse and answer; a request is executed by the I/O thread itself or
//! by the one worker thread.

pub mod batch;
pub mod connection;
pub mod idle;
pub mod inbox;
pub mod io_thread;
pub mod listener;
pub mod poller;
pub mod worker;
