//! Words → a command.

use crate::command::{AnswerForm, Command, Field, Refusal, Sums, Wanted, Words};
use crate::definition::{FileDefinition, Key, Segment, SegmentKind};
use crate::session::{LockBias, TransactionKind};

/// Most records of one answer.
const MANY_MAX: usize = 10_000;
/// Numbers that go into the characters of one.
const NUMBER_MAX: usize = 999_999_999_999;
const READS: &str = "EQUAL, GREATER, ATLEAST, LESS, ATMOST, FIRST, LAST, NEXT, PREVIOUS";

impl Command {
    /// Reads the words of a statement.
    ///
    /// # Errors
    /// They are not one: what is wrong, and what would be right.
    pub fn parse(words: &(impl Words + ?Sized)) -> Result<Self, Refusal> {
        let mut rest = Rest { words, at: 0 };
        let command = rest.command()?;
        match rest.next() {
            None => Ok(command),
            Some(at) => Err(usage(format!("'{}' is one word too many", rest.shown(at)))),
        }
    }
}

/// What is left to be read.
struct Rest<'a, W: ?Sized> {
    words: &'a W,
    at: usize,
}

impl<W: Words + ?Sized> Rest<'_, W> {
    fn command(&mut self) -> Result<Command, Refusal> {
        let name = self.need("an operation")?;
        let capitals = self.words.word(name).to_ascii_uppercase();
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
                let (first, last) = (self.place_in_range()?, self.place_in_range()?);
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
                return Err(usage(format!("'{name}' is no operation on records")));
            }
        })
    }

    fn get(&mut self) -> Result<Command, Refusal> {
        let which = self.need(READS)?;
        let file = self.file()?;
        let capitals = self.words.word(which).to_ascii_uppercase();
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

    /// A field of so many bytes at most.
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
                    "'{}' is no key: write offset:bytes:kind[,…] with text, unsigned or integer",
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

    fn place_in_range(&mut self) -> Result<u64, Refusal> {
        let number = self.number("a number of a range", 0, NUMBER_MAX)?;
        Ok(number as u64)
    }

    fn value(&mut self) -> Result<usize, Refusal> {
        self.need("a key value")
    }

    fn next(&mut self) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        (at < self.words.count()).then_some(at)
    }

    fn need(&mut self, what: &str) -> Result<usize, Refusal> {
        self.next()
            .ok_or_else(|| usage(format!("the statement ends where {what} is needed")))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.words.word(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Passes a word if it is the next one.
    fn take(&mut self, word: &str) -> bool {
        let found = self.is(self.at, word);
        self.at += usize::from(found);
        found
    }

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

fn usage(text: String) -> Refusal {
    Refusal::Usage(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command, Refusal> {
        let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
        Command::parse(&words[..])
    }

    #[test]
    fn reads_and_their_options() {
        let get = |text: &str| match parse(text).unwrap() {
            Command::Get {
                file: 2,
                wanted,
                bias,
                answer,
            } => (wanted, bias, answer),
            other => panic!("{text}: {other:?}"),
        };
        let record = AnswerForm::Record;
        let field = AnswerForm::Field(Field {
            offset: 24,
            bytes: 12,
        });
        for (text, expected) in [
            (
                "GET EQUAL f 0 v",
                (Wanted::Equal(0, 4), LockBias::None, record),
            ),
            (
                "get atmost f 3 v single",
                (Wanted::AtMost(3, 4), LockBias::SingleWait, record),
            ),
            (
                "GET GREATER f 0 v SINGLE NOWAIT FIELD 24 12",
                (Wanted::Greater(0, 4), LockBias::SingleNoWait, field),
            ),
            (
                "GET FIRST f 1 MULTIPLE",
                (Wanted::First(1), LockBias::MultipleWait, record),
            ),
            (
                "GET LAST f 1 MULTIPLE NOWAIT",
                (Wanted::Last(1), LockBias::MultipleNoWait, record),
            ),
            (
                "GET NEXT f COUNT 7",
                (Wanted::Next, LockBias::None, AnswerForm::Many(7)),
            ),
            (
                "GET PREVIOUS f FIELD 24 12",
                (Wanted::Previous, LockBias::None, field),
            ),
        ] {
            assert_eq!(get(text), expected, "{text}");
        }
    }

    #[test]
    fn files_are_defined_by_words() {
        let command = parse("CREATE f 36 KEY 0:12:text KEY 12:4:unsigned,16:8:integer DUPLICATES");
        let Command::Create { file, definition } = command.unwrap() else {
            panic!("no file");
        };
        assert_eq!((file, definition.record_bytes), (1, 36));
        let first = Key::unique(0, 12, SegmentKind::Bytes);
        let second = Key {
            segments: vec![
                Segment {
                    offset: 12,
                    bytes: 4,
                    kind: SegmentKind::Unsigned,
                },
                Segment {
                    offset: 16,
                    bytes: 8,
                    kind: SegmentKind::Integer,
                },
            ],
            duplicates: true,
        };
        assert_eq!(definition.keys, [first, second]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "ends where an operation is needed"),
            ("FETCH f", "'FETCH' is no operation"),
            ("GET SAME f", "GET 'SAME': it is one of EQUAL"),
            ("GET EQUAL f x v", "'x' is not the number of a key"),
            ("GET EQUAL f 0", "ends where a key value is needed"),
            ("GET EQUAL f 0 v COUNT 3", "'COUNT' is one word too many"),
            ("GET NEXT f COUNT 0", "'0' is not a number of records"),
            ("GET NEXT f FIELD 0 21", "'21' is not the length of a field"),
            ("INSERT f", "ends where a record is needed"),
            ("END now", "'now' is one word too many"),
            (
                "CREATE f 9 KEY 0:4",
                "'0:4' is no key: write offset:bytes:kind",
            ),
            (
                "CREATE f 99999999",
                "'99999999' is not the length of a record",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.word(), "ERR");
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
