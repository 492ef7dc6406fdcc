//! Messages from generations and engines to the supervisor: a packet each.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use crate::error::EnginesError;

/// Longest message; longer texts are cut off.
const BYTES: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    Ready,
    Replaced {
        engine: u32,
        why: String,
    },
    /// A process was stopped.
    Stopped(String),
    /// An engine died holding latches: this generation ends.
    Lost(String),
    /// The service reported that it cannot continue.
    Failed(String),
}

#[derive(Debug)]
pub struct Sender(OwnedFd);

#[derive(Debug)]
pub struct Receiver(OwnedFd);

pub fn channel() -> Result<(Sender, Receiver), EnginesError> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags);
    let (send, receive) = pair.map_err(EnginesError::system("make a pair of sockets"))?;
    Ok((Sender(send), Receiver(receive)))
}

impl Sender {
    pub fn send(&self, message: &Message) {
        let (kind, engine, text) = match message {
            Message::Ready => (b'r', 0, ""),
            Message::Replaced { engine, why } => (b'e', *engine, why.as_str()),
            Message::Stopped(why) => (b's', 0, why.as_str()),
            Message::Lost(why) => (b'l', 0, why.as_str()),
            Message::Failed(why) => (b'f', 0, why.as_str()),
        };
        let mut packet = vec![kind];
        packet.extend(engine.to_ne_bytes());
        packet.extend(text.bytes().take(BYTES - packet.len()));
        // Fails only if the supervisor has ended: then this process is killed.
        let _ = send(self.0.as_raw_fd(), &packet, MsgFlags::MSG_NOSIGNAL);
    }
}

impl Receiver {
    /// The next message, if there is one.
    pub fn next(&self) -> Option<Message> {
        let mut packet = [0; BYTES];
        let length = recv(self.0.as_raw_fd(), &mut packet, MsgFlags::empty()).ok()?;
        let (kind, rest) = packet[..length].split_first()?;
        let (engine, text) = rest.split_first_chunk()?;
        let engine = u32::from_ne_bytes(*engine);
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'r' => Some(Message::Ready),
            b'e' => Some(Message::Replaced { engine, why: text }),
            b's' => Some(Message::Stopped(text)),
            b'l' => Some(Message::Lost(text)),
            _ => Some(Message::Failed(text)),
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
            Message::Ready,
            Message::Replaced {
                engine: 7,
                why: "was killed".into(),
            },
            Message::Stopped("was stopped".into()),
            Message::Lost("a latch".into()),
            Message::Failed(String::new()),
        ];
        all.iter().for_each(|it| sender.send(it));
        let received: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!(received, all);
        sender.send(&Message::Failed("x".repeat(10_000)));
        let Some(Message::Failed(text)) = receiver.next() else {
            panic!("it was sent")
        };
        assert_eq!(text.len(), BYTES - 5);
    }
}
