//! A simulated storage: files in memory, which processes may share, and what of them survives a loss of
//! power. It becomes full, loses power, fails single calls, and has a clock of its own. All that it draws
//! comes from its seed.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use concurve_fuzz::Draw;
use concurve_latch::{Mutex, MutexGuard};
use concurve_records::storage::{Disk, Storage};
use nix::errno::Errno;

const SECTOR: usize = 512;
/// No file is larger.
const FILE_MAX: usize = 1 << 28;

/// What happens after the given number of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every operation fails.
    PowerLoss,
    /// Writes fail.
    Full,
}

/// How a single call fails. A write that fails is done in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// With EIO. After a `sync` that fails, the kernel takes what it could not write for written: it
    /// shows that as long as it is in its cache, and no later `sync` writes it (Rebello et al., Can
    /// Applications Recover from fsync Failures?, USENIX ATC 2020).
    Io,
    /// With ENOSPC; reads do not, and a `sync` as with EIO.
    Full,
}

/// A view of the storage. Those of a process that was killed fail.
pub struct Simulated {
    state: Arc<Mutex<State>>,
    life: u64,
}

struct State {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names that are not forced to the disk, in order.
    naming: Vec<Naming>,
    /// Writes that will still succeed.
    left: u64,
    end: End,
    /// So many calls succeed, and then one fails.
    failing: Option<(u64, Failure)>,
    /// A call has failed in this life of the process.
    has_failed: bool,
    /// A `sync` does nothing, and succeeds.
    lies: bool,
    /// Counts losses of power.
    boot: u64,
    /// Counts kills of the process.
    life: u64,
    now: Duration,
    draw: Draw,
}

#[derive(Default, Clone)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Writes that are not forced to the disk, in order.
    pending: Vec<Pending>,
    /// Sectors that could not be forced to the disk, and that the kernel takes for written.
    lost: BTreeSet<usize>,
}

#[derive(Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Clone)]
enum Naming {
    Add(String, usize),
    Rename(String, String),
    Remove(String),
}

struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    life: u64,
    file: usize,
}

impl State {
    /// Begins a call of a process, which may fail.
    fn call(&mut self, life: u64, writes: bool) -> io::Result<()> {
        if life != self.life {
            return Err(io::Error::other("the process was killed"));
        }
        if self.left == 0 && (writes || self.end == End::PowerLoss) {
            self.has_failed = true;
            return Err(match self.end {
                End::PowerLoss => io::Error::other("no power"),
                End::Full => io::ErrorKind::StorageFull.into(),
            });
        }
        if let Some((calls, failure)) = &mut self.failing
            && (writes || *failure == Failure::Io)
        {
            if *calls == 0 {
                let failure = *failure;
                self.failing = None;
                self.has_failed = true;
                return Err(match failure {
                    Failure::Io => Errno::EIO.into(),
                    Failure::Full => Errno::ENOSPC.into(),
                });
            }
            *calls -= 1;
        }
        self.left -= u64::from(writes);
        Ok(())
    }
}

impl State {
    /// Frees the contents of files that have no name, and get none by a loss of power.
    fn remove_unnamed(&mut self) {
        let added = self.naming.iter().filter_map(|it| match it {
            Naming::Add(_, file) => Some(*file),
            _ => None,
        });
        let names = self.names.values().chain(self.durable_names.values());
        let named: BTreeSet<usize> = names.copied().chain(added).collect();
        for (number, file) in self.files.iter_mut().enumerate() {
            if !named.contains(&number) {
                *file = File::default();
            }
        }
    }
}

impl Naming {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Naming::Add(name, file) => {
                names.insert(name, file);
            }
            Naming::Rename(from, to) => {
                if let Some(file) = names.remove(&from) {
                    names.insert(to, file);
                }
            }
            Naming::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}

impl Simulated {
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// An empty storage whose failures are drawn from a seed.
    pub fn seeded(seed: u64) -> Self {
        Self::with(Vec::new(), BTreeMap::new(), 1, Draw::new(seed))
    }

    fn with(files: Vec<File>, names: BTreeMap<String, usize>, boot: u64, draw: Draw) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                files,
                durable_names: names.clone(),
                names,
                naming: Vec::new(),
                left: u64::MAX,
                end: End::Full,
                failing: None,
                has_failed: false,
                lies: false,
                boot,
                life: 0,
                now: Duration::ZERO,
                draw,
            })),
            life: 0,
        }
    }

    /// A storage with these files, all of them durable.
    pub fn of(contents: &BTreeMap<String, Vec<u8>>, boot: u64) -> Self {
        let files = contents.values().map(|bytes| File::durable(bytes.clone()));
        let names = contents.keys().cloned().zip(0..).collect();
        Self::with(files.collect(), names, boot, Draw::new(boot))
    }

    /// The files as a kill of the process leaves them, or, if only what is `durable` counts, as a
    /// loss of power does at the worst.
    pub fn contents(&self, durable: bool) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.lock();
        let names = match durable {
            true => &state.durable_names,
            false => &state.names,
        };
        let bytes = |file: &File| match durable {
            true => file.durable.clone(),
            false => file.now.clone(),
        };
        let each = names.iter();
        each.map(|(name, at)| (name.clone(), bytes(&state.files[*at])))
            .collect()
    }

    /// Ends after so many writes, syncs and changes of names.
    pub fn end_after(&self, writes: u64, end: End) {
        let mut state = self.state.lock();
        (state.left, state.end) = (writes, end);
    }

    /// Lets one call fail, after so many that could fail in this way.
    pub fn fail_after(&self, calls: u64, failure: Failure) {
        self.state.lock().failing = Some((calls, failure));
    }

    /// Whether a call has failed as it was to, since the process began.
    pub fn has_failed(&self) -> bool {
        self.state.lock().has_failed
    }

    /// From now on, a `sync` does nothing, and succeeds.
    pub fn lie(&self) {
        self.state.lock().lies = true;
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.state.lock().now += time;
    }

    /// Another view of the same files.
    pub fn share(&self) -> Self {
        let state = Arc::clone(&self.state);
        let life = self.life;
        Self { state, life }
    }

    /// The storage for the next process, after this one was killed. What the kernel could not write,
    /// it may have removed from its cache.
    pub fn after_kill(&self) -> Self {
        let mut state = self.state.lock();
        state.life += 1;
        (state.left, state.end, state.failing) = (u64::MAX, End::Full, None);
        state.has_failed = false;
        let state = &mut *state;
        state.remove_unnamed();
        for file in &mut state.files {
            file.forget_some_lost(&mut state.draw);
        }
        let life = state.life;
        let state = Arc::clone(&self.state);
        Self { state, life }
    }

    /// The storage after the power loss. Each sector that was written but not forced to the disk
    /// may have survived or not, and so may changes of names, up to any of them.
    pub fn after_power_loss(&self) -> Self {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.remove_unnamed();
        let mut names = state.durable_names.clone();
        let kept = state.draw.below(state.naming.len() + 1);
        for naming in state.naming.iter().take(kept) {
            naming.clone().apply(&mut names);
        }
        let draw = &mut state.draw;
        let survivors = state.files.iter().map(|file| {
            let mut now = file.durable.clone();
            for pending in &file.pending {
                pending.keep_some(&mut now, draw);
            }
            File::durable(now)
        });
        let survivors = survivors.collect();
        let next = Draw::new(draw.number());
        let after = Self::with(survivors, names, state.boot + 1, next);
        after.state.lock().lies = state.lies;
        after
    }

    /// Changes a byte of a file, as a failing disk does.
    pub fn damage(&self, name: &str, at: usize) {
        let mut state = self.state.lock();
        let file = state.names[name];
        let file = &mut state.files[file];
        file.now[at] ^= 0x55;
        file.durable = file.now.clone();
    }

    pub fn length(&self, name: &str) -> usize {
        let state = self.state.lock();
        state.files[state.names[name]].now.len()
    }
}

impl File {
    fn durable(bytes: Vec<u8>) -> Self {
        Self {
            durable: bytes.clone(),
            now: bytes,
            ..Self::default()
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        if !self.lost.is_empty() {
            // A sector that is written in part will be forced to the disk as a whole.
            for sector in sectors(at, bytes.len()) {
                let begin = sector * SECTOR;
                let end = self.now.len().min(begin + SECTOR);
                if self.lost.remove(&sector) && begin < end {
                    let old = self.now[begin..end].to_vec();
                    self.pending.push(Pending::Write(begin, old));
                }
            }
        }
        write(&mut self.now, at, bytes);
        self.pending.push(Pending::Write(at, bytes.to_vec()));
    }

    fn sync(&mut self) {
        for pending in self.pending.drain(..) {
            match pending {
                Pending::Write(at, bytes) => write(&mut self.durable, at, &bytes),
                Pending::Length(length) => self.durable.resize(length, 0),
            }
        }
    }

    /// A sync that fails.
    fn lose(&mut self, draw: &mut Draw) {
        let mut changed = BTreeSet::new();
        for pending in self.pending.drain(..) {
            if let Pending::Write(at, bytes) = pending {
                changed.extend(sectors(at, bytes.len()));
            }
        }
        // Lengths stand in the journal of the file system.
        self.durable.resize(self.now.len(), 0);
        for sector in changed {
            let begin = sector * SECTOR;
            let end = self.now.len().min(begin + SECTOR);
            if begin >= end {
                continue;
            }
            match draw.once_in(2) {
                true => self.durable[begin..end].copy_from_slice(&self.now[begin..end]),
                false => {
                    self.lost.insert(sector);
                }
            }
        }
    }

    fn forget_some_lost(&mut self, draw: &mut Draw) {
        for sector in std::mem::take(&mut self.lost) {
            let begin = sector * SECTOR;
            let end = self.now.len().min(self.durable.len()).min(begin + SECTOR);
            if draw.once_in(2) {
                self.lost.insert(sector);
            } else if begin < end {
                self.now[begin..end].copy_from_slice(&self.durable[begin..end]);
            }
        }
    }
}

/// The sectors of some bytes.
fn sectors(at: usize, bytes: usize) -> std::ops::Range<usize> {
    at / SECTOR..(at + bytes).div_ceil(SECTOR)
}

impl Pending {
    fn keep_some(&self, to: &mut Vec<u8>, draw: &mut Draw) {
        match self {
            Pending::Length(length) => {
                if draw.once_in(2) {
                    to.resize(*length, 0);
                }
            }
            Pending::Write(at, bytes) => {
                // All sectors, none, or some.
                let choice = draw.below(3);
                let mut from = 0;
                while from < bytes.len() {
                    let next = SECTOR - (at + from) % SECTOR;
                    let end = bytes.len().min(from + next);
                    if choice == 0 || (choice == 1 && draw.once_in(2)) {
                        write(to, at + from, &bytes[from..end]);
                    }
                    from = end;
                }
            }
        }
    }
}

fn write(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if to.len() < at + bytes.len() {
        to.resize(at + bytes.len(), 0);
    }
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Simulated {
    fn call(&self, writes: bool) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        state.call(self.life, writes)?;
        Ok(state)
    }
}

impl Storage for Simulated {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let known = self.state.lock().names.get(name).copied();
        let mut state = self.call(known.is_none())?;
        let file = known.unwrap_or_else(|| {
            state.files.push(File::default());
            let file = state.files.len() - 1;
            state.names.insert(name.to_owned(), file);
            state.naming.push(Naming::Add(name.to_owned(), file));
            file
        });
        Ok(Arc::new(SimulatedDisk {
            state: Arc::clone(&self.state),
            life: self.life,
            file,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.call(true)?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        let naming = Naming::Rename(from.to_owned(), to.to_owned());
        state.naming.push(naming);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.call(true)?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.naming.push(Naming::Remove(name.to_owned()));
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let state = self.call(false)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.call(true)?;
        state.durable_names = state.names.clone();
        state.naming.clear();
        Ok(())
    }

    fn boot(&self) -> u64 {
        self.state.lock().boot
    }

    fn now(&self) -> Duration {
        self.state.lock().now
    }
}

impl SimulatedDisk {
    /// Begins a call; whether it fails, and the state, which a failure may change, too.
    fn call(&self, writes: bool) -> (io::Result<()>, MutexGuard<'_, State>) {
        let mut state = self.state.lock();
        let called = state.call(self.life, writes);
        (called, state)
    }
}

impl Disk for SimulatedDisk {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let (called, state) = self.call(false);
        called?;
        let bytes = &state.files[self.file].now;
        let bytes = bytes.get(at as usize..).unwrap_or(&[]);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let (called, mut state) = self.call(true);
        let state = &mut *state;
        // The write that fails may be done in part; not that of a killed process.
        let part = match called {
            Ok(()) => bytes.len(),
            Err(_) if self.life != state.life => 0,
            Err(_) => state.draw.below(bytes.len() + 1),
        };
        if at as usize + part > FILE_MAX {
            return Err(Errno::EFBIG.into());
        }
        if part > 0 {
            state.files[self.file].write(at as usize, &bytes[..part]);
        }
        called
    }

    /// Memory that is written does not fail, but after a loss of power nobody writes it.
    fn put(&self, bytes: &[u8], at: u64) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let loses_power = state.end == End::PowerLoss;
        let is_over = self.life != state.life || loses_power && state.left == 0;
        let file = &mut state.files[self.file];
        if is_over || at as usize + bytes.len() > file.now.len() {
            return false;
        }
        file.write(at as usize, bytes);
        if loses_power {
            state.left -= 1;
        }
        true
    }

    fn sync(&self) -> io::Result<()> {
        let (called, mut state) = self.call(true);
        let state = &mut *state;
        let file = &mut state.files[self.file];
        match &called {
            Ok(()) if state.lies => {}
            Ok(()) => file.sync(),
            Err(error) if error.raw_os_error().is_some() => file.lose(&mut state.draw),
            Err(_) => {}
        }
        called
    }

    fn length(&self) -> io::Result<u64> {
        let (called, state) = self.call(false);
        called?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let (called, mut state) = self.call(true);
        called?;
        let file = &mut state.files[self.file];
        file.now.resize(length as usize, 0);
        file.pending.push(Pending::Length(length as usize));
        Ok(())
    }
}
