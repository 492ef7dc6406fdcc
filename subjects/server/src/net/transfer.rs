//! Bytes to and from a client's socket, by system calls of our own: those of the standard library go
//! through the C library, which makes each a place where its thread could be cancelled.

use std::io;
use std::net::TcpStream;

use rustix::net::{RecvFlags, SendFlags, recv, send};

/// Reads what has arrived, as far as `into` has room; 0 at the end.
///
/// # Errors
/// As `Read::read` of the socket.
pub fn receive(socket: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = recv(socket, into, RecvFlags::empty())?;
    Ok(bytes)
}

/// Writes as much as the socket accepts.
///
/// # Errors
/// As `Write::write` of the socket.
pub fn transmit(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    // Without a signal if the client has closed the connection, as the standard library does.
    Ok(send(socket, bytes, SendFlags::NOSIGNAL)?)
}
