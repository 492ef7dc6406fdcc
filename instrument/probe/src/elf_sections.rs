//! The sections of a program's file of ELF's 64 bits and the addresses of some of its symbols, read piece by
//! piece: programs may be large, and are looked at while they are measured.

/// Larger tables of symbols are not read.
const SYMBOLS_BYTES_MAX: u64 = 64 << 20;
const HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
/// The type of a file that may be loaded anywhere.
const RELATIVE: u64 = 3;

/// The sections of a file. `Read` reads so many bytes of it, from an offset on.
#[derive(Debug)]
pub struct ElfSections<Read> {
    read: Read,
    headers: Vec<u8>,
    count: usize,
    names: Vec<u8>,
    is_relative: bool,
}

/// Where something stands, by the file's own addresses; `address` is 0 if the file lacks it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElfSymbol {
    pub address: u64,
    pub bytes: u64,
}

impl<Read: Fn(u64, usize) -> Option<Vec<u8>>> ElfSections<Read> {
    /// None if it is no program of 64 bits, the least byte first.
    pub fn open(read: Read) -> Option<Self> {
        let head = read(0, HEADER_BYTES)?;
        if head.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let (at, size) = (number(&head, 40, 8)?, number(&head, 58, 2)? as usize);
        let count = number(&head, 60, 2)? as usize;
        let names = number(&head, 62, 2)? as usize;
        if size != HEADER_BYTES || names >= count {
            return None;
        }
        let headers = read(at, HEADER_BYTES * count)?;
        let mut sections = Self {
            is_relative: number(&head, 16, 2)? == RELATIVE,
            read,
            headers,
            count,
            names: Vec::new(),
        };
        sections.names = sections.content(names)?;
        Some(sections)
    }

    /// Whether it may be loaded anywhere, and addresses are relative to that place.
    pub fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// Whether it has a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// The symbols of these names, in their order, by the table of this name; none if there is no such table or
    /// if it cannot be read.
    pub fn symbols(&self, table: &str, wanted: &[&str]) -> Option<Vec<ElfSymbol>> {
        let table = self.index(table)?;
        let symbols = self.content(table)?;
        let texts = self.content(self.field(table, 40, 4)? as usize)?;
        let mut found = vec![ElfSymbol::default(); wanted.len()];
        for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
            let name = text(&texts, number(symbol, 0, 4)? as usize);
            if let Some(index) = wanted.iter().position(|it| name == Some(it)) {
                found[index] = ElfSymbol {
                    address: number(symbol, 8, 8)?,
                    bytes: number(symbol, 16, 8)?,
                };
            }
        }
        Some(found)
    }

    fn index(&self, wanted: &str) -> Option<usize> {
        let name = |it: usize| text(&self.names, self.field(it, 0, 4)? as usize);
        (0..self.count).find(|it| name(*it) == Some(wanted))
    }

    fn field(&self, section: usize, at: usize, length: usize) -> Option<u64> {
        let section = section.checked_mul(HEADER_BYTES)?;
        number(&self.headers, section.checked_add(at)?, length)
    }

    fn content(&self, section: usize) -> Option<Vec<u8>> {
        let (at, bytes) = (self.field(section, 24, 8)?, self.field(section, 32, 8)?);
        (bytes <= SYMBOLS_BYTES_MAX).then(|| (self.read)(at, bytes as usize))?
    }
}

/// A number of so many bytes, the least first.
pub fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |all, byte| (all << 8) | u64::from(*byte)),
    )
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
