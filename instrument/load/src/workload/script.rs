//! Commands of a key-value server, one after the other: named ones, and those of the user.
//!
//! `SET {key} {value} NX PX 10000` is a command. Placeholders: `{key}`, `{value}` (as many bytes
//! as asked for), `{session}`, `{count}` (of the session's transactions).

use rand::rngs::SmallRng;

use super::keys::{Keys, Picker};
use super::statement::{Piece, Statement, StatementError};
use super::{Actor, Answer, Ending, Kind, Numbers, Workload};

const KEY: usize = 0;
const SESSION: usize = 1;
const COUNT: usize = 2;

/// A mix of scripts.
#[derive(Debug)]
pub struct Scripts {
    kinds: Vec<Kind>,
    statements: Vec<Statement>,
    /// By kind: an answer of nothing ends the transaction, as refused.
    ends_at_nothing: Vec<bool>,
    keys: Keys,
    places: Vec<(&'static str, Vec<Piece>)>,
}

/// Why a workload cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error(transparent)]
    Statement(#[from] StatementError),
    #[error("no workload {name:?}; one of {known}, or commands of your own by --command")]
    Unknown { name: String, known: String },
}

/// Scripts that go by a name.
const NAMED: [(&str, &[&str], bool); 5] = [
    ("ping", &["PING"], false),
    ("get", &["GET {key}"], false),
    ("set", &["SET {key} {value}"], false),
    (
        "set-nx-del",
        &["SET {key} {session} NX PX 30000", "DEL {key}"],
        true,
    ),
    ("incr", &["INCR {key}"], false),
];

impl Scripts {
    /// No script yet; these keys and values are for all that will be added.
    pub fn new(keys: Keys, value_bytes: usize) -> Self {
        let key = vec![Piece::Text("key:".to_owned()), Piece::Number(KEY)];
        Self {
            kinds: Vec::new(),
            statements: Vec::new(),
            ends_at_nothing: Vec::new(),
            keys,
            places: vec![
                ("key", key),
                ("value", vec![Piece::Bytes(vec![b'x'; value_bytes])]),
                ("session", vec![Piece::Number(SESSION)]),
                ("count", vec![Piece::Number(COUNT)]),
            ],
        }
    }

    /// `{key}` is a number alone, as databases have it.
    pub fn with_bare_keys(mut self) -> Self {
        self.places[0] = ("key", vec![Piece::Number(KEY)]);
        self
    }

    /// Adds a transaction of the commands given, each sent when the one before is answered.
    pub fn with(mut self, name: &str, weight: u32, commands: &[&str]) -> Result<Self, ScriptError> {
        let first = self.statements.len();
        for command in commands {
            self.statements
                .push(Statement::parse(command, &self.places)?);
        }
        self.kinds.push(Kind {
            name: name.to_owned(),
            weight,
            trips: (first..self.statements.len())
                .map(|it| it..it + 1)
                .collect(),
        });
        self.ends_at_nothing.push(false);
        Ok(self)
    }

    /// Adds a script by its name.
    pub fn with_named(self, name: &str, weight: u32) -> Result<Self, ScriptError> {
        let found = NAMED.iter().find(|(known, _, _)| *known == name);
        let (_, commands, ends_at_nothing) = found.ok_or_else(|| ScriptError::Unknown {
            name: name.to_owned(),
            known: NAMED.map(|(known, _, _)| known).join(", "),
        })?;
        let mut scripts = self.with(name, weight, commands)?;
        if let Some(last) = scripts.ends_at_nothing.last_mut() {
            *last = *ends_at_nothing;
        }
        Ok(scripts)
    }
}

impl Workload for Scripts {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn statements(&self, _set: usize) -> &[Statement] {
        &self.statements
    }

    fn actor(&self, session: u64) -> Box<dyn Actor> {
        Box::new(Player {
            picker: Picker::new(self.keys, session),
            ends_at_nothing: self.ends_at_nothing.clone(),
            session: session as i64,
            count: 0,
        })
    }
}

struct Player {
    picker: Picker,
    ends_at_nothing: Vec<bool>,
    session: i64,
    count: i64,
}

impl Actor for Player {
    fn begin(&mut self, _kind: usize, random: &mut SmallRng) -> Numbers {
        let mut numbers = Numbers::default();
        numbers[KEY] = self.picker.pick(random) as i64;
        numbers[SESSION] = self.session;
        numbers[COUNT] = self.count;
        self.count += 1;
        numbers
    }

    fn heard(
        &mut self,
        kind: usize,
        _trip: usize,
        _numbers: &mut Numbers,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Error(kind) => Some(Ending::Error(kind.clone())),
            Answer::Nothing if self.ends_at_nothing[kind] => Some(Ending::Refused),
            Answer::Done(_) | Answer::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn every_named_workload_can_be_made() {
        for (name, commands, _) in NAMED {
            let scripts = Scripts::new(Keys::Session, 3).with_named(name, 1).unwrap();
            assert_eq!(scripts.kinds()[0].trips.len(), commands.len());
            assert_eq!(scripts.statements(0).len(), commands.len());
        }
        let error = Scripts::new(Keys::Session, 3).with_named("gte", 1);
        assert!(error.unwrap_err().to_string().contains("one of ping, get"));
    }

    #[test]
    fn each_transaction_of_a_session_has_its_numbers() {
        let scripts = Scripts::new(Keys::Session, 3).with_named("set", 1).unwrap();
        let mut actor = scripts.actor(42);
        let mut random = SmallRng::seed_from_u64(1);
        assert_eq!(actor.begin(0, &mut random)[..3], [42, 42, 0]);
        assert_eq!(actor.begin(0, &mut random)[..3], [42, 42, 1]);
    }

    #[test]
    fn a_lock_that_is_taken_is_refused_and_a_key_that_is_not_there_is_not() {
        let scripts = Scripts::new(Keys::Session, 3)
            .with_named("set-nx-del", 1)
            .and_then(|it| it.with_named("get", 1))
            .unwrap();
        let mut actor = scripts.actor(0);
        let mut numbers = Numbers::default();
        let mut heard = |kind, answer| actor.heard(kind, 0, &mut numbers, &answer);
        assert_eq!(heard(0, Answer::Nothing), Some(Ending::Refused));
        assert_eq!(heard(1, Answer::Nothing), None);
        let error = Answer::Error("BUSY".to_owned());
        assert_eq!(heard(1, error), Some(Ending::Error("BUSY".to_owned())));
    }
}
