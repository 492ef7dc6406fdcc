//! Generic netlink: a socket, requests with one attribute, and a parser of messages.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::{ProbeError, Result};

/// The family that names the others.
pub const GENL_ID_CTRL: u16 = 16;
const BUFFER_BYTES: i32 = 32 << 20;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const GENERIC_HEADER_BYTES: usize = 4;

/// A request to a family.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub family: u16,
    pub command: u8,
    /// The type of its one attribute, and the value.
    pub attribute: u16,
    pub value: &'a [u8],
    /// Whether the kernel is to acknowledge the request.
    pub acknowledge: bool,
}

/// A netlink socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens and binds one.
    pub fn open() -> Result<Self> {
        // SAFETY: plain numbers; the descriptor is owned from here on; `address` is all that bind
        // reads, and all-zero is valid for it.
        unsafe {
            let raw = libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_GENERIC,
            );
            if raw < 0 {
                return Err(ProbeError::last("open a netlink socket"));
            }
            let socket = OwnedFd::from_raw_fd(raw);
            let bytes = BUFFER_BYTES;
            for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
                // The unprivileged option first; a smaller buffer only loses more under storms.
                libc::setsockopt(
                    raw,
                    libc::SOL_SOCKET,
                    option,
                    (&raw const bytes).cast(),
                    size_of::<i32>() as libc::socklen_t,
                );
            }
            let mut address: libc::sockaddr_nl = zeroed();
            address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            if libc::bind(raw, (&raw const address).cast(), size) < 0 {
                return Err(ProbeError::last("bind a netlink socket"));
            }
            Ok(Self(socket))
        }
    }

    pub fn send(&self, request: &Request) -> Result<()> {
        let message = request.message();
        // SAFETY: pointer and length describe `message`, which is only read.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(ProbeError::last("send a netlink request"));
        }
        Ok(())
    }

    /// Messages of one read, in the beginning of `buffer`.
    pub fn receive<'b>(&self, buffer: &'b mut [u8], flags: libc::c_int) -> Result<&'b [u8]> {
        // SAFETY: pointer and length describe `buffer`.
        let length = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                flags,
            )
        };
        if length < 0 {
            return Err(ProbeError::last("receive from netlink"));
        }
        Ok(&buffer[..length as usize])
    }
}

impl Request<'_> {
    fn message(&self) -> Vec<u8> {
        let attribute_length = 4 + self.value.len();
        let length = HEADER_BYTES + GENERIC_HEADER_BYTES + aligned(attribute_length);
        let flags = libc::NLM_F_REQUEST | if self.acknowledge { libc::NLM_F_ACK } else { 0 };
        let mut message = Vec::with_capacity(length);
        message.extend((length as u32).to_ne_bytes());
        message.extend(self.family.to_ne_bytes());
        message.extend((flags as u16).to_ne_bytes());
        message.extend([0; 8]);
        message.extend([self.command, 1, 0, 0]);
        message.extend((attribute_length as u16).to_ne_bytes());
        message.extend(self.attribute.to_ne_bytes());
        message.extend(self.value);
        message.resize(length, 0);
        message
    }
}

/// The body of the one message of an answer, behind its headers.
pub fn body(message: &[u8]) -> &[u8] {
    &message[(HEADER_BYTES + GENERIC_HEADER_BYTES).min(message.len())..]
}

/// The bodies of all messages of one read that are no acknowledgements.
pub fn bodies(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let next = move || {
        let length = u32_at(bytes, 0)? as usize;
        if length < HEADER_BYTES + GENERIC_HEADER_BYTES || length > bytes.len() {
            return None;
        }
        let message = &bytes[..length];
        bytes = &bytes[aligned(length).min(bytes.len())..];
        Some(message)
    };
    std::iter::from_fn(next)
        .filter(|message| !is_acknowledgement(message))
        .map(body)
}

/// The type–length–value attributes of a netlink message.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = &bytes[aligned(length).min(bytes.len())..];
        // The two top bits are flags.
        Some((kind & 0x3fff, value))
    })
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Whether a message says how a request went.
pub fn is_acknowledgement(message: &[u8]) -> bool {
    u16_at(message, 4) == Some(NLMSG_ERROR)
}

/// The error that an acknowledgement reports; none for success and for other messages.
pub fn check_error(message: &[u8], what: &str) -> Result<()> {
    if !is_acknowledgement(message) {
        return Ok(());
    }
    match u32_at(message, HEADER_BYTES).map(|errno| -(errno as i32)) {
        Some(0) => Ok(()),
        Some(errno) => Err(ProbeError::system(
            what,
            std::io::Error::from_raw_os_error(errno),
        )),
        None => Err(ProbeError::syntax(what, "")),
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request {
        family: 30,
        command: 1,
        attribute: 2,
        value: b"0-3\0\0",
        acknowledge: true,
    };

    #[test]
    fn what_was_put_into_messages_is_found_in_them_again() {
        let message = REQUEST.message();
        let two = [&message[..], &message[..]].concat();
        let found: Vec<_> = bodies(&two).flat_map(attributes).collect();
        assert_eq!(found, [(2, &b"0-3\0\0"[..]); 2]);
        assert!(!is_acknowledgement(&message) && check_error(&message, "").is_ok());
    }

    #[test]
    fn messages_that_were_cut_are_passed_over() {
        let message = REQUEST.message();
        for length in 0..message.len() {
            assert_eq!(bodies(&message[..length]).count(), 0);
            assert!(attributes(body(&message[..length])).all(|it| it.1.len() <= 5));
        }
    }

    #[test]
    fn an_acknowledgement_says_how_it_went() {
        let acknowledgement = |errno: i32| {
            let mut message = Request {
                family: NLMSG_ERROR,
                ..REQUEST
            }
            .message();
            message[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&(-errno).to_ne_bytes());
            message
        };
        assert!(check_error(&acknowledgement(0), "ask").is_ok());
        let error = check_error(&acknowledgement(libc::EPERM), "ask").unwrap_err();
        assert_eq!(error.errno(), Some(libc::EPERM));
        assert_eq!(bodies(&acknowledgement(0)).count(), 0);
    }
}
