//! What generations and engines tell the keeper: one message, one packet.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use crate::{EnginesError, While};

/// Longest message; more of a text is cut off.
const BYTES: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub enum News {
    Ready,
    Replaced {
        engine: u32,
        why: String,
    },
    /// An engine died holding latches: this generation ends.
    Lost(String),
    /// The service said that it cannot go on.
    Failed(String),
}

#[derive(Debug)]
pub struct Sender(OwnedFd);

#[derive(Debug)]
pub struct Receiver(OwnedFd);

pub fn channel() -> Result<(Sender, Receiver), EnginesError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags);
    let (send, receive) = pair.when("make a pair of sockets")?;
    Ok((Sender(send), Receiver(receive)))
}

impl Sender {
    pub fn send(&self, news: &News) {
        let (kind, engine, text) = match news {
            News::Ready => (b'r', 0, ""),
            News::Replaced { engine, why } => (b'e', *engine, why.as_str()),
            News::Lost(why) => (b'l', 0, why.as_str()),
            News::Failed(why) => (b'f', 0, why.as_str()),
        };
        let mut packet = vec![kind];
        packet.extend(engine.to_ne_bytes());
        packet.extend(text.bytes().take(BYTES - packet.len()));
        // Without a keeper there is nobody to tell, and this process is about to end.
        let _ = send(self.0.as_raw_fd(), &packet, MsgFlags::MSG_NOSIGNAL);
    }
}

impl Receiver {
    /// The next message, if there is one.
    pub fn next(&self) -> Option<News> {
        let mut packet = [0; BYTES];
        let length = recv(self.0.as_raw_fd(), &mut packet, MsgFlags::empty()).ok()?;
        let (kind, rest) = packet[..length].split_first()?;
        let (engine, text) = rest.split_first_chunk()?;
        let engine = u32::from_ne_bytes(*engine);
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'r' => Some(News::Ready),
            b'e' => Some(News::Replaced { engine, why: text }),
            b'l' => Some(News::Lost(text)),
            _ => Some(News::Failed(text)),
        }
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (sender, receiver) = channel().expect("sockets");
        assert_eq!(receiver.next(), None);
        let all = [
            News::Ready,
            News::Replaced {
                engine: 7,
                why: "was killed".into(),
            },
            News::Lost("a latch".into()),
            News::Failed(String::new()),
        ];
        all.iter().for_each(|it| sender.send(it));
        let received: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!(received, all);
        sender.send(&News::Failed("x".repeat(10_000)));
        let Some(News::Failed(text)) = receiver.next() else {
            panic!("it was sent")
        };
        assert_eq!(text.len(), BYTES - 5);
    }
}
