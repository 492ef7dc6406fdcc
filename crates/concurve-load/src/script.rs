//! What a transaction says to the server: one command after the other, from templates.
//!
//! `SET {key} {value} NX PX 10000` is a command; words are split at blanks. Placeholders:
//! `{key}`, `{value}` (as many bytes as asked for), `{session}`, `{count}` (of the session's
//! transactions).

/// A kind of transaction: commands that are sent one after the other, each when the reply to
/// the one before has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub name: String,
    /// How often it is chosen, compared with the other scripts of the mix.
    pub weight: u32,
    pub commands: Vec<Command>,
    /// A nil reply ends the transaction: it was refused.
    pub ends_at_nil: bool,
}

/// Words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<Word>,
}

/// Pieces of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(Vec<u8>),
    Key,
    Value,
    Session,
    Count,
}

/// Why a command cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error("an empty command: write one like 'SET {{key}} {{value}}'")]
    Empty,
    #[error("{word:?}: unknown placeholder {name:?}; there are key, value, session and count")]
    Placeholder { word: String, name: String },
    #[error("{word:?}: a brace that is not closed")]
    Brace { word: String },
    #[error("no workload {name:?}; one of {known}, or commands of your own by --command")]
    Unknown { name: String, known: String },
}

/// Workloads that go by a name.
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

impl Script {
    /// A transaction of the commands given.
    pub fn of(name: &str, weight: u32, commands: &[&str]) -> Result<Self, ScriptError> {
        let commands: Result<Vec<_>, _> = commands.iter().map(|it| Command::parse(it)).collect();
        Ok(Self {
            name: name.to_owned(),
            weight,
            commands: commands?,
            ends_at_nil: false,
        })
    }

    /// A workload by its name.
    pub fn named(name: &str, weight: u32) -> Result<Self, ScriptError> {
        let found = NAMED.iter().find(|(known, _, _)| *known == name);
        let (_, commands, ends_at_nil) = found.ok_or_else(|| ScriptError::Unknown {
            name: name.to_owned(),
            known: NAMED.map(|(known, _, _)| known).join(", "),
        })?;
        let script = Self::of(name, weight, commands)?;
        Ok(Self {
            ends_at_nil: *ends_at_nil,
            ..script
        })
    }
}

impl Command {
    /// Splits a template into words and pieces.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let words: Result<Vec<_>, _> = text.split_ascii_whitespace().map(Word::parse).collect();
        let words = words?;
        match words.is_empty() {
            true => Err(ScriptError::Empty),
            false => Ok(Self { words }),
        }
    }
}

impl Word {
    fn parse(word: &str) -> Result<Self, ScriptError> {
        let mut pieces = Vec::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else {
                return Err(ScriptError::Brace {
                    word: word.to_owned(),
                });
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.as_bytes().to_vec()));
            }
            pieces.push(match name {
                "key" => Piece::Key,
                "value" => Piece::Value,
                "session" => Piece::Session,
                "count" => Piece::Count,
                _ => {
                    return Err(ScriptError::Placeholder {
                        word: word.to_owned(),
                        name: name.to_owned(),
                    });
                }
            });
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.as_bytes().to_vec()));
        }
        Ok(Self { pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_words_of_pieces() {
        let command = Command::parse("SET  lock:{key}:x {value} PX 10").unwrap();
        let text = |text: &str| Piece::Text(text.as_bytes().to_vec());
        assert_eq!(command.words.len(), 5);
        assert_eq!(
            command.words[1].pieces,
            [text("lock:"), Piece::Key, text(":x")]
        );
        assert_eq!(command.words[2].pieces, [Piece::Value]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(Command::parse(" "), Err(ScriptError::Empty));
        let unknown = Command::parse("GET {kye}").unwrap_err().to_string();
        assert!(unknown.contains("\"kye\""));
        let open = Command::parse("GET {key").unwrap_err().to_string();
        assert!(open.contains("not closed"));
        let workload = Script::named("gte", 1).unwrap_err().to_string();
        assert!(workload.contains("get"));
    }

    #[test]
    fn every_named_workload_parses() {
        for (name, commands, _) in NAMED {
            assert_eq!(
                Script::named(name, 1).unwrap().commands.len(),
                commands.len()
            );
        }
    }
}
