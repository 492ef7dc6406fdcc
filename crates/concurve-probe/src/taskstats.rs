//! The kernel's account of every task at its exit, over generic netlink (`TASKSTATS`).
//!
//! Needs CAP_NET_ADMIN in the first namespaces. The figures of a task's CPU time are as of
//! its last tick or switch; switches, slices and run-queue wait are final.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use concurve_wire::spec::Policy;

use crate::{ProbeError, Result, cpu_list, task};

/// One task's account at its exit, or a living process's so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitAccount {
    pub tid: u32,
    pub pid: u32,
    /// Process that would have waited for it; the subreaper for an orphan.
    pub parent: u32,
    pub name: String,
    pub nice: i32,
    pub policy: Option<Policy>,
    /// The last task of its process.
    pub last: bool,
    pub cpu_ns: u64,
    pub run_queue_ns: u64,
    pub slices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Life of the task.
    pub elapsed_ns: u64,
    /// Greatest resident memory of its process so far; none if it had no memory any more.
    pub rss_bytes_max: Option<u64>,
}

/// What one read of the socket gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Accounts(Vec<ExitAccount>),
    /// Nothing waits.
    Nothing,
    /// The kernel threw accounts away because they were not read in time.
    Lost,
}

/// A listener on the exits of all CPUs.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    family: u16,
    buffer: Vec<u8>,
}

const BUFFER_BYTES: i32 = 32 << 20;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_TGID: u16 = 2;
const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const GENERIC_HEADER_BYTES: usize = 4;

impl Listener {
    /// Registers for the exits on these CPUs.
    pub fn open(cpus: &[u32]) -> Result<Self> {
        let socket = open_socket()?;
        let mut listener = Self {
            socket,
            family: GENL_ID_CTRL,
            buffer: vec![0; 1 << 16],
        };
        listener.family = listener.find_family()?;
        let mut mask = cpu_list::format(cpus).into_bytes();
        mask.push(0);
        listener.request(
            TASKSTATS_CMD_GET,
            TASKSTATS_CMD_ATTR_REGISTER_CPUMASK,
            &mask,
        )?;
        listener.check_version()?;
        Ok(listener)
    }

    /// Takes what waits, without blocking.
    pub fn receive(&mut self) -> Result<Received> {
        match self.receive_bytes(libc::MSG_DONTWAIT) {
            Ok(length) => Ok(Received::Accounts(parse_messages(&self.buffer[..length]))),
            Err(error) => match error.errno() {
                Some(libc::EAGAIN) => Ok(Received::Nothing),
                Some(libc::ENOBUFS) => Ok(Received::Lost),
                _ => Err(error),
            },
        }
    }

    fn check_version(&self) -> Result<()> {
        // A socket of its own: an answer must not stand between the exits.
        let mut query = Query::open(self.family)?;
        query.process(std::process::id()).map(drop)
    }

    fn find_family(&mut self) -> Result<u16> {
        self.send(
            CTRL_CMD_GETFAMILY,
            CTRL_ATTR_FAMILY_NAME,
            b"TASKSTATS\0",
            false,
        )?;
        let length = self.receive_bytes(0)?;
        let message = &self.buffer[..length];
        check_error(message, "find the netlink family TASKSTATS").map_err(|_| {
            ProbeError::Unavailable("taskstats: the kernel lacks CONFIG_TASKSTATS".into())
        })?;
        attributes(&message[(HEADER_BYTES + GENERIC_HEADER_BYTES).min(length)..])
            .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
            .and_then(|(_, value)| Some(u16::from_ne_bytes(value.get(..2)?.try_into().ok()?)))
            .ok_or_else(|| ProbeError::syntax("netlink family TASKSTATS", ""))
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&mut self, command: u8, attribute: u16, value: &[u8]) -> Result<()> {
        self.send(command, attribute, value, true)?;
        // Exits may arrive before the acknowledgement; those are other people's still.
        loop {
            let length = self.receive_bytes(0)?;
            let message = &self.buffer[..length];
            if message_kind(message) == Some(NLMSG_ERROR) {
                return check_error(message, "register with taskstats").map_err(refusal);
            }
        }
    }

    fn send(&self, command: u8, attribute: u16, value: &[u8], acknowledge: bool) -> Result<()> {
        send(
            &self.socket,
            self.family,
            command,
            attribute,
            value,
            acknowledge,
        )
    }

    fn receive_bytes(&mut self, flags: libc::c_int) -> Result<usize> {
        receive(&self.socket, &mut self.buffer, flags)
    }
}

/// Asks for the account of a living process: its living and its dead threads together.
#[derive(Debug)]
pub struct Query {
    socket: OwnedFd,
    family: u16,
    buffer: Vec<u8>,
}

impl Query {
    fn open(family: u16) -> Result<Self> {
        Ok(Self {
            socket: open_socket()?,
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
        let request = pid.to_ne_bytes();
        send(
            &self.socket,
            self.family,
            TASKSTATS_CMD_GET,
            TASKSTATS_CMD_ATTR_TGID,
            &request,
            false,
        )?;
        let length = receive(&self.socket, &mut self.buffer, 0)?;
        let message = &self.buffer[..length];
        check_error(message, "ask taskstats for a process").map_err(refusal)?;
        let body = &message[(HEADER_BYTES + GENERIC_HEADER_BYTES).min(length)..];
        let stats = nested_stats(body, TYPE_AGGR_TGID)
            .ok_or_else(|| ProbeError::syntax("taskstats answer", ""))?;
        match u16_at(stats, offset::VERSION) {
            Some(15) => Err(ProbeError::Unavailable(
                "taskstats: version 15 (Linux 6.14) has another layout; use a newer kernel".into(),
            )),
            Some(version) if version < 12 => Err(ProbeError::Unavailable(format!(
                "taskstats: version {version} does not name a task's process; needs Linux 5.19"
            ))),
            _ => parse_stats(stats).ok_or_else(|| ProbeError::syntax("taskstats answer", "")),
        }
    }
}

/// Where the fields of `struct taskstats` stand; new versions only append.
mod offset {
    pub const VERSION: usize = 0;
    pub const FLAG: usize = 8;
    pub const NICE: usize = 9;
    pub const CPU_COUNT: usize = 16;
    pub const CPU_DELAY_TOTAL: usize = 24;
    pub const CPU_RUN_VIRTUAL_TOTAL: usize = 72;
    pub const COMM: usize = 80;
    pub const SCHED: usize = 112;
    pub const PID: usize = 128;
    pub const PPID: usize = 132;
    pub const ETIME: usize = 144;
    pub const HIWATER_RSS: usize = 200;
    pub const NVCSW: usize = 272;
    pub const NIVCSW: usize = 280;
    pub const TGID: usize = 368;
}

/// `ac_flag` of a process's last task.
const AGROUP: u8 = 0x20;

fn parse_stats(stats: &[u8]) -> Option<ExitAccount> {
    let comm = stats.get(offset::COMM..offset::COMM + 32)?;
    let name_length = comm.iter().position(|byte| *byte == 0).unwrap_or(32);
    let rss_kb = u64_at(stats, offset::HIWATER_RSS)?;
    Some(ExitAccount {
        tid: u32_at(stats, offset::PID)?,
        pid: u32_at(stats, offset::TGID)?,
        parent: u32_at(stats, offset::PPID)?,
        name: String::from_utf8_lossy(&comm[..name_length]).into_owned(),
        nice: i32::from(*stats.get(offset::NICE)? as i8),
        // The static priority is not part of the account.
        policy: task::policy(u32::from(*stats.get(offset::SCHED)?), 0),
        last: stats.get(offset::FLAG)? & AGROUP != 0,
        cpu_ns: u64_at(stats, offset::CPU_RUN_VIRTUAL_TOTAL)?,
        run_queue_ns: u64_at(stats, offset::CPU_DELAY_TOTAL)?,
        slices: u64_at(stats, offset::CPU_COUNT)?,
        voluntary_switches: u64_at(stats, offset::NVCSW)?,
        involuntary_switches: u64_at(stats, offset::NIVCSW)?,
        elapsed_ns: u64_at(stats, offset::ETIME)? * 1000,
        rss_bytes_max: (rss_kb > 0).then_some(rss_kb * 1024),
    })
}

/// All exits in what one read gave. Messages of other kinds are passed over.
pub fn parse_messages(mut bytes: &[u8]) -> Vec<ExitAccount> {
    let mut accounts = Vec::new();
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        if length < HEADER_BYTES + GENERIC_HEADER_BYTES || length > bytes.len() {
            break;
        }
        let body = &bytes[HEADER_BYTES + GENERIC_HEADER_BYTES..length];
        if message_kind(bytes) != Some(NLMSG_ERROR) {
            accounts.extend(nested_stats(body, TYPE_AGGR_PID).and_then(parse_stats));
        }
        bytes = &bytes[aligned(length).min(bytes.len())..];
    }
    accounts
}

fn nested_stats(body: &[u8], aggregate: u16) -> Option<&[u8]> {
    let (_, nested) = attributes(body).find(|(kind, _)| *kind == aggregate)?;
    let (_, stats) = attributes(nested).find(|(kind, _)| *kind == TYPE_STATS)?;
    Some(stats)
}

/// The type–length–value attributes of a netlink message.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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

fn message_kind(message: &[u8]) -> Option<u16> {
    u16_at(message, 4)
}

fn check_error(message: &[u8], what: &str) -> Result<()> {
    if message_kind(message) != Some(NLMSG_ERROR) {
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

fn open_socket() -> Result<OwnedFd> {
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
        Ok(socket)
    }
}

fn send(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    attribute: u16,
    value: &[u8],
    acknowledge: bool,
) -> Result<()> {
    let attribute_length = 4 + value.len();
    let length = HEADER_BYTES + GENERIC_HEADER_BYTES + aligned(attribute_length);
    let flags = libc::NLM_F_REQUEST | if acknowledge { libc::NLM_F_ACK } else { 0 };
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend((attribute_length as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(length, 0);
    // SAFETY: pointer and length describe `message`, which is only read.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), length, 0) };
    if sent < 0 {
        return Err(ProbeError::last("send a netlink request"));
    }
    Ok(())
}

fn receive(socket: &OwnedFd, buffer: &mut [u8], flags: libc::c_int) -> Result<usize> {
    // SAFETY: pointer and length describe `buffer`.
    let length = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            flags,
        )
    };
    if length < 0 {
        return Err(ProbeError::last("receive from netlink"));
    }
    Ok(length as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
