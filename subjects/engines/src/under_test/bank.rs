//! Engines that transfer money and write each transfer to a log, until they are stopped or killed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

use concurve_engines::{Engine, Event, Service, Start};
use concurve_latch::{Class, Mutex};

const ACCOUNTS: usize = 16;

/// A record of the log: engine, number, two accounts, amount.
const RECORD: usize = 20;

/// Has a file for its log and one for the transfers that it has acknowledged.
pub struct Bank {
    pub folder: PathBuf,
}

pub struct Shared {
    accounts: Vec<Mutex<i64>>,
    log: Mutex<Log>,
    /// The acknowledged transfers, as a client would remember them.
    acknowledged: File,
    notes: Mutex<HashMap<u64, String>>,
}

struct Log {
    file: File,
    records: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at * 4..at * 4 + 4].try_into();
    u32::from_le_bytes(four.expect("four bytes"))
}

impl Bank {
    fn file(&self, name: &str) -> Result<File, String> {
        let mut options = File::options();
        let options = options.create(true).append(true).read(true);
        let opened = options.open(self.folder.join(name));
        opened.map_err(|error| format!("cannot open {name}: {error}"))
    }

    /// The accounts according to the log, and the number of its records. A torn record at its end
    /// was never acknowledged, and is cut off.
    fn replay(&self, log: &mut File) -> Result<(Vec<i64>, u32), String> {
        let mut bytes = Vec::new();
        let io = |error: std::io::Error| format!("cannot read the log: {error}");
        log.read_to_end(&mut bytes).map_err(io)?;
        log.set_len((bytes.len() - bytes.len() % RECORD) as u64)
            .map_err(io)?;
        let mut accounts = vec![0; ACCOUNTS];
        let mut records = 0;
        for record in bytes.chunks_exact(RECORD) {
            accounts[word(record, 2) as usize] -= i64::from(word(record, 4));
            accounts[word(record, 3) as usize] += i64::from(word(record, 4));
            records += 1;
        }
        Ok((accounts, records))
    }
}

impl Service for Bank {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        let mut file = self.file("log")?;
        let (accounts, records) = self.replay(&mut file)?;
        let class = Class::named("accounts");
        Ok(Shared {
            accounts: accounts.into_iter().map(|it| class.mutex(it)).collect(),
            log: Class::named("log").mutex(Log { file, records }),
            acknowledged: self.file("acknowledged")?,
            notes: Class::named("notes").mutex(HashMap::new()),
        })
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        let mut draw = engine.number + 7919 * engine.predecessors;
        let io = |error: std::io::Error| format!("cannot write the log: {error}");
        while !engine.is_stopping() {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let from = draw as usize >> 8 & (ACCOUNTS - 1);
            let to = (from + 1 + (draw as usize >> 16) % (ACCOUNTS - 1)) % ACCOUNTS;
            let amount = draw >> 24;
            // In a fixed order, to avoid deadlocks.
            let mut low = shared.accounts[from.min(to)].lock();
            let mut high = shared.accounts[from.max(to)].lock();
            let sign = if from < to { 1 } else { -1 };
            *low -= sign * i64::from(amount);
            *high += sign * i64::from(amount);
            let number = {
                let mut log = shared.log.lock();
                let fields = [engine.number, log.records, from as u32, to as u32, amount];
                let record: Vec<u8> = fields.iter().flat_map(|it| it.to_le_bytes()).collect();
                log.file.write_all(&record).map_err(io)?;
                log.records += 1;
                log.records - 1
            };
            drop((low, high));
            (&shared.acknowledged)
                .write_all(&number.to_le_bytes())
                .map_err(io)?;
            self.note(shared, number);
        }
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        let (replayed, records) = self.replay(&mut self.file("log")?)?;
        let accounts: Vec<_> = shared.accounts.into_iter().map(Mutex::into_inner).collect();
        if accounts != replayed || accounts.iter().sum::<i64>() != 0 {
            return Err(format!(
                "accounts {accounts:?}, but by the log {replayed:?}"
            ));
        }
        if records != shared.log.into_inner().records {
            return Err("the log has records that no engine wrote".to_owned());
        }
        Ok(())
    }

    fn on_event(&self, event: &Event) {
        crate::events::print(event);
    }
}

impl Bank {
    /// Keeps a text for a hundred transfers: something to allocate and to free.
    fn note(&self, shared: &Shared, number: u32) {
        let number = u64::from(number);
        let text = |number: u64| "note".repeat(number as usize % 100);
        let old = {
            let mut notes = shared.notes.lock();
            notes.insert(number, text(number));
            number
                .checked_sub(100)
                .and_then(|it| Some((it, notes.remove(&it)?)))
        };
        if let Some((number, old)) = old {
            assert_eq!(old, text(number), "a note was overwritten");
        }
    }
}
