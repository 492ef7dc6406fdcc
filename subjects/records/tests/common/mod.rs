//! The files and transactions of TPC-B, as the studies run them.
#![allow(dead_code)]

pub mod history;

use concurve_records::{
    Durability, Engine, EngineOptions, FileDefinition, FileHandle, Get, Key, Latching, LockBias,
    SegmentKind, Session, Status, TransactionKind,
};

pub const LATCHINGS: [Latching; 3] = [Latching::Global, Latching::File, Latching::Record];
pub const BRANCHES: u32 = 4;
pub const TELLERS: u32 = 10 * BRANCHES;
pub const ACCOUNTS: u32 = 100 * BRANCHES;
pub const BALANCES: [(&str, u32); 3] = [
    ("accounts", ACCOUNTS),
    ("tellers", TELLERS),
    ("branches", BRANCHES),
];

pub fn options(latching: Latching, durability: Durability) -> EngineOptions {
    EngineOptions {
        latching,
        durability,
        cache_pages: 256,
        checkpoint_bytes: 1 << 20,
        checkpoint_stretch: 4,
    }
}

/// A number, a balance, and padding up to 100 bytes.
pub fn balance_file() -> FileDefinition {
    FileDefinition {
        record_bytes: 100,
        keys: vec![Key::unique(0, 4, SegmentKind::Unsigned)],
    }
}

/// Account, teller, branch, amount, client and the client's number of the transaction.
pub fn history_file() -> FileDefinition {
    FileDefinition {
        record_bytes: 50,
        keys: vec![
            Key::unique(20, 8, SegmentKind::Unsigned),
            Key::unique(0, 4, SegmentKind::Unsigned).with_duplicates(),
        ],
    }
}

pub fn balance(record: &[u8]) -> i64 {
    i64::from_le_bytes(record[4..12].try_into().unwrap())
}

pub fn make_bank(engine: &Engine) {
    let mut session = engine.session();
    for (name, count) in BALANCES {
        engine.create_file(name, &balance_file()).unwrap();
        let file = session.open(name).unwrap();
        session.begin(TransactionKind::Concurrent).unwrap();
        for number in 0..count {
            let mut record = [7; 100];
            record[..4].copy_from_slice(&number.to_le_bytes());
            record[4..12].fill(0);
            session.insert(file, &record).unwrap();
        }
        session.end().unwrap();
    }
    engine.create_file("history", &history_file()).unwrap();
}

/// A client of the bank.
pub struct Teller {
    pub session: Session,
    files: [FileHandle; 3],
    history: FileHandle,
    random: u64,
    pub client: u32,
    /// Number of the next transaction.
    pub next: u32,
}

impl Teller {
    pub fn new(engine: &Engine, client: u32) -> Result<Self, Status> {
        let mut session = engine.session();
        let files = [
            session.open(BALANCES[0].0)?,
            session.open(BALANCES[1].0)?,
            session.open(BALANCES[2].0)?,
        ];
        Ok(Self {
            files,
            history: session.open("history")?,
            session,
            random: u64::from(client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            client,
            next: 0,
        })
    }

    /// Continues after the last transaction of earlier processes of this client.
    pub fn find_next(&mut self) -> Result<(), Status> {
        let above = (u64::from(self.client) + 1) << 32;
        let last = Get::Less(0, &above.to_le_bytes());
        match self.session.get(self.history, last, LockBias::None) {
            Ok(record) => {
                let number = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
                if number(24) == self.client {
                    self.next = number(20) + 1;
                }
                Ok(())
            }
            Err(Status::EndOfFile) => Ok(()),
            Err(status) => Err(status),
        }
    }

    pub fn random(&mut self, below: u32) -> u32 {
        // Marsaglia, Xorshift RNGs (2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as u32 % below
    }

    /// One transaction, repeated after a deadlock.
    pub fn transact(&mut self) -> Result<(), Status> {
        let numbers = BALANCES.map(|(_, count)| self.random(count));
        let delta = i64::from(self.random(2_000_000)) - 1_000_000;
        // Sometimes in another order, so that there are deadlocks.
        let backwards = self.random(4) == 0;
        loop {
            match self.try_to(numbers, delta, backwards) {
                Err(Status::Deadlock) => self.session.abort()?,
                done => {
                    self.next += 1;
                    return done;
                }
            }
        }
    }

    pub fn try_to(&mut self, numbers: [u32; 3], delta: i64, backwards: bool) -> Result<(), Status> {
        self.session.begin(TransactionKind::Concurrent)?;
        for step in 0..3 {
            let at = if backwards { 2 - step } else { step };
            let key = numbers[at].to_le_bytes();
            let bias = LockBias::MultipleWait;
            let mut record = [0; 100];
            record.copy_from_slice(
                self.session
                    .get(self.files[at], Get::Equal(0, &key), bias)?,
            );
            let new = balance(&record) + delta;
            record[4..12].copy_from_slice(&new.to_le_bytes());
            self.session.update(self.files[at], &record)?;
        }
        let mut history = [3; 50];
        for (at, number) in numbers.iter().enumerate() {
            history[4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
        }
        history[12..20].copy_from_slice(&delta.to_le_bytes());
        history[20..24].copy_from_slice(&self.next.to_le_bytes());
        history[24..28].copy_from_slice(&self.client.to_le_bytes());
        self.session.insert(self.history, &history)?;
        self.session.end()
    }
}

/// Checks the engine and the sums; returns the numbers of the transactions of each client.
pub fn audit(engine: &Engine) -> Vec<(u32, Vec<u32>)> {
    engine.verify().unwrap();
    let mut session = engine.session();
    let mut expected = BALANCES.map(|(_, count)| vec![0; count as usize]);
    let mut clients = std::collections::BTreeMap::<u32, Vec<u32>>::new();
    each(&mut session, "history", |record| {
        let number = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let delta = i64::from_le_bytes(record[12..20].try_into().unwrap());
        for (at, balances) in expected.iter_mut().enumerate() {
            balances[number(4 * at) as usize] += delta;
        }
        clients.entry(number(24)).or_default().push(number(20));
    });
    for ((name, _), expected) in BALANCES.iter().zip(&expected) {
        let mut found = Vec::new();
        each(&mut session, name, |record| found.push(balance(record)));
        assert_eq!(&found, expected, "balances of {name} against the history");
    }
    clients.into_iter().collect()
}

fn each(session: &mut Session, name: &str, mut each: impl FnMut(&[u8])) {
    let file = session.open(name).unwrap();
    let mut next = Get::First(0);
    loop {
        match session.get(file, next, LockBias::None) {
            Ok(record) => each(record),
            Err(Status::EndOfFile) => return,
            Err(status) => panic!("{status}"),
        }
        next = Get::Next;
    }
}
