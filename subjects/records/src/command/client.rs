//! Executes commands in a session.

use hashbrown::HashMap;

use crate::command::audit;
use crate::command::statement::{
    AnswerForm, Command, MANY_BYTES_MAX, Refusal, Reply, Wanted, Words,
};
use crate::session::{FileHandle, Get, LockBias, Session};
use crate::status::Status;

/// A session that executes commands. It opens each file when it is first named; each has one
/// position.
pub struct Client {
    pub(super) session: Session,
    files: HashMap<Box<[u8]>, FileHandle>,
    /// The records of a reply with several.
    many: Vec<u8>,
    record_bytes: usize,
    /// A command of several operations waits for a lock; its repetition continues after those done.
    pub(super) is_unfinished: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let files = self.files.len();
        out.debug_struct("Client").field("files", &files).finish()
    }
}

impl Client {
    pub fn new(session: Session) -> Self {
        Self {
            session,
            files: HashMap::new(),
            many: Vec::new(),
            record_bytes: 0,
            is_unfinished: false,
        }
    }

    /// How often the session has waited for a lock.
    pub fn lock_waits(&self) -> u64 {
        self.session.lock_waits()
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Executes a command with these words.
    ///
    /// # Errors
    /// The status of the operation, or an invalid definition or number.
    pub fn execute(
        &mut self,
        command: &Command,
        words: &(impl Words + ?Sized),
    ) -> Result<Reply<'_>, Refusal> {
        let session = &mut self.session;
        match command {
            Command::Get {
                file,
                wanted,
                bias,
                answer,
            } => return self.get(words, *file, *wanted, *bias, *answer),
            Command::Update { file, record } => {
                let file = self.file(words.word(*file))?;
                self.session.update(file, words.word(*record))?;
            }
            Command::Insert { file, record } => {
                let file = self.file(words.word(*file))?;
                self.session.insert(file, words.word(*record))?;
            }
            Command::Delete { file } => {
                let file = self.file(words.word(*file))?;
                self.session.delete(file)?;
            }
            Command::Begin(kind) => session.begin(*kind)?,
            Command::End => session.end()?,
            Command::Abort => session.abort()?,
            Command::Unlock { file } => {
                let file = self.file(words.word(*file))?;
                self.session.unlock(file)?;
            }
            Command::Open { file } => {
                self.file(words.word(*file))?;
            }
            Command::Position { file } => {
                let file = self.file(words.word(*file))?;
                return Ok(Reply::Number(self.session.position(file)? as i64));
            }
            Command::Stat { file } => {
                let file = self.file(words.word(*file))?;
                return Ok(Reply::Figures(self.session.stat(file)?.into()));
            }
            Command::Count { file } => {
                let file = self.file(words.word(*file))?;
                return Ok(Reply::Number(audit::count(&self.session, file)?));
            }
            Command::Sum { file, field } => {
                let file = self.file(words.word(*file))?;
                return Ok(Reply::Number(audit::sum(&self.session, file, *field)?));
            }
            Command::Compare(both) => {
                let [one, other] = both.map(|it| (self.file(words.word(it.file)), it));
                let groups = audit::groups(&self.session, one.0?, one.1)?;
                let others = audit::groups(&self.session, other.0?, other.1)?;
                return Ok(Reply::Number(audit::differing(&groups, &others)));
            }
            Command::Files { prefix } => {
                let names = session.files();
                let prefix = words.word(*prefix);
                let found = names.iter().filter(|it| it.as_bytes().starts_with(prefix));
                return Ok(Reply::Number(found.count() as i64));
            }
            Command::Fill {
                file,
                first,
                last,
                rest,
            } => {
                let file = self.file(words.word(*file))?;
                self.fill(file, *first..=*last, words.word(*rest))?;
            }
            Command::Drop { file } => {
                return Ok(Reply::Number(self.drop_files(words.word(*file))?));
            }
            Command::Create { file, definition } => self.create(words.word(*file), definition)?,
            Command::Checkpoint => session.request_checkpoint()?,
        }
        Ok(match self.session.is_unconfirmed() {
            true => Reply::Unconfirmed,
            false => Reply::Done,
        })
    }

    fn file(&mut self, name: &[u8]) -> Result<FileHandle, Status> {
        match self.files.get(name) {
            Some(file) if !self.session.is_dropped(*file) => return Ok(*file),
            _ => {}
        }
        let text = std::str::from_utf8(name).map_err(|_| Status::FileNotFound)?;
        let file = self.session.open(text)?;
        self.files.insert(name.into(), file);
        Ok(file)
    }

    fn get(
        &mut self,
        words: &(impl Words + ?Sized),
        file: usize,
        wanted: Wanted,
        bias: LockBias,
        answer: AnswerForm,
    ) -> Result<Reply<'_>, Refusal> {
        let file = self.file(words.word(file))?;
        let get = wanted.with(words);
        if let AnswerForm::Many(most) = answer {
            return self.get_many(file, get, bias, most);
        }
        let record = self.session.get(file, get, bias)?;
        match answer {
            AnswerForm::Field(field) => Ok(Reply::Field(record, field.number(record)?)),
            _ => Ok(Reply::Record(record)),
        }
    }

    fn get_many(
        &mut self,
        file: FileHandle,
        get: Get,
        bias: LockBias,
        most: usize,
    ) -> Result<Reply<'_>, Refusal> {
        if !std::mem::take(&mut self.is_unfinished) {
            self.many.clear();
            self.record_bytes = 0;
        }
        while self.many.len() < most * self.record_bytes.max(1)
            && self.many.len() + self.record_bytes <= MANY_BYTES_MAX
        {
            match self.session.get(file, get, bias) {
                Ok(record) => {
                    self.record_bytes = record.len();
                    self.many.extend_from_slice(record);
                }
                Err(Status::EndOfFile) if !self.many.is_empty() => break,
                Err(status) => {
                    self.is_unfinished = status == Status::Waiting;
                    return Err(status.into());
                }
            }
        }
        Ok(Reply::Many {
            records: &self.many,
            record_bytes: self.record_bytes,
        })
    }
}

impl Wanted {
    fn with(self, words: &(impl Words + ?Sized)) -> Get<'_> {
        match self {
            Wanted::Equal(key, value) => Get::Equal(key, words.word(value)),
            Wanted::Greater(key, value) => Get::Greater(key, words.word(value)),
            Wanted::AtLeast(key, value) => Get::AtLeast(key, words.word(value)),
            Wanted::Less(key, value) => Get::Less(key, words.word(value)),
            Wanted::AtMost(key, value) => Get::AtMost(key, words.word(value)),
            Wanted::First(key) => Get::First(key),
            Wanted::Last(key) => Get::Last(key),
            Wanted::Next => Get::Next,
            Wanted::Previous => Get::Previous,
        }
    }
}
