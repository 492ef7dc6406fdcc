//! What a descriptor refers to: the kind of wait of a thread that reads or writes it.

use crate::syscall::Kind;

/// Major device numbers of terminals and pseudo-terminals.
const TERMINALS: [std::ops::RangeInclusive<u64>; 2] = [4..=5, 136..=143];

/// What the link `/proc/PID/fd/N` says; none for a path in a file system.
pub fn by_link(link: &str) -> Option<Kind> {
    match link.split_once(':') {
        Some(("socket", _)) => Some(Kind::Network),
        Some(("pipe", _) | ("anon_inode", "[eventfd]")) => Some(Kind::Pipe),
        Some(("anon_inode", "[timerfd]")) => Some(Kind::Sleep),
        _ if link.starts_with('/') => None,
        _ => Some(Kind::Other),
    }
}

/// What the mode and the device number of a file say.
pub fn by_mode(mode: u32, device: u64) -> Kind {
    match mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFBLK | libc::S_IFDIR => Kind::Disk,
        libc::S_IFIFO => Kind::Pipe,
        libc::S_IFSOCK => Kind::Network,
        libc::S_IFCHR => {
            let major = u64::from(libc::major(device));
            match TERMINALS.iter().any(|range| range.contains(&major)) {
                true => Kind::Pipe,
                false => Kind::Other,
            }
        }
        _ => Kind::Other,
    }
}

/// The descriptors that an epoll instance watches, by its `/proc/PID/fdinfo/N`.
pub fn watched(information: &str) -> impl Iterator<Item = u32> {
    let number = |line: &str| {
        let fields = line.strip_prefix("tfd:")?;
        fields.split_whitespace().next()?.parse().ok()
    };
    information.lines().filter_map(number)
}

/// What an epoll instance watches: the link of a descriptor, and the process holds the other end, if it is a pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub link: String,
    pub is_own_pipe: bool,
}

/// What a thread waits for at an epoll instance that watches these; none where one is not known. An eventfd, a
/// signalfd and a pipe to oneself are how threads and processes wake one another. A pipe from others may stand
/// beside: that of a parent whose end is to be noticed. By itself it may be an input, and a timer is no wake-up.
pub fn of_epoll(watched: impl IntoIterator<Item = Option<Watched>>) -> Kind {
    let mut wakes = false;
    for it in watched {
        let Some(Watched { link, is_own_pipe }) = it else {
            return Kind::Poll;
        };
        match link.as_str() {
            "anon_inode:[eventfd]" | "anon_inode:[signalfd]" => wakes = true,
            "anon_inode:[timerfd]" => {}
            link if link.starts_with("pipe:") => wakes |= is_own_pipe,
            _ => return Kind::Poll,
        }
    }
    match wakes {
        true => Kind::WakeUp,
        false => Kind::Poll,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_say_what_they_are() {
        assert_eq!(by_link("socket:[31337]"), Some(Kind::Network));
        assert_eq!(by_link("pipe:[31337]"), Some(Kind::Pipe));
        assert_eq!(by_link("anon_inode:[eventfd]"), Some(Kind::Pipe));
        assert_eq!(by_link("anon_inode:[timerfd]"), Some(Kind::Sleep));
        assert_eq!(by_link("anon_inode:inotify"), Some(Kind::Other));
        assert_eq!(by_link("/var/lib/pipe:[1]"), None);
    }

    #[test]
    fn files_say_it_by_their_mode() {
        assert_eq!(by_mode(libc::S_IFREG | 0o600, 0), Kind::Disk);
        assert_eq!(by_mode(libc::S_IFBLK | 0o600, 0), Kind::Disk);
        assert_eq!(by_mode(libc::S_IFIFO | 0o600, 0), Kind::Pipe);
        let device = |major| libc::makedev(major, 3);
        assert_eq!(by_mode(libc::S_IFCHR, device(136)), Kind::Pipe);
        assert_eq!(by_mode(libc::S_IFCHR, device(1)), Kind::Other);
    }

    #[test]
    fn an_epoll_instance_lists_what_it_watches() {
        let text = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t2065\ntfd:        6 events: \
            80000019 data:     55b191470568  pos:0 ino:811 sdev:f\ntfd:       12 events:       19 \
            data:                0  pos:0 ino:96 sdev:e\n";
        assert_eq!(watched(text).collect::<Vec<_>>(), [6, 12]);
        assert_eq!(watched("pos:\t0\ntfd: x\n").next(), None);
    }

    #[test]
    fn who_watches_no_socket_waits_to_be_woken() {
        let (signal, event) = ("anon_inode:[signalfd]", "anon_inode:[eventfd]");
        let (pipe, timer) = ("pipe:[3]", "anon_inode:[timerfd]");
        let watched = |link: &str, is_own_pipe| {
            Some(Watched {
                link: link.into(),
                is_own_pipe,
            })
        };
        let of = |links: &[&str]| of_epoll(links.iter().map(|it| watched(it, false)));
        // PostgreSQL at its latch, and for its client.
        assert_eq!(of(&[signal, pipe]), Kind::WakeUp);
        assert_eq!(of(&[signal, pipe, "socket:[7]"]), Kind::Poll);
        assert_eq!(of(&[event]), Kind::WakeUp);
        assert_eq!(of(&[event, timer]), Kind::WakeUp);
        assert_eq!(of(&[timer]), Kind::Poll);
        assert_eq!(of(&[pipe]), Kind::Poll, "it may be its input");
        assert_eq!(of(&[event, "/dev/fuse"]), Kind::Poll);
        assert_eq!(of(&[event, "anon_inode:[io_uring]"]), Kind::Poll);
        assert_eq!(of(&[]), Kind::Poll);
        assert_eq!(of_epoll([watched(event, false), None]), Kind::Poll);
        // PostgreSQL up to 13 wakes its sessions by a pipe that each has to itself.
        assert_eq!(
            of_epoll([watched(pipe, true), watched("pipe:[4]", false)]),
            Kind::WakeUp
        );
        assert_eq!(
            of_epoll([watched(pipe, true), watched("socket:[7]", false)]),
            Kind::Poll
        );
    }
}
