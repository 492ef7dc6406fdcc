//! A socket that does not block, with buffers for both directions.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket that does not block.
#[derive(Debug)]
pub struct BufferedSocket {
    stream: Stream,
    /// Bytes that the socket has not accepted yet.
    unsent: Vec<u8>,
    /// Received bytes that are the beginning of an incomplete message.
    unread: Vec<u8>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl BufferedSocket {
    /// Takes a stream in non-blocking mode.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::over(Stream::Tcp(stream)))
    }

    /// Takes a stream in non-blocking mode.
    pub fn unix(stream: UnixStream) -> Self {
        Self::over(Stream::Unix(stream))
    }

    fn over(stream: Stream) -> Self {
        Self {
            stream,
            unsent: Vec::new(),
            unread: Vec::new(),
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    /// Sends as much as the socket accepts; `false` if something is left: then the caller waits until
    /// the socket is writable.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(false);
        }
        let sent = self.write(bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(self.unsent.is_empty())
    }

    /// Whether bytes are left to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends bytes that were left; `true` if none are left now.
    pub fn flush(&mut self) -> io::Result<bool> {
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.write(&unsent)?;
        self.unsent.extend_from_slice(&unsent[sent..]);
        Ok(self.unsent.is_empty())
    }

    /// Shuts the connection down in both directions.
    pub fn close(&mut self) {
        // The connection is lost already, so an error here has no consequence.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            let written = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(&bytes[sent..]),
                Stream::Unix(stream) => stream.write(&bytes[sent..]),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes_sent += sent as u64;
        Ok(sent)
    }

    /// Reads once, and passes all bytes that are not parsed yet to `parse`, which returns how many
    /// bytes it used. If the socket has more, the next poll reports that.
    pub fn receive<E: From<io::Error>>(
        &mut self,
        scratch: &mut [u8],
        parse: impl FnOnce(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(scratch),
            Stream::Unix(stream) => stream.read(scratch),
        };
        let count = match read {
            Ok(0) => {
                let text = "the server closed it";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, text).into());
            }
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.bytes_received += count as u64;
        if self.unread.is_empty() {
            let used = parse(&scratch[..count])?;
            self.unread.extend_from_slice(&scratch[used..count]);
        } else {
            self.unread.extend_from_slice(&scratch[..count]);
            let used = parse(&self.unread)?;
            self.unread.drain(..used);
        }
        Ok(())
    }
}

impl AsFd for BufferedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
