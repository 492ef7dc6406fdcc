//! Commands of a key-value server, one after the other: named ones, and the user's own.
//!
//! `SET {key} {value} NX PX 10000` is a command. Placeholders: `{key}` (`key:` and 12 digits), `{n}` (the number
//! of the key alone, as in `user:{n}`; `{n:8}` with leading zeros up to 8 digits), `{value}` (as many bytes
//! as asked for), `{session}`, `{count}` (of the session's transactions so far),
//! `{run}` (a text that no other load has).

mod keys;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rand::rngs::SmallRng;

use super::statement::{Piece, Statement, StatementError};
use super::tokens::{Token, tokens};
use super::transaction::{
    Answer, Ending, Generator, Language, Parameters, Prefill, Selection, TransactionKind, Workload,
    WorkloadError,
};
use keys::{KeyPicker, Keys};

/// Slots in [`Parameters`].
const KEY: usize = 0;
const SESSION: usize = 1;
const COUNT: usize = 2;

/// Scripts that have a name: their commands, and whether an answer that nothing was found refuses
/// the transaction.
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
const DEFAULT: &str = "get";
/// What fills the keys before a load.
const FILLING: &str = "set";
/// Scripts that refuse keys which hold a value, or take numbers alone.
const FOR_ABSENT_KEYS: [&str; 2] = ["set-nx-del", "incr"];
/// While keys are filled so many of them are under way, and of large values so many bytes.
const FILLED_AT_ONCE: u64 = 100;
const FILLED_BYTES: u64 = 1 << 20;
/// What keys and values are without options.
const KEYS: &str = "uniform:100000";
const VALUE_BYTES: u32 = 3;

/// The help of `--command`. Clap replaces the four characters of `{n}` by a line break, in any help, and
/// knows no escape. With a style that changes nothing inside, it prints them as they are; it leaves styles
/// out where no terminal reads.
const COMMAND_HELP: &str = "A command of your own; repeat the option for a transaction of several commands. \
    {key} is key: and 12 digits, {\x1b[0mn} its number alone (GET user:{\x1b[0mn}; {n:8}: 8 digits at least)";

/// Options of scripts.
#[derive(Debug, clap::Args)]
pub struct ScriptOptions {
    // The help is no doc comment: of these, clap makes a line break for each `{n}`.
    #[arg(long, value_name = "'SET {key} {value}'", conflicts_with = "mix", help = COMMAND_HELP)]
    command: Vec<String>,
    /// Mix of named workloads, with their weights
    #[arg(long, value_name = "get=9,set=1")]
    mix: Option<String>,
    /// Distribution of the keys: uniform:N, zipf:N:S, hot:N:K:SHARE, each:N (one after the other; with
    /// --transactions N each once) or session [default: uniform:100000]
    #[arg(long)]
    keys: Option<String>,
    /// Length of {value} in bytes [default: 3]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(..=1 << 26))]
    value_bytes: Option<u32>,
    /// Before the load, set each of the --keys once, to a value of --value-bytes. It is not measured
    #[arg(long, conflicts_with = "follow")]
    prefill: bool,
}

impl ScriptOptions {
    pub fn has_commands(&self) -> bool {
        !self.command.is_empty()
    }

    pub fn has_mix(&self) -> bool {
        self.mix.is_some()
    }

    /// The first option of keys and values that is given.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("--keys", self.keys.is_some()),
            ("--value-bytes", self.value_bytes.is_some()),
            ("--prefill", self.prefill),
        ];
        all.iter().find(|it| it.1).map(|it| it.0)
    }

    /// The user's commands, the mix, or the script of this name.
    pub fn select(
        &self,
        name: Option<&str>,
        language: Language,
        pipeline: u32,
        run_id: &str,
    ) -> Result<Selection, WorkloadError> {
        let keys: Keys = self
            .keys
            .as_deref()
            .unwrap_or(KEYS)
            .parse()
            .map_err(|error: keys::KeysError| WorkloadError::Options(error.to_string()))?;
        let value_bytes = self.value_bytes.unwrap_or(VALUE_BYTES);
        let mut scripts = Scripts::new(keys, value_bytes as usize, run_id);
        if language.is_database() {
            if pipeline > 1 && self.command.len() > 1 {
                return Err(WorkloadError::Options(format!(
                    "--pipeline {pipeline} with several --command: the transactions of a session would be mixed; one --command, or more --sessions"
                )));
            }
            scripts = scripts.with_bare_keys();
        }
        let scripts = match &self.mix {
            Some(mix) => mix.split(',').try_fold(scripts, with_part)?,
            None if self.has_commands() => {
                let commands: Vec<&str> = self.command.iter().map(String::as_str).collect();
                scripts.with("custom", 1, &commands)?
            }
            None => scripts.with_named(name.unwrap_or(DEFAULT), 1)?,
        };
        let prefill = match self.prefill {
            true => Some(scripts.prefill(language, value_bytes, run_id)?),
            false => None,
        };
        Ok(Selection {
            workload: Arc::new(scripts),
            dataset: None,
            prefill,
        })
    }
}

/// Adds a part of a mix, such as `get=9`.
fn with_part(scripts: Scripts, part: &str) -> Result<Scripts, WorkloadError> {
    let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
    let weight = weight
        .parse::<u32>()
        .ok()
        .filter(|it| (1..=1_000_000).contains(it));
    let weight = weight.ok_or_else(|| {
        WorkloadError::Options(format!(
            "--mix {part:?}: a weight from 1 to 1,000,000, as in get=9,set=1"
        ))
    })?;
    scripts.with_named(name, weight)
}

/// A mix of scripts.
#[derive(Debug)]
struct Scripts {
    kinds: Vec<TransactionKind>,
    statements: Vec<Statement>,
    /// By kind: an answer of nothing ends the transaction as refused.
    refused_by_nothing: Vec<bool>,
    keys: Keys,
    /// Keys drawn so far, where they take turns.
    drawn: Arc<AtomicU64>,
    placeholders: Vec<(&'static str, Vec<Piece>)>,
}

impl Scripts {
    /// No script yet; these keys and values are for all that will be added.
    fn new(keys: Keys, value_bytes: usize, run_id: &str) -> Self {
        let key = vec![Piece::Text("key:".to_owned()), Piece::Parameter(KEY)];
        Self {
            kinds: Vec::new(),
            statements: Vec::new(),
            refused_by_nothing: Vec::new(),
            keys,
            drawn: Arc::default(),
            placeholders: vec![
                ("key", key),
                ("value", vec![Piece::Bytes(vec![b'x'; value_bytes])]),
                ("session", vec![Piece::Parameter(SESSION)]),
                ("count", vec![Piece::Parameter(COUNT)]),
                ("run", vec![Piece::Bytes(run_id.as_bytes().to_vec())]),
                (
                    "n",
                    vec![Piece::Digits {
                        slot: KEY,
                        width: 1,
                    }],
                ),
            ],
        }
    }

    /// `{key}` is a number alone, as keys of database tables are.
    fn with_bare_keys(mut self) -> Self {
        for (name, pieces) in &mut self.placeholders {
            if ["key", "n"].contains(name) {
                *pieces = vec![Piece::Parameter(KEY)];
            }
        }
        self
    }

    /// Adds a transaction of the commands given, each sent when the one before is answered.
    fn with(mut self, name: &str, weight: u32, commands: &[&str]) -> Result<Self, StatementError> {
        let first = self.statements.len();
        for command in commands {
            self.statements
                .push(Statement::parse(command, &self.placeholders)?);
        }
        self.kinds.push(TransactionKind {
            name: name.to_owned(),
            weight,
            round_trips: (first..self.statements.len())
                .map(|it| it..it + 1)
                .collect(),
        });
        self.refused_by_nothing.push(false);
        Ok(self)
    }

    /// Adds a script by its name.
    fn with_named(self, name: &str, weight: u32) -> Result<Self, WorkloadError> {
        let found = NAMED.iter().find(|(known, _, _)| *known == name);
        let (_, commands, refused_by_nothing) = found.ok_or_else(|| {
            let known = NAMED.map(|(known, _, _)| known).join(", ");
            WorkloadError::Options(format!(
                "no workload {name:?}; one of {known}, or commands of your own by --command"
            ))
        })?;
        let mut scripts = self.with(name, weight, commands)?;
        if let Some(last) = scripts.refused_by_nothing.last_mut() {
            *last = *refused_by_nothing;
        }
        Ok(scripts)
    }
}

impl Scripts {
    /// What sets each key once.
    ///
    /// # Errors
    /// There are no keys that a value can be set to, or the scripts need some that have none.
    fn prefill(
        &self,
        language: Language,
        value_bytes: u32,
        run_id: &str,
    ) -> Result<Prefill, WorkloadError> {
        let refuse = |why: String| Err(WorkloadError::Options(format!("--prefill {why}")));
        if language != Language::KeyValue {
            return refuse(
                "is for key-value servers: a table is filled by statements of your own, before the load"
                    .to_owned(),
            );
        }
        let unfit = |it: &&TransactionKind| FOR_ABSENT_KEYS.contains(&it.name.as_str());
        if let Some(kind) = self.kinds.iter().find(unfit) {
            return refuse(format!(
                "with {}: it needs keys without a value, or with a number; leave it out",
                kind.name
            ));
        }
        if !self.statements.iter().any(|it| it.has_parameter(KEY)) {
            return refuse(
                "is for commands with a {key}: these name none; leave it out".to_owned(),
            );
        }
        // The keys of a session each are those of as many in their turn.
        let keys = self.keys.population();
        let in_turn = Keys::Each {
            population: keys.unwrap_or(u64::MAX),
        };
        let filling = Self::new(in_turn, value_bytes as usize, run_id).with_named(FILLING, 1)?;
        let fitting = FILLED_BYTES / u64::from(value_bytes).max(1);
        Ok(Prefill {
            workload: Arc::new(filling),
            keys,
            pipeline: fitting.clamp(1, FILLED_AT_ONCE) as u32,
        })
    }
}

impl Workload for Scripts {
    fn kinds(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn statements(&self, _set: usize) -> &[Statement] {
        &self.statements
    }

    fn key(&self, kind: usize, number: i64) -> Option<String> {
        let mut parameters = Parameters::default();
        parameters[KEY] = number;
        let last = self.kinds[kind].round_trips.last()?.clone();
        let tokens: Vec<Token> = self.statements[last].iter().flat_map(tokens).collect();
        let token = tokens.iter().find(|it| it.has_slot(KEY))?;
        let mut key = Vec::new();
        token.put(&parameters, &mut key);
        String::from_utf8(key).ok()
    }

    fn generator(&self, session: u64) -> Box<dyn Generator> {
        Box::new(ScriptGenerator {
            picker: KeyPicker::new(self.keys, session, Arc::clone(&self.drawn)),
            refused_by_nothing: self.refused_by_nothing.clone(),
            round_trips: self.kinds.iter().map(|it| it.round_trips.len()).collect(),
            session: session as i64,
            count: 0,
        })
    }
}

struct ScriptGenerator {
    picker: KeyPicker,
    refused_by_nothing: Vec<bool>,
    /// By kind, how many there are.
    round_trips: Vec<usize>,
    session: i64,
    count: i64,
}

impl Generator for ScriptGenerator {
    fn begin(&mut self, _kind: usize, random: &mut SmallRng) -> Parameters {
        let mut parameters = Parameters::default();
        parameters[KEY] = self.picker.pick(random) as i64;
        parameters[SESSION] = self.session;
        parameters[COUNT] = self.count;
        self.count += 1;
        parameters
    }

    fn answered(
        &mut self,
        kind: usize,
        round_trip: usize,
        parameters: &mut Parameters,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Error(kind) => Some(Ending::Error(kind.clone())),
            Answer::Nothing if self.refused_by_nothing[kind] => Some(Ending::Refused),
            Answer::Nothing if round_trip + 1 == self.round_trips[kind] => {
                Some(Ending::Empty(parameters[KEY]))
            }
            Answer::Done(_) | Answer::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn scripts() -> Scripts {
        Scripts::new(Keys::Session, 3, "run")
    }

    #[test]
    fn every_named_workload_can_be_made() {
        for (name, commands, _) in NAMED {
            let scripts = scripts().with_named(name, 1).unwrap();
            assert_eq!(scripts.kinds()[0].round_trips.len(), commands.len());
            assert_eq!(scripts.statements(0).len(), commands.len());
        }
        let error = scripts().with_named("gte", 1);
        assert!(error.unwrap_err().to_string().contains("one of ping, get"));
    }

    #[test]
    fn each_transaction_of_a_session_has_its_parameters() {
        let scripts = scripts().with_named("set", 1).unwrap();
        let mut generator = scripts.generator(42);
        let mut random = SmallRng::seed_from_u64(1);
        assert_eq!(generator.begin(0, &mut random), [42, 42, 0].into());
        assert_eq!(generator.begin(0, &mut random), [42, 42, 1].into());
    }

    #[test]
    fn the_last_answer_of_a_transaction_says_whether_it_is_empty() {
        let commands = ["GET {key}", "GET {key}"];
        let scripts = scripts().with("custom", 1, &commands).unwrap();
        let mut generator = scripts.generator(0);
        let mut parameters = Parameters::default();
        let mut answered =
            |round_trip| generator.answered(0, round_trip, &mut parameters, &Answer::Nothing);
        assert_eq!(answered(0), None, "the other one follows");
        assert_eq!(answered(1), Some(Ending::Empty(0)));
    }

    #[test]
    fn a_key_is_named_as_the_last_command_asks_for_it() {
        let key = |command: &str| {
            let scripts = scripts().with("custom", 1, &["PING", command]).unwrap();
            scripts.key(0, 17)
        };
        assert_eq!(key("GET user:{n}").as_deref(), Some("user:17"));
        assert_eq!(key("HGET {n:4}:a {session}").as_deref(), Some("0017:a"));
        assert_eq!(key("GET {key}").as_deref(), Some("key:000000000017"));
        assert_eq!(key("GET it"), None);
    }

    #[test]
    fn a_lock_that_is_taken_is_refused_and_a_key_that_is_not_there_is_not() {
        let scripts = scripts()
            .with_named("set-nx-del", 1)
            .and_then(|it| it.with_named("get", 1))
            .unwrap();
        let mut generator = scripts.generator(0);
        let mut parameters = Parameters::default();
        let mut answered = |kind, answer| generator.answered(kind, 0, &mut parameters, &answer);
        assert_eq!(answered(0, Answer::Nothing), Some(Ending::Refused));
        assert_eq!(answered(1, Answer::Nothing), Some(Ending::Empty(0)));
        assert_eq!(answered(1, Answer::Done(None)), None);
        let error = Answer::Error("BUSY".to_owned());
        assert_eq!(answered(1, error), Some(Ending::Error("BUSY".to_owned())));
    }
}
