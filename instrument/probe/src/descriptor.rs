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
}
