//! Parses words into a command.

#[cfg(test)]
mod tests;

use crate::command::statement::{AnswerForm, Command, Field, Refusal, Sums, Wanted, Words};
use crate::definition::{FileDefinition, Key, Segment, SegmentKind};
use crate::session::{LockBias, TransactionKind};

/// The largest number of records of one reply.
const MANY_MAX: usize = 10_000;
/// The largest number of 12 digits.
const NUMBER_MAX: usize = 999_999_999_999;
const READS: &str = "EQUAL, GREATER, ATLEAST, LESS, ATMOST, FIRST, LAST, NEXT, PREVIOUS";

impl Command {
    /// Parses the words of a statement.
    ///
    /// # Errors
    /// If they are no statement: what is wrong, and what is expected.
    pub fn parse(words: &(impl Words + ?Sized)) -> Result<Self, Refusal> {
        let mut rest = Rest::of(words);
        let command = rest.command()?;
        match rest.next() {
            None => Ok(command),
            Some(at) => Err(usage(format!(
                "unexpected '{}' after the end",
                rest.shown(at)
            ))),
        }
    }
}

impl<W: Words + ?Sized> Rest<'_, W> {
    fn command(&mut self) -> Result<Command, Refusal> {
        let name = self.need("an operation")?;
        let capitals = self.word(name).to_ascii_uppercase();
        Ok(match &capitals[..] {
            b"GET" => return self.get(),
            b"CREATE" => return self.create(),
            b"INSERT" => {
                let (file, record) = (self.file()?, self.need("a record")?);
                Command::Insert { file, record }
            }
            b"UPDATE" => {
                let (file, record) = (self.file()?, self.need("a record")?);
                Command::Update { file, record }
            }
            b"BEGIN" if self.take("EXCLUSIVE") => Command::Begin(TransactionKind::Exclusive),
            b"BEGIN" => {
                self.take("CONCURRENT");
                Command::Begin(TransactionKind::Concurrent)
            }
            b"END" => Command::End,
            b"ABORT" => Command::Abort,
            b"CHECKPOINT" => Command::Checkpoint,
            b"DELETE" => Command::Delete { file: self.file()? },
            b"OPEN" => Command::Open { file: self.file()? },
            b"UNLOCK" => Command::Unlock { file: self.file()? },
            b"POSITION" => Command::Position { file: self.file()? },
            b"STAT" => Command::Stat { file: self.file()? },
            b"FILL" => {
                let file = self.file()?;
                let (first, last) = (self.bound_of_range()?, self.bound_of_range()?);
                let rest = self.need("the rest of a record")?;
                Command::Fill {
                    file,
                    first,
                    last,
                    rest,
                }
            }
            b"DROP" => Command::Drop { file: self.file()? },
            b"COUNT" => Command::Count { file: self.file()? },
            b"FILES" => Command::Files {
                prefix: self.need("the beginning of names")?,
            },
            b"SUM" => {
                let (file, field) = (self.file()?, self.field(20)?);
                Command::Sum { file, field }
            }
            b"COMPARE" => {
                let first = self.sums()?;
                if !self.take("WITH") {
                    return Err(usage(
                        "COMPARE needs WITH before what it compares".to_owned(),
                    ));
                }
                Command::Compare([first, self.sums()?])
            }
            _ => {
                let name = self.shown(name);
                return Err(usage(format!("'{name}' is not an operation on records")));
            }
        })
    }

    fn get(&mut self) -> Result<Command, Refusal> {
        let which = self.need(READS)?;
        let file = self.file()?;
        let capitals = self.word(which).to_ascii_uppercase();
        let wanted = match &capitals[..] {
            b"EQUAL" => Wanted::Equal(self.key()?, self.value()?),
            b"GREATER" => Wanted::Greater(self.key()?, self.value()?),
            b"ATLEAST" => Wanted::AtLeast(self.key()?, self.value()?),
            b"LESS" => Wanted::Less(self.key()?, self.value()?),
            b"ATMOST" => Wanted::AtMost(self.key()?, self.value()?),
            b"FIRST" => Wanted::First(self.key()?),
            b"LAST" => Wanted::Last(self.key()?),
            b"NEXT" => Wanted::Next,
            b"PREVIOUS" => Wanted::Previous,
            _ => {
                let which = self.shown(which);
                return Err(usage(format!("GET '{which}': it is one of {READS}")));
            }
        };
        let mut answer = AnswerForm::Record;
        if matches!(wanted, Wanted::Next | Wanted::Previous) && self.take("COUNT") {
            answer = AnswerForm::Many(self.number("a number of records", 1, MANY_MAX)?);
        }
        let bias = self.bias();
        if answer == AnswerForm::Record && self.take("FIELD") {
            answer = AnswerForm::Field(self.field(20)?);
        }
        Ok(Command::Get {
            file,
            wanted,
            bias,
            answer,
        })
    }

    /// A field of at most so many bytes.
    fn field(&mut self, most: usize) -> Result<Field, Refusal> {
        let offset = self.number("the first byte of a field", 0, usize::MAX)?;
        let bytes = self.number("the length of a field", 1, most)?;
        Ok(Field { offset, bytes })
    }

    fn sums(&mut self) -> Result<Sums, Refusal> {
        let (file, field) = (self.file()?, self.field(20)?);
        let by = match self.take("BY") {
            true => Some(self.field(255)?),
            false => None,
        };
        Ok(Sums { file, field, by })
    }

    fn bias(&mut self) -> LockBias {
        let single = self.take("SINGLE");
        if !single && !self.take("MULTIPLE") {
            return LockBias::None;
        }
        match (single, self.take("NOWAIT")) {
            (true, false) => LockBias::SingleWait,
            (true, true) => LockBias::SingleNoWait,
            (false, false) => LockBias::MultipleWait,
            (false, true) => LockBias::MultipleNoWait,
        }
    }

    fn create(&mut self) -> Result<Command, Refusal> {
        let file = self.file()?;
        let bytes = self.number("the length of a record", 1, usize::from(u16::MAX))?;
        let mut keys = Vec::new();
        while self.take("KEY") {
            let at = self.need("segments as in 0:12:text")?;
            let segments = self.shown(at);
            let segments: Option<Vec<Segment>> = segments.split(',').map(segment).collect();
            let segments = segments.ok_or_else(|| {
                usage(format!(
                    "'{}' is not a key: write offset:bytes:kind[,…] with text, unsigned or integer",
                    self.shown(at)
                ))
            })?;
            let duplicates = self.take("DUPLICATES");
            keys.push(Key {
                segments,
                duplicates,
            });
        }
        let definition = FileDefinition {
            record_bytes: bytes as u16,
            keys,
        };
        Ok(Command::Create { file, definition })
    }

    fn file(&mut self) -> Result<usize, Refusal> {
        self.need("the name of a file")
    }

    fn key(&mut self) -> Result<usize, Refusal> {
        self.number("the number of a key", 0, usize::MAX)
    }

    fn bound_of_range(&mut self) -> Result<u64, Refusal> {
        let number = self.number("a number of a range", 0, NUMBER_MAX)?;
        Ok(number as u64)
    }

    fn value(&mut self) -> Result<usize, Refusal> {
        self.need("a key value")
    }
}

fn segment(text: &str) -> Option<Segment> {
    let mut parts = text.split(':');
    let segment = Segment {
        offset: parts.next()?.parse().ok()?,
        bytes: parts.next()?.parse().ok()?,
        kind: match parts.next()? {
            "text" => SegmentKind::Bytes,
            "unsigned" => SegmentKind::Unsigned,
            "integer" => SegmentKind::Integer,
            _ => return None,
        },
    };
    parts.next().is_none().then_some(segment)
}

/// The words that are not parsed yet.
struct Rest<'a, W: ?Sized> {
    words: &'a W,
    at: usize,
}

impl<'a, W: Words + ?Sized> Rest<'a, W> {
    fn of(words: &'a W) -> Self {
        Self { words, at: 0 }
    }

    /// The index of the next word.
    fn next(&mut self) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        (at < self.words.count()).then_some(at)
    }

    /// The index of the next word, which is required.
    fn need(&mut self, what: &str) -> Result<usize, Refusal> {
        self.next()
            .ok_or_else(|| usage(format!("the statement ends where {what} is expected")))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.words.word(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Skips a word if it is the next one.
    fn take(&mut self, word: &str) -> bool {
        let found = self.is(self.at, word);
        self.at += usize::from(found);
        found
    }

    /// Parses a number in this range.
    fn number(&mut self, what: &str, least: usize, most: usize) -> Result<usize, Refusal> {
        let at = self.need(what)?;
        let text = std::str::from_utf8(self.words.word(at)).ok();
        let number = text.and_then(|it| it.parse().ok());
        let number = number.filter(|it| (least..=most).contains(it));
        number.ok_or_else(|| usage(format!("'{}' is not {what}", self.shown(at))))
    }

    /// A word, shortened for a message.
    fn shown(&self, at: usize) -> String {
        let word = self.words.word(at);
        String::from_utf8_lossy(&word[..word.len().min(2000)]).into_owned()
    }

    /// The word at an index.
    fn word(&self, at: usize) -> &[u8] {
        self.words.word(at)
    }
}

fn usage(text: String) -> Refusal {
    Refusal::Usage(text)
}
