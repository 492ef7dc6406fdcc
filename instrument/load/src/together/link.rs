//! A connection between two loads that search together: a line of JSON for each message, and how each
//! shows the other that it has the token.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::time::Duration;

use concurve_clock::monotonic_ns;
use rustix::net::sockopt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::meeting::{Token, nonce};
use super::messages::{FromFollower, FromLeader, plain};
use crate::error::{Error, Refusal, TogetherError};
use crate::stop::Stop;

/// So long a process may take to show that it is a load.
const ADMISSION_NS: u64 = 10_000_000_000;
/// As many as the option takes.
const SESSIONS_MAX: u64 = 1_000_000;
/// How often a wait for a message looks whether to stop.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// A message that cannot be sent for so long has no receiver any more.
const SEND_LIMIT: Duration = Duration::from_secs(20);
/// So many bytes in a line, at most: before the other has shown that it has the token, and after.
const STRANGER_BYTES_MAX: usize = 64 << 10;
const BYTES_MAX: usize = 256 << 20;
/// A host that is gone is noticed after so many seconds without an answer, and so many tries.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TRIES: u32 = 3;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Who proves that it has the token.
const LEADER: &str = "leader";
const FOLLOWER: &str = "follower";

/// A connection to another load.
#[derive(Debug)]
pub struct Link {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    bytes_max: usize,
}

/// Why no message came or went.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("it ended the connection")]
    Closed,
    #[error("it said nothing in time")]
    TimedOut,
    #[error("stopped")]
    Stopped,
    #[error("it sent what no load sends")]
    Malformed,
    #[error("it sent a line of more than {0} bytes")]
    TooLong(usize),
    #[error(transparent)]
    Io(io::Error),
}

/// Another load with its name, by which errors say who was lost.
#[derive(Debug)]
pub struct Peer {
    pub name: String,
    pub link: Link,
}

impl Peer {
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let sent = self.link.send(message);
        sent.map_err(|error| self.lost(&error))
    }

    pub fn receive<T: DeserializeOwned>(
        &mut self,
        until_ns: u64,
        stop: Option<&Stop>,
    ) -> Result<T, Error> {
        match self.link.receive(until_ns, stop) {
            Err(LinkError::Stopped) => Err(Error::Stopped),
            received => received.map_err(|error| self.lost(&error)),
        }
    }

    /// It sent a message that is not due, or cannot be.
    pub fn malformed(&self) -> Error {
        self.lost(&LinkError::Malformed)
    }

    fn lost(&self, error: &LinkError) -> Error {
        let (name, why) = (self.name.clone(), error.to_string());
        TogetherError::Lost { name, why }.into()
    }
}

/// What a follower says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    pub role: Option<String>,
    pub sessions: u64,
    pub kinds: Vec<String>,
}

impl Link {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STOP_CHECK))?;
        stream.set_write_timeout(Some(SEND_LIMIT))?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEP_ALIVE)?;
        sockopt::set_tcp_keepcnt(&stream, KEEP_ALIVE_TRIES)?;
        // While what was sent is not acknowledged, no such question is asked.
        sockopt::set_tcp_user_timeout(&stream, SEND_LIMIT.as_millis() as u32)?;
        Ok(Self {
            stream: BufReader::new(stream),
            line: Vec::new(),
            bytes_max: STRANGER_BYTES_MAX,
        })
    }

    pub fn send(&mut self, message: &impl Serialize) -> Result<(), LinkError> {
        let mut text = serde_json::to_vec(message).expect("counts and names are JSON");
        text.push(b'\n');
        self.stream.get_mut().write_all(&text).map_err(lost)
    }

    /// The next message; waits until a time on CLOCK_MONOTONIC, or until the run is stopped, if that ends
    /// the wait.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        until_ns: u64,
        stop: Option<&Stop>,
    ) -> Result<T, LinkError> {
        self.line.clear();
        loop {
            // In each turn: who sends a byte now and then does not keep this waiting.
            if stop.is_some_and(Stop::is_set) {
                return Err(LinkError::Stopped);
            }
            let found = match self.stream.fill_buf() {
                Ok([]) => return Err(LinkError::Closed),
                Ok(found) => found,
                Err(error) if is_wait(&error) && monotonic_ns() < until_ns => continue,
                Err(error) if is_wait(&error) => return Err(LinkError::TimedOut),
                Err(error) => return Err(lost(error)),
            };
            let is_late = monotonic_ns() >= until_ns;
            let end = found.iter().position(|it| *it == b'\n');
            let length = end.map_or(found.len(), |it| it + 1);
            if self.line.len() + length > self.bytes_max {
                return Err(LinkError::TooLong(self.bytes_max));
            }
            self.line.extend_from_slice(&found[..length]);
            self.stream.consume(length);
            if end.is_some() {
                return serde_json::from_slice(&self.line).map_err(|_| LinkError::Malformed);
            }
            if is_late {
                return Err(LinkError::TimedOut);
            }
        }
    }

    /// Lets a process that has connected show that it is a load with the token, and shows it the same.
    pub fn admit(&mut self, token: &Token, stop: &Stop) -> Result<Introduction, Error> {
        self.admit_until(token, monotonic_ns() + ADMISSION_NS, stop)
    }

    fn admit_until(
        &mut self,
        token: &Token,
        until_ns: u64,
        stop: &Stop,
    ) -> Result<Introduction, Error> {
        let own = nonce()?;
        let challenge = FromLeader::Challenge {
            version: VERSION.to_owned(),
            nonce: own.clone(),
        };
        self.send(&challenge).map_err(stranger)?;
        let joining = self.receive(until_ns, Some(stop)).map_err(stranger)?;
        let FromFollower::Join {
            version,
            role,
            sessions,
            kinds,
            nonce,
            proof,
        } = joining
        else {
            return Err(stranger(LinkError::Malformed));
        };
        let nonces = [own.as_str(), nonce.as_str()];
        let refusal = if version != VERSION {
            Some(Refusal::Version {
                theirs: plain(&version),
                ours: VERSION.to_owned(),
            })
        } else if !(1..=SESSIONS_MAX).contains(&sessions) {
            let why = format!("{sessions} sessions");
            Some(Refusal::Stranger(why))
        } else if !token.is_proven(FOLLOWER, nonces, &proof) {
            Some(Refusal::Token)
        } else {
            None
        };
        if let Some(why) = refusal {
            self.refuse(&why);
            return Err(why.into());
        }
        let proof = token.proof(LEADER, nonces);
        self.send(&FromLeader::Welcome { proof })
            .map_err(stranger)?;
        self.bytes_max = BYTES_MAX;
        Ok(Introduction {
            role,
            sessions,
            kinds,
        })
    }

    /// Tells the other why it is none of those that search; whether it hears that does not matter.
    pub fn refuse(&mut self, why: &Refusal) {
        let why = why.to_string();
        let _ = self.send(&FromLeader::Refused { why });
    }

    /// Shows the leader that this is a load with the token, and lets it show the same.
    pub fn join(&mut self, token: &Token, own: &Introduction, stop: &Stop) -> Result<(), Error> {
        let until_ns = monotonic_ns() + ADMISSION_NS;
        let (version, theirs) = match self.receive(until_ns, Some(stop)).map_err(stranger)? {
            FromLeader::Challenge { version, nonce } => (version, nonce),
            FromLeader::Refused { why } => return Err(Refusal::Told(plain(&why)).into()),
            _ => return Err(stranger(LinkError::Malformed)),
        };
        if version != VERSION {
            let ours = VERSION.to_owned();
            let theirs = plain(&version);
            return Err(Refusal::Version { theirs, ours }.into());
        }
        let ours = nonce()?;
        let nonces = [theirs.as_str(), ours.as_str()];
        self.send(&FromFollower::Join {
            version: VERSION.to_owned(),
            role: own.role.clone(),
            sessions: own.sessions,
            kinds: own.kinds.clone(),
            nonce: ours.clone(),
            proof: token.proof(FOLLOWER, nonces),
        })
        .map_err(stranger)?;
        match self.receive(until_ns, Some(stop)).map_err(stranger)? {
            FromLeader::Welcome { proof } if token.is_proven(LEADER, nonces, &proof) => {
                self.bytes_max = BYTES_MAX;
                Ok(())
            }
            FromLeader::Welcome { .. } => Err(Refusal::Token.into()),
            FromLeader::Refused { why } => Err(Refusal::Told(plain(&why)).into()),
            _ => Err(stranger(LinkError::Malformed)),
        }
    }
}

fn stranger(error: LinkError) -> Error {
    match error {
        LinkError::Stopped => Error::Stopped,
        other => Refusal::Stranger(other.to_string()).into(),
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// A connection that the other end has closed says so in several ways.
fn lost(error: io::Error) -> LinkError {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => LinkError::Closed,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => LinkError::TimedOut,
        _ => LinkError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    fn token(text: &str) -> Token {
        Token::new(text.repeat(16)).unwrap()
    }

    fn introduction() -> Introduction {
        Introduction {
            role: Some("load-2".to_owned()),
            sessions: 7,
            kinds: vec!["get".to_owned()],
        }
    }

    /// What a leader and a follower with these tokens say of each other.
    fn met(leads: Token, follows: Token) -> (Result<Introduction, Error>, Result<(), Error>) {
        let (one, other) = pair();
        let stop = Stop::new().unwrap();
        let told = stop.clone();
        let follower = thread::spawn(move || {
            Link::new(other)
                .unwrap()
                .join(&follows, &introduction(), &told)
        });
        let admitted = Link::new(one).unwrap().admit(&leads, &stop);
        (admitted, follower.join().unwrap())
    }

    #[test]
    fn loads_with_one_token_meet() {
        let (admitted, joined) = met(token("a"), token("a"));
        assert_eq!(admitted.unwrap(), introduction());
        joined.unwrap();
    }

    #[test]
    fn another_token_is_refused_on_both_sides() {
        let (admitted, joined) = met(token("a"), token("b"));
        for error in [admitted.unwrap_err(), joined.unwrap_err()] {
            let said = error.to_string();
            assert!(said.contains("another token"), "{said}");
            assert!(!said.contains("aaaa") && !said.contains("bbbb"), "{said}");
        }
    }

    #[test]
    fn a_stranger_is_refused_whatever_it_sends() {
        for sent in [
            "GET / HTTP/1.1\r\n\r\n",
            "{\"Connected\":null}\n",
            "\"Connected\"\n",
            "{}\n",
            "\u{0}\u{1}\n",
            "",
        ] {
            let (one, mut other) = pair();
            let stop = Stop::new().unwrap();
            other.write_all(sent.as_bytes()).unwrap();
            other.shutdown(std::net::Shutdown::Write).unwrap();
            let error = Link::new(one).unwrap().admit(&token("a"), &stop);
            let said = error.unwrap_err().to_string();
            assert!(said.contains("no load that searches"), "{sent:?}: {said}");
        }
    }

    #[test]
    fn a_stranger_fills_no_memory_and_is_not_awaited_for_ever() {
        let (one, other) = pair();
        let stop = Stop::new().unwrap();
        let flood = thread::spawn(move || {
            let mut other = other;
            while other.write_all(&[b'x'; 4096]).is_ok() {}
        });
        let error = Link::new(one).unwrap().admit(&token("a"), &stop);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("more than 65536 bytes")
        );
        flood.join().unwrap();
        let (one, _silent) = pair();
        let error = Link::new(one).unwrap().admit_until(&token("a"), 0, &stop);
        assert!(error.unwrap_err().to_string().contains("nothing in time"));
    }

    #[test]
    fn a_byte_now_and_then_keeps_nobody_waiting() {
        let (one, mut other) = pair();
        let drips = thread::spawn(move || {
            while other.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let stop = Stop::new().unwrap();
        let mut link = Link::new(one).unwrap();
        let until_ns = monotonic_ns() + 100_000_000;
        let found = link.receive::<FromFollower>(until_ns, Some(&stop));
        assert!(matches!(found, Err(LinkError::TimedOut)), "{found:?}");
        stop.now();
        let found = link.receive::<FromFollower>(u64::MAX, Some(&stop));
        assert!(matches!(found, Err(LinkError::Stopped)), "{found:?}");
        drop(link);
        drips.join().unwrap();
    }

    #[test]
    fn a_wait_ends_when_the_run_is_stopped() {
        let (one, _silent) = pair();
        let stop = Stop::new().unwrap();
        stop.now();
        let error = Link::new(one).unwrap().admit(&token("a"), &stop);
        assert!(matches!(error, Err(Error::Stopped)));
    }
}
