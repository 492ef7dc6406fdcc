//! A simulated storage that loses power, or becomes full.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use concurve_latch::Mutex;
use concurve_records::storage::{Disk, Storage};

const SECTOR: usize = 512;

/// What happens after the given number of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every operation fails.
    PowerLoss,
    /// Writes fail.
    Full,
}

/// Files in memory, which processes may share, and the parts of them that would survive a power
/// loss.
pub struct Simulated {
    state: Arc<Mutex<State>>,
}

struct State {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Writes that will still succeed.
    left: u64,
    end: End,
    /// Counts losses of power.
    boot: u64,
}

#[derive(Default, Clone)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Writes that are not forced to the disk, in order.
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    Length(usize),
}

struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    file: usize,
}

impl State {
    fn spend(&mut self) -> io::Result<()> {
        if self.left == 0 {
            return Err(match self.end {
                End::PowerLoss => io::Error::other("no power"),
                End::Full => io::ErrorKind::StorageFull.into(),
            });
        }
        self.left -= 1;
        Ok(())
    }

    fn check_power(&self) -> io::Result<()> {
        if self.left == 0 && self.end == End::PowerLoss {
            return Err(io::Error::other("no power"));
        }
        Ok(())
    }
}

impl Simulated {
    pub fn new() -> Self {
        Self::with(Vec::new(), BTreeMap::new(), 1)
    }

    fn with(files: Vec<File>, names: BTreeMap<String, usize>, boot: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                files,
                durable_names: names.clone(),
                names,
                left: u64::MAX,
                end: End::Full,
                boot,
            })),
        }
    }

    /// A storage with these files, all of them durable.
    pub fn of(contents: &BTreeMap<String, Vec<u8>>, boot: u64) -> Self {
        let files = contents.values().map(|bytes| File {
            now: bytes.clone(),
            durable: bytes.clone(),
            pending: Vec::new(),
        });
        let names = contents.keys().cloned().zip(0..).collect();
        Self::with(files.collect(), names, boot)
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

    /// Another view of the same files.
    pub fn share(&self) -> Self {
        let state = Arc::clone(&self.state);
        Self { state }
    }

    /// The storage after the power loss. Each sector that was written but not forced to the disk
    /// may have survived or not.
    pub fn after_power_loss(&self, mut random: impl FnMut(u32) -> u32) -> Self {
        let state = self.state.lock();
        let names = if random(2) == 0 {
            state.names.clone()
        } else {
            state.durable_names.clone()
        };
        let survivors = state.files.iter().map(|file| {
            let mut now = file.durable.clone();
            for pending in &file.pending {
                pending.keep_some(&mut now, &mut random);
            }
            File {
                durable: now.clone(),
                now,
                pending: Vec::new(),
            }
        });
        Self::with(survivors.collect(), names, state.boot + 1)
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

impl Pending {
    fn keep_some(&self, to: &mut Vec<u8>, random: &mut impl FnMut(u32) -> u32) {
        match self {
            Pending::Length(length) => to.resize(*length, 0),
            Pending::Write(at, bytes) => {
                // All sectors, none, or some.
                let choice = random(3);
                let mut from = 0;
                while from < bytes.len() {
                    let next = SECTOR - (at + from) % SECTOR;
                    let end = bytes.len().min(from + next);
                    if choice == 0 || (choice == 1 && random(2) == 0) {
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

impl Storage for Simulated {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let mut state = self.state.lock();
        state.check_power()?;
        let file = match state.names.get(name) {
            Some(file) => *file,
            None => {
                state.spend()?;
                state.files.push(File::default());
                let file = state.files.len() - 1;
                state.names.insert(name.to_owned(), file);
                file
            }
        };
        Ok(Arc::new(SimulatedDisk {
            state: Arc::clone(&self.state),
            file,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.spend()?;
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_power()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.check_power()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.spend()?;
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn boot(&self) -> u64 {
        self.state.lock().boot
    }
}

impl Disk for SimulatedDisk {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let state = self.state.lock();
        state.check_power()?;
        let bytes = &state.files[self.file].now;
        let bytes = bytes.get(at as usize..).unwrap_or(&[]);
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let spent = state.spend();
        // The write that fails may be done in part.
        let part = if spent.is_ok() {
            bytes.len()
        } else {
            bytes.len() / 2
        };
        let file = &mut state.files[self.file];
        write(&mut file.now, at as usize, &bytes[..part]);
        let pending = Pending::Write(at as usize, bytes[..part].to_vec());
        file.pending.push(pending);
        spent
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.spend()?;
        let file = &mut state.files[self.file];
        file.durable = file.now.clone();
        file.pending.clear();
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let state = self.state.lock();
        state.check_power()?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.spend()?;
        let file = &mut state.files[self.file];
        file.now.resize(length as usize, 0);
        file.pending.push(Pending::Length(length as usize));
        Ok(())
    }
}
