//! A connection: bytes in, bytes out, and what is kept between.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::plan::Server;

/// A stream to the server that does not block.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection with what could not be sent yet, and what is not understood yet.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    unsent: Vec<u8>,
    unread: Vec<u8>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl Server {
    pub fn text(&self) -> String {
        match self {
            Self::Tcp { name, .. } => name.clone(),
            Self::Unix(path) => path.display().to_string(),
        }
    }
}

impl Connection {
    /// Of a socket that does not block.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::over(Stream::Tcp(stream)))
    }

    /// Of a socket that does not block.
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

    /// Sends as much as can be; `false` if something is left, and the socket must be waited for.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(false);
        }
        let sent = self.write(bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(self.unsent.is_empty())
    }

    /// Whether something is left to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what was left; `true` if nothing is left now.
    pub fn flush(&mut self) -> io::Result<bool> {
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.write(&unsent)?;
        self.unsent.extend_from_slice(&unsent[sent..]);
        Ok(self.unsent.is_empty())
    }

    /// Lets the server know that nothing more will be asked or heard.
    pub fn close(&mut self) {
        // It is lost already: that it cannot be closed either changes nothing.
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

    /// Reads what has come, and hands `understand` all that is not understood yet; it says how
    /// many bytes it used. One read at most: the poll says if there is more.
    pub fn receive<E: From<io::Error>>(
        &mut self,
        scratch: &mut [u8],
        understand: impl FnOnce(&[u8]) -> Result<usize, E>,
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
            let used = understand(&scratch[..count])?;
            self.unread.extend_from_slice(&scratch[used..count]);
        } else {
            self.unread.extend_from_slice(&scratch[..count]);
            let used = understand(&self.unread)?;
            self.unread.drain(..used);
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
