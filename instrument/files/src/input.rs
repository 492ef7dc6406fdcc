//! Files that a user names for a program to read. Some have no end, or no beginning: a device is refused, a
//! pipe or a terminal has some time to say something, and what is read at once has a greatest length.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::major;

/// How long a pipe or a terminal may say nothing.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The numbers of terminals among the kinds of devices (devices.txt of the kernel).
const TERMINALS: [std::ops::RangeInclusive<u64>; 2] = [4..=5, 136..=143];

/// A file, a pipe or a terminal, open for reading.
#[derive(Debug)]
pub struct Input {
    file: File,
    /// For a pipe or a terminal.
    patience: Option<Duration>,
}

/// Opens a file that a user has named: also a pipe, as `/dev/stdin` and the shell's `<(…)` are.
///
/// # Errors
/// If it cannot be opened, or is a folder, a device or a socket.
pub fn open_named(path: &Path) -> io::Result<Input> {
    open_with_patience(path, PATIENCE)
}

fn open_with_patience(path: &Path, patience: Duration) -> io::Result<Input> {
    let status = std::fs::metadata(path)?;
    let kind = status.file_type();
    let may_be_terminal = || {
        TERMINALS
            .iter()
            .any(|it| it.contains(&major(status.rdev())))
    };
    let what = if kind.is_dir() {
        "a folder"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || (kind.is_char_device() && !may_be_terminal()) {
        "a device"
    } else {
        ""
    };
    if !what.is_empty() {
        let text = format!("it is {what}: name a file or a pipe");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // Without waiting for the other end of a pipe, and without taking the terminal for one's own.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags.bits()).open(path)?;
    let waits = file.metadata()?.file_type().is_fifo() || file.is_terminal();
    Ok(Input {
        file,
        patience: waits.then_some(patience),
    })
}

/// What a file that a user has named contains.
///
/// # Errors
/// As [`open_named`]; if it has more than so many bytes, or a pipe has not said all in time.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let input = open_named(path)?;
    input.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        let text = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

/// The same as text.
///
/// # Errors
/// As [`read_named`], or if it is not UTF-8.
pub fn read_named_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_named(path, bytes_max)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(patience) = self.patience else {
            return self.file.read(buffer);
        };
        let end = Instant::now() + patience;
        loop {
            if !is_readable(&self.file, end)? {
                let text = format!("nothing came from it for {} s", patience.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Waits until something can be read, or the other end is closed; false if it is too late.
fn is_readable(file: &File, end: Instant) -> io::Result<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut descriptors = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, timeout) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_greatest_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (length, fits) in [(0, true), (9, true), (10, true), (11, false)] {
            std::fs::write(&path, vec![b'x'; length]).unwrap();
            let read = read_named_text(&path, 10);
            assert_eq!(read.is_ok(), fits, "{length}: {read:?}");
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read_named_text(&path, 10).is_err());
    }

    #[test]
    fn folders_devices_and_sockets_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, what) in [
            (folder.path(), "a folder"),
            (Path::new("/dev/zero"), "a device"),
            (Path::new("/dev/null"), "a device"),
            (Path::new("/dev/urandom"), "a device"),
            (&socket, "a socket"),
        ] {
            let error = read_named(path, 10).unwrap_err().to_string();
            assert!(error.contains(what), "{}: {error}", path.display());
        }
        assert!(read_named(Path::new("/there/is/none"), 10).is_err());
    }

    #[test]
    fn a_pipe_is_read_to_its_end_also_if_its_writer_has_gone() {
        let (reads, mut writes) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", reads.as_raw_fd());
        writes.write_all(b"secret").unwrap();
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            writes.write_all(b" word").unwrap();
        });
        assert_eq!(read_named(Path::new(&path), 100).unwrap(), b"secret word");
        later.join().unwrap();
        // Nobody holds the other end any more, and nothing is left.
        assert_eq!(read_named(Path::new(&path), 100).unwrap(), b"");
    }

    #[test]
    fn a_pipe_without_end_is_too_long() {
        let (reads, mut writes) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", reads.as_raw_fd());
        let endless = std::thread::spawn(move || while writes.write_all(&[0; 4096]).is_ok() {});
        let error = read_named(Path::new(&path), 10_000).unwrap_err();
        assert!(
            error.to_string().contains("more than 10000 bytes"),
            "{error}"
        );
        drop(reads);
        endless.join().unwrap();
    }

    #[test]
    fn a_pipe_that_says_nothing_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let patience = Duration::from_millis(20);
        for is_held in [false, true] {
            let mut input = open_with_patience(&path, patience).unwrap();
            let writer = is_held.then(|| OpenOptions::new().write(true).open(&path).unwrap());
            let error = input.read(&mut [0; 10]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{is_held}");
            drop(writer);
        }
    }
}
