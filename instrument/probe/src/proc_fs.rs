//! Reads `/proc`, or a copy of it below another root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::descriptor::Watched;
use crate::proc_stat::CpuTicks;
use crate::psi::Pressure;
use crate::schedstat::Schedstat;
use crate::syscall::{Doing, Kind};
use crate::task::{Stat, Status};
use crate::{
    ProbeError, Result, cpu_list, descriptor, listening, proc_stat, psi, schedstat, syscall, task,
    unless_gone,
};

/// No process has so many ancestors.
const GENERATIONS_MAX: usize = 4096;
/// Who watches more descriptors than this waits for clients: nobody has so many ways to be woken.
const WAKE_UPS_MAX: usize = 8;

/// A `/proc` file system.
#[derive(Debug, Clone)]
pub struct ProcFs {
    root: PathBuf,
}

impl Default for ProcFs {
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl ProcFs {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// CPU ticks since boot: of all CPUs together, and of each that is online.
    pub fn cpu_ticks(&self) -> Result<(CpuTicks, BTreeMap<u32, CpuTicks>)> {
        let text = self.text("stat")?;
        Ok((proc_stat::parse(&text)?, proc_stat::parse_each(&text)?))
    }

    /// Stall totals of `cpu`, `io` or `memory`.
    pub fn pressure(&self, resource: &str) -> Result<Pressure> {
        psi::parse(&self.text(&format!("pressure/{resource}"))?)
    }

    /// Of a process; while it is a zombie too.
    pub fn stat(&self, pid: u32) -> Result<Stat> {
        task::parse_stat(&self.text(&format!("{pid}/stat"))?)
    }

    /// Of a process; while it is a zombie too.
    pub fn status(&self, pid: u32) -> Result<Status> {
        task::parse_status(&self.text(&format!("{pid}/status"))?)
    }

    /// Of one thread of a process.
    pub fn thread_stat(&self, pid: u32, tid: u32) -> Result<Stat> {
        task::parse_stat(&self.text(&format!("{pid}/task/{tid}/stat"))?)
    }

    /// Of one thread of a process.
    pub fn thread_status(&self, pid: u32, tid: u32) -> Result<Status> {
        task::parse_status(&self.text(&format!("{pid}/task/{tid}/status"))?)
    }

    /// Of one thread of a process.
    pub fn thread_schedstat(&self, pid: u32, tid: u32) -> Result<Schedstat> {
        schedstat::parse(&self.text(&format!("{pid}/task/{tid}/schedstat"))?)
    }

    /// The program's file of a process.
    pub fn open_program(&self, pid: u32) -> Result<File> {
        self.open(&format!("{pid}/exe"))
    }

    /// Where the program's file is, which changes with an exec.
    pub fn program_path(&self, pid: u32) -> Option<PathBuf> {
        fs::read_link(self.root.join(format!("{pid}/exe"))).ok()
    }

    /// The address at which the program's file is loaded.
    pub fn program_base(&self, pid: u32) -> Option<u64> {
        let path = self.program_path(pid)?;
        let maps = self.text(&format!("{pid}/maps")).ok()?;
        let line = maps
            .lines()
            .find(|line| line.ends_with(&*path.to_string_lossy()))?;
        u64::from_str_radix(line.split_once('-')?.0, 16).ok()
    }

    /// The memory of a process, where the host permits it to be read.
    pub fn open_memory(&self, pid: u32) -> Result<File> {
        self.open(&format!("{pid}/mem"))
    }

    /// What is mapped in a process.
    pub fn maps(&self, pid: u32) -> Result<String> {
        self.text(&format!("{pid}/maps"))
    }

    /// The root directory of a process, by which its paths are to be read.
    pub fn root_directory(&self, pid: u32) -> PathBuf {
        self.root.join(format!("{pid}/root"))
    }

    /// The control groups of a process, a line for each hierarchy; none if it has ended.
    pub fn control_groups(&self, pid: u32) -> Option<String> {
        self.text(&format!("{pid}/cgroup")).ok()
    }

    /// The nice value of the session of a process, where the scheduler shares the CPUs between
    /// sessions first (`sched_autogroup`): beside other sessions it is what counts.
    pub fn session_nice(&self, pid: u32) -> Option<i32> {
        // /autogroup-12 nice 19
        let text = self.text(&format!("{pid}/autogroup")).ok()?;
        text.split_whitespace().nth(2)?.parse().ok()
    }

    /// Does the scheduler share the CPUs between sessions first?
    pub fn has_autogroups(&self) -> bool {
        self.text("sys/kernel/sched_autogroup_enabled")
            .is_ok_and(|text| text.trim() == "1")
    }

    /// The function of the kernel in which one thread waits, if the kernel says it.
    pub fn wait_channel(&self, pid: u32, tid: u32) -> Option<String> {
        let name = self.text(&format!("{pid}/task/{tid}/wchan")).ok()?;
        (!matches!(name.as_str(), "" | "0")).then_some(name)
    }

    /// Migrations of one thread between CPUs.
    pub fn thread_migrations(&self, pid: u32, tid: u32) -> Result<u64> {
        let path = format!("{pid}/task/{tid}/sched");
        task::parse_sched_migrations(&self.text(&path)?)
            .ok_or_else(|| ProbeError::Unavailable(format!("/proc/{path} lacks se.nr_migrations")))
    }

    /// Numbers of a process's threads.
    pub fn threads(&self, pid: u32) -> Result<Vec<u32>> {
        let path = self.root.join(format!("{pid}/task"));
        let entries = fs::read_dir(&path)
            .map_err(|error| ProbeError::system(format!("read {}", path.display()), error))?;
        Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect())
    }

    /// Children of one thread (`CONFIG_PROC_CHILDREN`).
    pub fn children_of_thread(&self, pid: u32, tid: u32) -> Result<Vec<u32>> {
        let text = self.text(&format!("{pid}/task/{tid}/children"))?;
        Ok(text
            .split_ascii_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect())
    }

    /// Children of a process, all its threads' together.
    pub fn children(&self, pid: u32) -> Result<Vec<u32>> {
        let mut children = Vec::new();
        for tid in self.threads(pid)? {
            match self.children_of_thread(pid, tid) {
                Ok(found) => children.extend(found),
                // No such file although the thread lives: a kernel without CONFIG_PROC_CHILDREN.
                Err(_) if self.stat(pid).is_ok() && !self.has_children_file() => {
                    return self.children_by_scan(pid);
                }
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(children)
    }

    /// Numbers of all processes that are visible, the greatest first: mostly the newest, and the
    /// kernel's threads last.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let mut found = self.numbers()?;
        found.sort_unstable_by_key(|pid| std::cmp::Reverse(*pid));
        Ok(found)
    }

    /// All processes below `pid`, itself not included, as far as they can be listed.
    pub fn descendants(&self, pid: u32) -> Descendants {
        let mut all = Descendants::default();
        all.add(self.children(pid));
        let mut next = 0;
        while next < all.found.len() {
            all.add(self.children(all.found[next]));
            next += 1;
        }
        all
    }

    /// Whether a process is below another one now, by the parents that the kernel names.
    pub fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        let mut at = pid;
        // Numbers may be reused on the way up: it must end.
        for _ in 0..GENERATIONS_MAX {
            match self.stat(at) {
                Ok(stat) if stat.parent == ancestor => return true,
                Ok(stat) if stat.parent > 1 => at = stat.parent,
                _ => return false,
            }
        }
        false
    }

    /// A variable of the environment that a process was started with.
    pub fn environment_variable(&self, pid: u32, name: &str) -> Option<String> {
        let bytes = fs::read(self.root.join(format!("{pid}/environ"))).ok()?;
        bytes.split(|byte| *byte == 0).find_map(|entry| {
            let (key, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
            (key == name).then(|| value.to_owned())
        })
    }

    /// CPUs that are online, from `sys/devices/system/cpu/online` beside the root.
    pub fn cpus_online(&self) -> Result<Vec<u32>> {
        let path = self.root.with_file_name("sys/devices/system/cpu/online");
        let text = fs::read_to_string(&path)
            .map_err(|error| ProbeError::system(format!("read {}", path.display()), error))?;
        cpu_list::parse(&text)
    }

    /// Opens a thread's `schedstat` for repeated reading.
    pub fn open_schedstat(&self, pid: u32, tid: u32) -> Result<SchedstatFile> {
        self.open(&format!("{pid}/task/{tid}/schedstat"))
            .map(SchedstatFile)
    }

    /// Opens a thread's `syscall` for repeated reading. That needs the right to trace the thread.
    pub fn open_syscall(&self, pid: u32, tid: u32) -> Result<SyscallFile> {
        let path = format!("{pid}/task/{tid}/syscall");
        self.open(&path).map(|file| SyscallFile { file, path })
    }

    /// What a thread that reads or writes this descriptor of a process waits for.
    pub fn descriptor_kind(&self, pid: u32, number: u32) -> Option<Kind> {
        let path = self.root.join(format!("{pid}/fd/{number}"));
        let link = fs::read_link(&path).ok()?;
        descriptor::by_link(&link.to_string_lossy()).or_else(|| {
            let file = fs::metadata(&path).ok()?;
            Some(descriptor::by_mode(file.mode(), file.rdev()))
        })
    }

    /// What a thread waits for at this epoll instance of a process; none if that is not readable.
    pub fn epoll_kind(&self, pid: u32, number: u32) -> Option<Kind> {
        let information = self.root.join(format!("{pid}/fdinfo/{number}"));
        let information = fs::read_to_string(information).ok()?;
        let watched: Vec<_> = descriptor::watched(&information).collect();
        if watched.len() > WAKE_UPS_MAX {
            return Some(Kind::Poll);
        }
        Some(descriptor::of_epoll(watched.into_iter().map(|number| {
            let link = fs::read_link(self.root.join(format!("{pid}/fd/{number}"))).ok()?;
            let link = link.to_string_lossy().into_owned();
            let is_own_pipe = link.starts_with("pipe:") && self.writes_to(pid, &link);
            Some(Watched { link, is_own_pipe })
        })))
    }

    /// Whether a process has a descriptor with this link that is open for writing.
    fn writes_to(&self, pid: u32, link: &str) -> bool {
        let folder = fs::read_dir(self.root.join(format!("{pid}/fd")));
        folder.into_iter().flatten().flatten().any(|it| {
            // The permissions of the link are those of the descriptor.
            let is_written = || it.metadata().is_ok_and(|it| it.mode() & 0o200 != 0);
            fs::read_link(it.path()).is_ok_and(|found| found.to_string_lossy() == link)
                && is_written()
        })
    }

    /// The TCP addresses at which a process listens, as far as they are to be seen from here.
    pub fn listening(&self, pid: u32) -> Vec<SocketAddr> {
        let folder = fs::read_dir(self.root.join(format!("{pid}/fd")));
        let links = folder.into_iter().flatten().flatten().filter_map(|it| {
            let link = fs::read_link(it.path()).ok()?;
            listening::socket_of(&link.to_string_lossy())
        });
        let held: BTreeSet<u64> = links.collect();
        let tables = ["tcp", "tcp6"].map(|name| self.text(&format!("{pid}/net/{name}")));
        let listed = tables.iter().flatten().flat_map(|it| listening::parse(it));
        listed
            .filter(|(socket, _)| held.contains(socket))
            .map(|(_, address)| address)
            .collect()
    }

    /// Opens the file that says whether any task was created since it was last read.
    pub fn open_last_pid(&self) -> Result<LastPidFile> {
        self.open("loadavg").map(LastPidFile)
    }

    fn has_children_file(&self) -> bool {
        let own = std::process::id();
        self.root
            .join(format!("{own}/task/{own}/children"))
            .exists()
    }

    fn children_by_scan(&self, pid: u32) -> Result<Vec<u32>> {
        let mut children = Vec::new();
        for candidate in self.numbers()? {
            match self.stat(candidate) {
                Ok(stat) if stat.parent == pid => children.push(candidate),
                Ok(_) => {}
                // It has ended, or another user's processes are hidden here.
                Err(error) if error.is_gone() || error.is_refusal() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(children)
    }

    fn numbers(&self) -> Result<Vec<u32>> {
        let entries = fs::read_dir(&self.root)
            .map_err(|error| ProbeError::system("list processes", error))?;
        Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect())
    }

    fn open(&self, path: &str) -> Result<File> {
        let path = self.root.join(path);
        File::open(&path)
            .map_err(|error| ProbeError::system(format!("open {}", path.display()), error))
    }

    fn text(&self, path: &str) -> Result<String> {
        let path = self.root.join(path);
        let bytes = read_whole(&path)
            .map_err(|error| ProbeError::system(format!("read {}", path.display()), error))?;
        // Names of programs may hold any bytes.
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// The processes below one.
#[derive(Debug, Default)]
pub struct Descendants {
    pub found: Vec<u32>,
    /// Why there may be more of them.
    pub missing: Option<ProbeError>,
}

impl Descendants {
    /// All of them, if they are known.
    pub fn complete(self) -> Result<Vec<u32>> {
        match self.missing {
            None => Ok(self.found),
            Some(error) => Err(error),
        }
    }

    fn add(&mut self, children: Result<Vec<u32>>) {
        match unless_gone(children) {
            Ok(children) => self.found.extend(children.unwrap_or_default()),
            Err(error) => {
                self.missing.get_or_insert(error);
            }
        }
    }
}

/// Most files of `/proc` are shorter.
const CHUNK: usize = 4096;

/// Reads a file in as few calls as possible. The standard library asks for its length first, which is 0
/// for files of `/proc`, and then reads 32 bytes at a time: twice as many calls, in each trial for each
/// process of the machine.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    loop {
        let length = bytes.len();
        bytes.resize(length + CHUNK, 0);
        let read = match file.read(&mut bytes[length..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Ok(0) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            other => other?,
        };
        bytes.truncate(length + read);
    }
}

/// A thread's `schedstat`, kept open.
#[derive(Debug)]
pub struct SchedstatFile(pub(super) File);

impl SchedstatFile {
    /// The thread's account now; none once it is gone.
    pub fn read(&self) -> Option<Schedstat> {
        schedstat::parse(read_small(&self.0, &mut [0; 96]).ok()?).ok()
    }
}

/// A thread's `syscall`, kept open.
#[derive(Debug)]
pub struct SyscallFile {
    pub(super) file: File,
    pub(super) path: String,
}

impl SyscallFile {
    /// What the thread is doing now; the error of a thread that has ended is ESRCH.
    pub fn read(&self) -> Result<Doing> {
        let mut buffer = [0; 256];
        let text = read_small(&self.file, &mut buffer)
            .map_err(|error| ProbeError::system(format!("read /proc/{}", self.path), error))?;
        syscall::parse(text)
    }
}

/// `/proc/loadavg`, whose last field is the number of the task that was created last.
#[derive(Debug)]
pub struct LastPidFile(pub(super) File);

impl LastPidFile {
    /// Number of the task that was created last.
    pub fn read(&self) -> Option<u32> {
        let mut buffer = [0; 96];
        let text = read_small(&self.0, &mut buffer).ok()?;
        text.trim_end().rsplit(' ').next()?.parse().ok()
    }
}

fn read_small<'b>(file: &File, buffer: &'b mut [u8]) -> io::Result<&'b str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    //! This machine's `/proc`, and a made-up one.

    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn reads_itself() {
        let proc_fs = ProcFs::default();
        let own = std::process::id();
        assert_eq!(proc_fs.stat(own).unwrap().pid, own);
        assert!(proc_fs.status(own).unwrap().cpus_allowed.is_some());
        assert!(proc_fs.threads(own).unwrap().contains(&own));
        assert!(proc_fs.open_schedstat(own, own).unwrap().read().is_some());
        assert!(proc_fs.open_last_pid().unwrap().read().is_some());
        assert!(!proc_fs.cpus_online().unwrap().is_empty());
    }

    #[test]
    fn knows_who_descends_from_whom() {
        let (proc_fs, own) = (ProcFs::default(), std::process::id());
        let mut child = std::process::Command::new("sleep")
            .arg("1077")
            .spawn()
            .unwrap();
        let parent = proc_fs.stat(own).unwrap().parent;
        assert!(proc_fs.descends_from(child.id(), own));
        assert!(proc_fs.descends_from(child.id(), parent));
        assert!(!proc_fs.descends_from(own, child.id()));
        assert!(!proc_fs.descends_from(own, own));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!proc_fs.descends_from(child.id(), own));
    }

    #[test]
    fn a_listing_that_failed_is_not_an_empty_one() {
        let root = std::env::temp_dir().join(format!("concurve-listing-{}", std::process::id()));
        let proc_fs = ProcFs::new(&root);
        let own = format!("{0}/task/{0}", std::process::id());
        for (folder, children) in [(own.as_str(), ""), ("10/task/10", "11 12 ")] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("children"), children).unwrap();
        }
        // 11 has ended. The threads of 12 cannot be listed, whoever asks.
        fs::create_dir_all(root.join("12")).unwrap();
        fs::write(root.join("12/task"), "").unwrap();
        let all = proc_fs.descendants(10);
        assert_eq!(all.found, [11, 12]);
        assert!(all.complete().is_err());
        fs::remove_file(root.join("12/task")).unwrap();
        assert_eq!(proc_fs.descendants(10).complete().unwrap(), [11, 12]);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn tells_descriptors_apart() {
        let proc_fs = ProcFs::default();
        let kind = |file: &dyn AsRawFd| {
            let number = file.as_raw_fd() as u32;
            proc_fs.descriptor_kind(std::process::id(), number)
        };
        let (reader, _writer) = crate::pipe::open().unwrap();
        assert_eq!(kind(&reader), Some(Kind::Pipe));
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(kind(&socket), Some(Kind::Network));
        let executable = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(kind(&executable), Some(Kind::Disk));
        assert_eq!(kind(&File::open("/dev/null").unwrap()), Some(Kind::Other));
        assert_eq!(proc_fs.descriptor_kind(std::process::id(), 999_999), None);
        assert_eq!(proc_fs.epoll_kind(std::process::id(), 999_999), None);
    }

    #[test]
    fn an_epoll_instance_is_a_wake_up_until_it_watches_a_socket() {
        use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
        use nix::sys::eventfd::EventFd;
        use std::os::fd::AsRawFd;
        let event = EventFd::new().unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
        let kind = || {
            let number = epoll.0.as_raw_fd() as u32;
            ProcFs::default().epoll_kind(std::process::id(), number)
        };
        let input = || EpollEvent::new(EpollFlags::EPOLLIN, 0);
        epoll.add(&event, input()).unwrap();
        assert_eq!(kind(), Some(Kind::WakeUp));
        epoll.add(&socket, input()).unwrap();
        assert_eq!(kind(), Some(Kind::Poll));
    }

    #[test]
    fn a_missing_process_is_an_error_that_names_the_file() {
        let error = ProcFs::new("/nowhere").stat(1).unwrap_err();
        assert!(error.to_string().contains("/nowhere/1/stat"), "{error}");
    }
}
