//! The kernel's account of every task at its exit, over generic netlink (`TASKSTATS`).
//!
//! Needs CAP_NET_ADMIN in the first namespaces. The figures of a task's CPU time are as of
//! its last tick or switch; switches, slices and run-queue wait are final.

mod account;
mod netlink;

pub use account::ExitAccount;

use crate::{ProbeError, Result, cpu_list};
use netlink::{GENL_ID_CTRL, Request, Socket, check_error};

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_TGID: u16 = 2;
const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;

/// What one read of the socket gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Accounts(Vec<ExitAccount>),
    /// There was nothing to read.
    Nothing,
    /// The kernel dropped accounts because they were not read in time.
    Lost,
}

/// A listener on the exits of all CPUs.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    family: u16,
    buffer: Vec<u8>,
}

impl Listener {
    /// Registers for the exits on these CPUs.
    pub fn open(cpus: &[u32]) -> Result<Self> {
        let socket = Socket::open()?;
        let mut buffer = vec![0; 1 << 16];
        let family = find_family(&socket, &mut buffer)?;
        let mut listener = Self {
            socket,
            family,
            buffer,
        };
        listener.register(cpus)?;
        listener.check_version()?;
        Ok(listener)
    }

    /// Reads what is there, without blocking.
    pub fn receive(&mut self) -> Result<Received> {
        match self.socket.receive(&mut self.buffer, libc::MSG_DONTWAIT) {
            Ok(bytes) => Ok(Received::Accounts(ExitAccount::all_of(bytes))),
            Err(error) => match error.errno() {
                Some(libc::EAGAIN) => Ok(Received::Nothing),
                Some(libc::ENOBUFS) => Ok(Received::Lost),
                _ => Err(error),
            },
        }
    }

    fn check_version(&self) -> Result<()> {
        // A separate socket, so that answers do not mix with exits.
        let mut query = Query::open(self.family)?;
        query.process(std::process::id()).map(drop)
    }

    /// Registers for the exits, and waits for the acknowledgement.
    fn register(&mut self, cpus: &[u32]) -> Result<()> {
        let mut mask = cpu_list::format(cpus).into_bytes();
        mask.push(0);
        self.socket.send(&Request {
            family: self.family,
            command: TASKSTATS_CMD_GET,
            attribute: TASKSTATS_CMD_ATTR_REGISTER_CPUMASK,
            value: &mask,
            acknowledge: true,
        })?;
        // Exits may arrive before the acknowledgement; they belong to processes outside the trial.
        loop {
            let message = self.socket.receive(&mut self.buffer, 0)?;
            if netlink::is_acknowledgement(message) {
                return check_error(message, "register with taskstats").map_err(refusal);
            }
        }
    }
}

/// The family number that the kernel has assigned to taskstats.
fn find_family(socket: &Socket, buffer: &mut [u8]) -> Result<u16> {
    socket.send(&Request {
        family: GENL_ID_CTRL,
        command: CTRL_CMD_GETFAMILY,
        attribute: CTRL_ATTR_FAMILY_NAME,
        value: b"TASKSTATS\0",
        acknowledge: false,
    })?;
    let message = socket.receive(buffer, 0)?;
    check_error(message, "find the netlink family TASKSTATS").map_err(|_| {
        ProbeError::Unavailable("taskstats: the kernel lacks CONFIG_TASKSTATS".into())
    })?;
    netlink::attributes(netlink::body(message))
        .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
        .and_then(|(_, value)| netlink::u16_at(value, 0))
        .ok_or_else(|| ProbeError::syntax("netlink family TASKSTATS", ""))
}

/// Asks for the account of a living process: its living and its dead threads together.
#[derive(Debug)]
pub struct Query {
    socket: Socket,
    family: u16,
    buffer: Vec<u8>,
}

impl Query {
    fn open(family: u16) -> Result<Self> {
        Ok(Self {
            socket: Socket::open()?,
            family,
            buffer: vec![0; 4096],
        })
    }

    /// For the host of this listener.
    pub fn beside(listener: &Listener) -> Result<Self> {
        Self::open(listener.family)
    }

    /// Sums over the threads of a process. Only the times, slices and switches are filled.
    pub fn process(&mut self, pid: u32) -> Result<ExitAccount> {
        self.socket.send(&Request {
            family: self.family,
            command: TASKSTATS_CMD_GET,
            attribute: TASKSTATS_CMD_ATTR_TGID,
            value: &pid.to_ne_bytes(),
            acknowledge: false,
        })?;
        let message = self.socket.receive(&mut self.buffer, 0)?;
        check_error(message, "ask taskstats for a process").map_err(refusal)?;
        ExitAccount::of_process(netlink::body(message))
    }
}

fn refusal(error: ProbeError) -> ProbeError {
    match error.errno() {
        Some(libc::EPERM | libc::EACCES) => {
            ProbeError::Unavailable("taskstats refused: needs CAP_NET_ADMIN".into())
        }
        Some(libc::EINVAL) => ProbeError::Unavailable(
            "taskstats refused: only in the first user and pid namespaces, not in a container"
                .into(),
        ),
        _ => error,
    }
}
