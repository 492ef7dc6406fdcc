//! Results of commands: an OK, an error, or rows; several of them for several statements.

use super::packet::Fields;
use crate::workload::Answer;

const OK: u8 = 0x00;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
const FILE: u8 = 0xfb;
/// An end of columns or rows is shorter than this; a row that begins with the same byte is longer.
const END_BYTES: usize = 9;
/// "Server Status Flags", in an OK and an end.
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 1 << 3;
/// A flag of a column.
const UNSIGNED: u16 = 1 << 5;

/// An error of the server ("ERR_Packet").
#[derive(Debug, PartialEq, Eq)]
pub struct ServerError {
    pub code: u16,
    state: Option<String>,
    text: String,
}

impl ServerError {
    /// From a payload; `None` if it is none.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload.strip_prefix(&[ERROR])?);
        let code = fields.integer(2)? as u16;
        let mut state = None;
        if let Some(rest) = fields.0.strip_prefix(b"#") {
            fields.0 = rest;
            state = Some(String::from_utf8_lossy(fields.bytes(5)?).into_owned());
        }
        let text = String::from_utf8_lossy(fields.0).into_owned();
        Some(Self { code, state, text })
    }

    /// The kind of the error: its code, with a name or the SQLSTATE.
    pub fn kind(&self) -> String {
        let name = match self.code {
            1205 => "lock wait timeout",
            1213 => "deadlock",
            _ => self.state.as_deref().unwrap_or("HY000"),
        };
        format!("{} {name}", self.code)
    }

    /// Whether the server closes the connection after it: because it is shut down, or because this
    /// connection was killed or idle for too long.
    pub fn ends_connection(&self) -> bool {
        matches!(self.code, 1053 | 1927 | 3169 | 4031)
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(to, "{} {}", self.code, self.text)
    }
}

/// A prepared statement ("COM_STMT_PREPARE_OK").
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    pub id: u32,
    pub parameters: usize,
    /// Packets about its parameters and columns, which follow.
    pub packets: usize,
}

impl Prepared {
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload.strip_prefix(&[OK])?);
        let id = fields.integer(4)? as u32;
        let columns = fields.integer(2)? as usize;
        let parameters = fields.integer(2)? as usize;
        // Each list has an end.
        let list = |length: usize| length + usize::from(length > 0);
        Some(Self {
            id,
            parameters,
            packets: list(columns) + list(parameters),
        })
    }
}

/// What must be known of a command to read its results.
#[derive(Debug, Default, Clone, Copy)]
pub struct Command {
    /// Rows come in binary, as for prepared statements, not as text.
    pub binary: bool,
    /// Its last statement changes rows.
    pub changes: bool,
}

/// Reads the results of one command, packet by packet.
#[derive(Debug, Default)]
pub struct Results {
    command: Command,
    stage: Stage,
    columns: usize,
    first: Column,
    rows: u64,
    /// In the first column of the first row.
    number: Option<i64>,
    /// By the last status of the server.
    pub in_transaction: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum Stage {
    #[default]
    Begin,
    /// So many column definitions are still to come, and then their end.
    Columns(usize),
    Rows,
}

#[derive(Debug, Default, Clone, Copy)]
struct Column {
    kind: u8,
    unsigned: bool,
}

/// The meaning of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// More is to come.
    More,
    /// The answer to all statements of the command: of the last, or the first error.
    Answer(Answer),
    Error(ServerError),
}

impl Results {
    /// Begins with the results of the next command.
    pub fn begin(&mut self, command: Command) {
        self.command = command;
        self.stage = Stage::Begin;
    }

    /// Reads the next packet; `None` if it is not understood.
    pub fn read(&mut self, payload: &[u8]) -> Option<Read> {
        let first = *payload.first()?;
        if first == ERROR && !matches!(self.stage, Stage::Columns(_)) {
            return ServerError::parse(payload).map(Read::Error);
        }
        match self.stage {
            Stage::Begin if first == OK => {
                let mut fields = Fields(&payload[1..]);
                let changed = fields.length()??;
                fields.length()??; // number of a new row
                let status = fields.integer(2)? as u16;
                let answer = match self.command.changes && changed == 0 {
                    true => Answer::Nothing,
                    false => Answer::Done(None),
                };
                Some(self.end(status, answer))
            }
            Stage::Begin if first == FILE || first == END => None,
            Stage::Begin => {
                self.columns = Fields(payload).length()?? as usize;
                (self.rows, self.number) = (0, None);
                self.stage = Stage::Columns(self.columns);
                Some(Read::More)
            }
            Stage::Columns(0) => {
                self.stage = Stage::Rows;
                (first == END).then_some(Read::More)
            }
            Stage::Columns(left) => {
                if left == self.columns {
                    self.first = Column::parse(payload)?;
                }
                self.stage = Stage::Columns(left - 1);
                Some(Read::More)
            }
            Stage::Rows if first == END && payload.len() < END_BYTES => {
                let mut fields = Fields(&payload[1..]);
                fields.bytes(2)?; // warnings
                let status = fields.integer(2)? as u16;
                let answer = match self.rows {
                    0 => Answer::Nothing,
                    _ => Answer::Done(self.number),
                };
                Some(self.end(status, answer))
            }
            Stage::Rows => {
                if self.rows == 0 {
                    self.number = match self.command.binary {
                        true => self.first.number_in_row(payload, self.columns)?,
                        false => Fields(payload).text()?.and_then(number_in_text),
                    };
                }
                self.rows += 1;
                Some(Read::More)
            }
        }
    }

    fn end(&mut self, status: u16, answer: Answer) -> Read {
        self.in_transaction = status & IN_TRANSACTION != 0;
        self.stage = Stage::Begin;
        match status & MORE_RESULTS {
            0 => Read::Answer(answer),
            _ => Read::More,
        }
    }
}

impl Column {
    /// From "Column Definition".
    fn parse(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        for _ in 0..6 {
            fields.text()?; // names
        }
        fields.bytes(7)?; // length of the rest, collation, width
        let kind = fields.integer(1)? as u8;
        let unsigned = fields.integer(2)? as u16 & UNSIGNED != 0;
        Some(Self { kind, unsigned })
    }

    /// The value of this first column, if it is a whole number; outer `None` if the row is not
    /// understood ("Binary Protocol Resultset Row").
    fn number_in_row(self, payload: &[u8], columns: usize) -> Option<Option<i64>> {
        let mut fields = Fields(payload);
        fields.bytes(1)?;
        // The first two bits are unused.
        let nulls = fields.bytes((columns + 9) / 8)?;
        if nulls[0] & 1 << 2 != 0 {
            return Some(None);
        }
        let bytes = match self.kind {
            1 => 1,
            2 | 13 => 2,
            3 | 9 => 4,
            8 => 8,
            // Floating-point numbers and times.
            4..=7 | 10..=12 => return Some(None),
            _ => return Some(fields.text()?.and_then(number_in_text)),
        };
        let value = fields.integer(bytes)?;
        let unused = 64 - 8 * bytes as u32;
        Some(match self.unsigned {
            true => i64::try_from(value).ok(),
            false => Some(((value << unused) as i64) >> unused),
        })
    }
}

fn number_in_text(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
