//! A checker of serialisability, and clients that produce histories.
//!
//! The history says for each version of a record which transaction wrote it, and which version it
//! replaced, so the order of versions is known. In the graph of transactions, an edge goes from the
//! writer of a version to those that read or replaced it, and from its readers to the one that
//! replaced it. There is a serial order if there is no cycle (Adya, Weak Consistency, MIT 1999,
//! PL-3). Missing records are versions of the transaction 0.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use concurve_records::{
    Engine, FileDefinition, FileHandle, Get, Key, LockBias, SegmentKind, Session, Status,
    TransactionKind,
};

const KEYS: u64 = 12;

/// The reads and writes of a committed transaction.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub id: u64,
    /// Keys, and the transactions that wrote the versions read.
    pub reads: Vec<(u64, u64)>,
    /// Keys, and the transactions that wrote the versions replaced.
    pub writes: Vec<(u64, u64)>,
}

/// Transactions that form a cycle, if there is one.
pub fn cycle(history: &[Seen]) -> Option<Vec<u64>> {
    let mut next_version = BTreeMap::new();
    for seen in history {
        for (key, replaced) in &seen.writes {
            let other = next_version.insert((*key, *replaced), seen.id);
            // Two transactions replaced the same version: an update was lost.
            if let Some(other) = other {
                return Some(vec![other, seen.id]);
            }
        }
    }
    let mut edges: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for seen in history {
        for (key, version) in seen.reads.iter().chain(&seen.writes) {
            edges.entry(*version).or_default().insert(seen.id);
            if let Some(next) = next_version.get(&(*key, *version)) {
                edges.entry(seen.id).or_default().insert(*next);
            }
        }
    }
    for (from, to) in &mut edges {
        to.remove(from);
    }
    find_cycle(&edges)
}

fn find_cycle(edges: &BTreeMap<u64, BTreeSet<u64>>) -> Option<Vec<u64>> {
    let mut done = BTreeSet::new();
    for start in edges.keys() {
        // The path from the start, with the edges of each node that are not tried yet.
        let mut path = vec![(*start, edges[start].iter())];
        while let Some((at, rest)) = path.last_mut() {
            let at = *at;
            let Some(next) = rest.next() else {
                done.insert(at);
                path.pop();
                continue;
            };
            if let Some(first) = path.iter().position(|it| it.0 == *next) {
                return Some(path[first..].iter().map(|it| it.0).collect());
            }
            if !done.contains(next)
                && let Some(on) = edges.get(next)
            {
                path.push((*next, on.iter()));
            }
        }
    }
    None
}

pub struct Client {
    pub session: Session,
    file: FileHandle,
    random: u64,
}

impl Client {
    pub fn new(engine: &Engine, seed: u64) -> Self {
        let mut session = engine.session();
        Self {
            file: session.open("file").unwrap(),
            session,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) % below
    }

    pub fn transact(&mut self, id: u64) -> Result<Seen, Status> {
        let mut seen = Seen {
            id,
            ..Seen::default()
        };
        self.session.begin(TransactionKind::Concurrent)?;
        for _ in 0..1 + self.random(3) {
            let key = self.random(KEYS);
            match self.random(3) {
                0 => self.read(key, &mut seen)?,
                1 => self.scan(key, &mut seen)?,
                _ => self.write(key, &mut seen)?,
            }
        }
        self.session.end()?;
        Ok(seen)
    }

    /// The transaction that wrote the record of a key; 0 if there is none.
    fn version(&mut self, key: u64) -> Result<u64, Status> {
        let value = key.to_le_bytes();
        let bias = LockBias::None;
        match self.session.get(self.file, Get::Equal(0, &value), bias) {
            Ok(record) => Ok(writer(record)),
            Err(Status::KeyNotFound) => Ok(0),
            Err(status) => Err(status),
        }
    }

    pub fn read(&mut self, key: u64, seen: &mut Seen) -> Result<(), Status> {
        let version = self.version(key)?;
        note(key, version, seen);
        Ok(())
    }

    /// Reads up to three records from a key on, and the missing ones between them; or backwards.
    fn scan(&mut self, from: u64, seen: &mut Seen) -> Result<(), Status> {
        let backwards = self.random(2) == 0;
        let value = from.to_le_bytes();
        let (mut get, step) = if backwards {
            (Get::AtMost(0, &value), Get::Previous)
        } else {
            (Get::AtLeast(0, &value), Get::Next)
        };
        let mut at = from as i64;
        for _ in 0..3 {
            let found = match self.session.get(self.file, get, LockBias::None) {
                Ok(record) => Some((key_of(record), writer(record))),
                Err(Status::EndOfFile) => None,
                Err(status) => return Err(status),
            };
            let end = if backwards { -1 } else { KEYS as i64 };
            let to = found.map_or(end, |it| it.0 as i64);
            while at != to {
                note(at as u64, 0, seen);
                at += if backwards { -1 } else { 1 };
            }
            let Some((key, version)) = found else {
                return Ok(());
            };
            note(key, version, seen);
            at += if backwards { -1 } else { 1 };
            get = step;
        }
        Ok(())
    }

    pub fn write(&mut self, key: u64, seen: &mut Seen) -> Result<(), Status> {
        let version = self.version(key)?;
        note(key, version, seen);
        let mut record = [0; 16];
        record[..8].copy_from_slice(&key.to_le_bytes());
        record[8..].copy_from_slice(&seen.id.to_le_bytes());
        if version == 0 {
            self.session.insert(self.file, &record)?;
        } else {
            self.session.update(self.file, &record)?;
        }
        if version != seen.id {
            seen.writes.push((key, version));
        }
        Ok(())
    }
}

/// Notes a read, unless of a version that the transaction has written itself.
fn note(key: u64, version: u64, seen: &mut Seen) {
    if version != seen.id {
        seen.reads.push((key, version));
    }
}

fn key_of(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[..8].try_into().unwrap())
}

fn writer(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[8..].try_into().unwrap())
}

/// Makes the file of the clients.
pub fn make_file(engine: &Engine) {
    let definition = FileDefinition {
        record_bytes: 16,
        keys: vec![Key::unique(0, 8, SegmentKind::Unsigned)],
    };
    engine.create_file("file", &definition).unwrap();
}
