//! A folder of which one call fails, as that of a bad or a full disk does.
//!
//! `CONCURVE_FAILING_DISK` says which: `main 7 5` is the eighth call of the main thread, which opens and
//! closes the engine, and it fails with the error 5; `others 0 28` the first one of any other thread, in
//! whichever process. Calls before and after it succeed: what the server does must not depend on a second
//! failure.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use concurve_records::Fault;
use concurve_records::storage::{Disk, Folder, Storage};

const VARIABLE: &str = "CONCURVE_FAILING_DISK";

pub fn open(path: &Path) -> Result<Arc<dyn Storage>, Fault> {
    let folder = Folder::open(path)?;
    let plan = std::env::var(VARIABLE).ok().map(|text| Plan::parse(&text));
    Ok(match plan {
        None => Arc::new(folder),
        Some(plan) => Arc::new(FailingFolder {
            folder,
            plan: Arc::new(plan),
        }),
    })
}

/// Which call fails. In memory that the engines share.
struct Plan {
    of_main: bool,
    /// So many calls succeed before it.
    left: AtomicI64,
    error: i32,
}

impl Plan {
    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let [thread, calls, error] = words[..] else {
            panic!("{VARIABLE}={text}: give main|others CALLS ERROR")
        };
        Self {
            of_main: thread == "main",
            left: AtomicI64::new(calls.parse().expect("a number of calls")),
            error: error.parse().expect("an error number"),
        }
    }

    /// Fails if this is the call that is to fail.
    fn call(&self, what: &str) -> io::Result<()> {
        let is_main = std::thread::current().name() == Some("main");
        if is_main != self.of_main || self.left.fetch_sub(1, SeqCst) != 0 {
            return Ok(());
        }
        eprintln!("the disk fails: {what}");
        Err(io::Error::from_raw_os_error(self.error))
    }
}

struct FailingFolder {
    folder: Folder,
    plan: Arc<Plan>,
}

impl Storage for FailingFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        self.plan.call(&format!("open {name}"))?;
        Ok(Arc::new(FailingFile {
            file: self.folder.open(name)?,
            name: name.to_owned(),
            plan: Arc::clone(&self.plan),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.plan.call(&format!("rename {from} {to}"))?;
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.plan.call(&format!("remove {name}"))?;
        self.folder.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.plan.call("list")?;
        self.folder.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.plan.call("force the names")?;
        self.folder.sync_names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.folder.free_bytes()
    }

    fn boot(&self) -> u64 {
        self.folder.boot()
    }

    fn now(&self) -> Duration {
        self.folder.now()
    }
}

struct FailingFile {
    file: Arc<dyn Disk>,
    name: String,
    plan: Arc<Plan>,
}

impl FailingFile {
    fn call(&self, what: &str) -> io::Result<()> {
        self.plan.call(&format!("{what} {}", self.name))
    }
}

impl Disk for FailingFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.call("read")?;
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.call("write")?;
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.call("force")?;
        self.file.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.call("measure")?;
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.call("set the length of")?;
        self.file.set_length(length)
    }
}
