//! Readiness that is seen from outside: a TCP port that accepts, a line of output, a command that exits
//! with 0.

mod pattern;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use concurve_probe::process::Exit;
use concurve_probe::{open_files, signals};
use concurve_wire::spec::{ReadyProbe, RoleSpec};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, getsockopt, socket, sockopt,
};

pub use pattern::Pattern;

/// Time between two attempts to connect.
const CONNECT_INTERVAL_NS: u64 = 10_000_000;
/// Time between the end of a command and its next start.
const COMMAND_INTERVAL_NS: u64 = 50_000_000;
/// Longest line that is looked at; of a longer one its begin.
const LINE_BYTES_MAX: usize = 1 << 16;
/// How long a port may take to answer before its role is started.
const TAKEN_TIMEOUT: Duration = Duration::from_millis(200);

/// Watches for the readiness of one role, until it is there.
#[derive(Debug)]
pub struct Prober {
    kind: Kind,
    /// When the next attempt is due; none: an event is waited for.
    due_ns: Option<u64>,
    /// What the last attempt met.
    last: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Tcp {
        text: String,
        addresses: VecDeque<SocketAddr>,
        under_way: Option<OwnedFd>,
    },
    Line {
        text: String,
        pattern: Pattern,
        streams: [Lines; 2],
    },
    Command {
        argv: Vec<String>,
        running: Option<u32>,
    },
}

impl Prober {
    /// Begins to watch. The error says why that is impossible, before the role is started.
    pub fn new(probe: &ReadyProbe) -> Result<Self, String> {
        let (kind, due_ns) = match probe {
            ReadyProbe::Tcp(text) => {
                let addresses = resolve(text)?;
                refuse_taken(text, &addresses)?;
                let kind = Kind::Tcp {
                    text: text.clone(),
                    addresses: addresses.into(),
                    under_way: None,
                };
                (kind, Some(0))
            }
            ReadyProbe::Line(text) => {
                let kind = Kind::Line {
                    text: text.clone(),
                    pattern: Pattern::new(text)?,
                    streams: Default::default(),
                };
                (kind, None)
            }
            ReadyProbe::Command(argv) => {
                let kind = Kind::Command {
                    argv: argv.clone(),
                    running: None,
                };
                (kind, Some(0))
            }
        };
        Ok(Self {
            kind,
            due_ns,
            last: None,
        })
    }

    /// When the next attempt is due, if one is.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Makes an attempt; returns whether the role is ready.
    pub fn attempt(&mut self, role: &RoleSpec, now: u64) -> bool {
        match &mut self.kind {
            Kind::Tcp {
                addresses,
                under_way,
                ..
            } => {
                self.due_ns = Some(now + CONNECT_INTERVAL_NS);
                match try_connect(addresses, under_way) {
                    Ok(connected) => connected,
                    Err(errno) => {
                        self.last = Some(errno.desc().to_lowercase());
                        false
                    }
                }
            }
            Kind::Line { .. } => false,
            Kind::Command { argv, running } => {
                self.due_ns = None;
                match start(argv, role) {
                    Ok(pid) => *running = Some(pid),
                    Err(error) => {
                        self.last = Some(format!("it cannot be started: {error}"));
                        self.due_ns = Some(now + COMMAND_INTERVAL_NS);
                    }
                }
                false
            }
        }
    }

    /// The process of the command, while it runs.
    pub fn command_pid(&self) -> Option<u32> {
        match self.kind {
            Kind::Command { running, .. } => running,
            _ => None,
        }
    }

    /// Takes the exit of the command; returns whether the role is ready.
    pub fn exited(&mut self, exit: Exit, now: u64) -> bool {
        if let Kind::Command { running, .. } = &mut self.kind {
            *running = None;
        }
        self.due_ns = Some(now + COMMAND_INTERVAL_NS);
        self.last = Some(match exit {
            Exit::Code(code) => format!("it exited with {code}"),
            Exit::Signal(signal) => format!("it was killed by signal {signal}"),
        });
        exit == Exit::Code(0)
    }

    /// Takes a part of the role's standard output (`stream` 0) or standard error (1); returns whether
    /// the role is ready.
    pub fn read(&mut self, stream: usize, chunk: &[u8]) -> bool {
        match &mut self.kind {
            Kind::Line {
                pattern, streams, ..
            } => streams[stream].any(chunk, |line| pattern.is_in(line)),
            _ => false,
        }
    }

    /// Is a TCP port awaited?
    pub fn is_of_port(&self) -> bool {
        matches!(self.kind, Kind::Tcp { .. })
    }

    /// What the role has not done yet, and what the last attempt met.
    pub fn awaited(&self) -> String {
        let last = match &self.last {
            Some(last) => format!(" (the last attempt: {last})"),
            None => String::new(),
        };
        match &self.kind {
            Kind::Tcp { text, .. } => format!("accepted no TCP connection at {text}{last}"),
            Kind::Line { text, .. } => format!("wrote no line that matches {text:?}"),
            Kind::Command { argv, running } => {
                let running = match running {
                    Some(_) => ", which runs still",
                    None => "",
                };
                let command = argv.join(" ");
                format!("did not become ready by the command {command:?}{running}{last}")
            }
        }
    }
}

/// Where a readiness probe is wrong, if it is: checked before anything is started.
pub fn check(probe: &ReadyProbe) -> Result<(), String> {
    match probe {
        ReadyProbe::Tcp(text) => match text.rsplit_once(':') {
            Some((host, port))
                if !host.is_empty() && port.parse::<u16>().is_ok_and(|it| it > 0) =>
            {
                Ok(())
            }
            _ => Err(format!(
                "tcp: {text:?} is no address; give HOST:PORT, such as 127.0.0.1:6379"
            )),
        },
        ReadyProbe::Line(text) => Pattern::new(text)
            .map(|_| ())
            .map_err(|error| format!("line: {text:?} is no regular expression: {error}")),
        ReadyProbe::Command(argv) => {
            if argv.first().is_none_or(String::is_empty) {
                return Err("command: give a program".into());
            }
            if argv.iter().any(|argument| argument.contains('\0')) {
                return Err("command: an argument holds a NUL; leave it out".into());
            }
            Ok(())
        }
    }
}

fn resolve(text: &str) -> Result<Vec<SocketAddr>, String> {
    let addresses = text.to_socket_addrs().map(Vec::from_iter);
    match addresses {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("the host of {text} has no address; check its name")),
        Err(error) => Err(format!("the host of {text} has no address: {error}")),
    }
}

/// Refuses a port that accepts already: another program's answer is no readiness of this role.
fn refuse_taken(text: &str, addresses: &[SocketAddr]) -> Result<(), String> {
    let taken = |address| TcpStream::connect_timeout(address, TAKEN_TIMEOUT).is_ok();
    match addresses.iter().any(taken) {
        true => Err(format!(
            "{text} accepts connections before the role was started: another program serves there; \
             stop it, or give the role another port (a role that runs already can be attached)"
        )),
        false => Ok(()),
    }
}

/// Goes on connecting; tries the addresses in turn.
fn try_connect(
    addresses: &mut VecDeque<SocketAddr>,
    under_way: &mut Option<OwnedFd>,
) -> Result<bool, Errno> {
    if let Some(descriptor) = under_way {
        let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut polled, PollTimeout::ZERO)? == 0 {
            return Ok(false);
        }
        let error = getsockopt(descriptor, sockopt::SocketError)?;
        *under_way = None;
        return match error {
            0 => Ok(true),
            number => Err(Errno::from_raw(number)),
        };
    }
    addresses.rotate_left(1);
    let Some(address) = addresses.back().copied() else {
        return Ok(false);
    };
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let descriptor = socket(family, SockType::Stream, flags, None)?;
    match connect(descriptor.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => Ok(true),
        Err(Errno::EINPROGRESS) => {
            *under_way = Some(descriptor);
            Ok(false)
        }
        Err(errno) => Err(errno),
    }
}

/// Starts a command with the environment and in the folder of its role. The runner reaps it.
fn start(argv: &[String], role: &RoleSpec) -> std::io::Result<u32> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).envs(&role.env);
    if let Some(cwd) = &role.cwd {
        command.current_dir(cwd);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.process_group(0);
    open_files::limit_as_at_start(&mut command);
    signals::block_none(&mut command);
    command.spawn().map(|child| child.id())
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn any(&mut self, mut chunk: &[u8], matches: impl Fn(&str) -> bool) -> bool {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.append(&chunk[..end]);
            let line = std::mem::take(&mut self.partial);
            let text = String::from_utf8_lossy(&line);
            if matches(text.trim_end_matches('\r')) {
                return true;
            }
            chunk = &chunk[end + 1..];
        }
        self.append(chunk);
        false
    }

    fn append(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX - self.partial.len();
        self.partial.extend(&part[..part.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_come_in_any_pieces_and_from_either_stream() {
        let text = b"starting\r\nnow ready on 1\r\nmore";
        for size in 1..text.len() {
            let mut prober = Prober::new(&ReadyProbe::Line("ready on \\d+$".into())).unwrap();
            let found: Vec<bool> = text.chunks(size).map(|it| prober.read(1, it)).collect();
            assert!(found.contains(&true), "pieces of {size}");
        }
        let mut prober = Prober::new(&ReadyProbe::Line("^b".into())).unwrap();
        assert!(!prober.read(0, b"a") && !prober.read(1, b"b"));
        assert!(!prober.read(0, b"b\n"), "the line is ab");
        assert!(prober.read(1, b"\n"));
    }

    #[test]
    fn what_is_wrong_with_a_probe() {
        for (probe, expected) in [
            (ReadyProbe::Tcp("6379".into()), "HOST:PORT"),
            (ReadyProbe::Tcp(":6379".into()), "HOST:PORT"),
            (ReadyProbe::Tcp("a:0".into()), "HOST:PORT"),
            (ReadyProbe::Tcp("a:99999".into()), "HOST:PORT"),
            (ReadyProbe::Line("(".into()), "regular expression"),
            (ReadyProbe::Command(vec![]), "program"),
            (ReadyProbe::Command(vec!["a\0".into()]), "NUL"),
        ] {
            let error = check(&probe).unwrap_err();
            assert!(error.contains(expected), "{probe:?}: {error}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_refused_before_the_start() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let probe = ReadyProbe::Tcp(listener.local_addr().unwrap().to_string());
        assert!(Prober::new(&probe).unwrap_err().contains("another program"));
        drop(listener);
        assert!(Prober::new(&probe).is_ok());
    }
}
