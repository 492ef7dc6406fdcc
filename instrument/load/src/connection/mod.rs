//! Connections to servers: sockets, connecting and logging in, administrative connections.

mod admin;
mod connect;
mod socket;

pub use admin::ServerAdmin;
pub use connect::{ConnectionError, Deadline, connect, connect_remedy};
pub use socket::BufferedSocket;
