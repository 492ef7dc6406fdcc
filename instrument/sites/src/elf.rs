//! One file of a program: its functions, its call frame information, its lines.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile64, ElfSymbolIterator, Sym};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef,
    RelocationTarget, SectionIndex, SegmentFlags, SymbolKind,
};

use crate::calls::{self, CALL_BYTES_MAX, Target};
use crate::cfi::{Frames, Section, Sections};
use crate::maps::Mapping;
use crate::names;

/// Where distributions keep debug information apart from programs.
const DEBUG_FOLDER: &str = "/usr/lib/debug";
/// Bytes of an entry of a procedure linkage table that are looked at.
const LINKAGE_BYTES: usize = 16;
/// Longest line of inlined functions that is followed.
const INLINED_MAX: usize = 64;
const PAGE_BYTES: u64 = 4096;
/// Bytes of a function that are searched for calls.
const BODY_BYTES_MAX: u64 = 64 << 10;
/// In the names of functions that wake all threads that wait at a condition.
const WAKES_ALL: [&str; 4] = ["cond_broadcast", "cnd_broadcast", "notify_all", "notifyAll"];
/// Ends the symbol of a function of Go that is written in assembly.
const GO_ASSEMBLY: &str = ".abi0";
/// Permission bits of a segment.
pub const EXECUTABLE: u32 = 1;

/// Larger files are no programs.
const FILE_BYTES_MAX: u64 = 2 << 30;
const CHECKSUM_BLOCK_BYTES: usize = 64 << 10;

type Parsed<'a, R> = ElfFile64<'a, LittleEndian, R>;

/// A file, by the addresses that it gives itself. Of what it has, mostly debug information, only the parts that
/// are needed are read.
#[derive(Debug)]
pub struct Elf {
    path: PathBuf,
    file: File,
    segments: Vec<Segment>,
    pub frames: Frames,
    symbols: Symbols,
    /// What stands in words that the loader fills in.
    slots: OnceCell<HashMap<u64, Slot>>,
    debug_path: Option<PathBuf>,
    lines: OnceCell<Lines>,
}

#[derive(Debug)]
struct Segment {
    address: u64,
    bytes: u64,
    file_offset: u64,
    file_bytes: u64,
    is_executable: bool,
}

/// Functions and variables. A program may have hundreds of thousands, so a name is one only once it is asked for.
#[derive(Debug, Default)]
struct Symbols {
    /// By address.
    all: Vec<Symbol>,
    /// Tables of names, each of which ends with a zero.
    names: Vec<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    address: u64,
    bytes: u64,
    is_function: bool,
    /// Which table of names, and where in it.
    table: usize,
    name: usize,
}

#[derive(Debug)]
enum Slot {
    /// The address of what has this name, in whichever file.
    Name(String),
    /// An address of this file.
    Address(u64),
}

/// What a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee<'a> {
    Address(u64),
    Name(&'a str),
    Unknown,
}

/// A function at an address, or one that was inlined there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

struct Lines(Option<Loader>);

impl std::fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Lines({})", self.0.is_some())
    }
}

/// A file that is not too large to be read.
fn opened(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    (file.metadata().ok()?.len() <= FILE_BYTES_MAX).then_some(file)
}

impl Elf {
    /// Reads a file; none if it is no program for this machine.
    pub fn open(path: &Path) -> Option<Self> {
        let file = opened(path)?;
        let cache = ReadCache::new(&file);
        let parsed = Parsed::parse(&cache).ok()?;
        let debug_path = debug_path(&parsed, path);
        let mut symbols = Symbols::default();
        symbols.add(&parsed);
        let mut sections = sections(&parsed);
        if let Some(found) = &debug_path {
            read_debug_file(found, &mut symbols, &mut sections);
        }
        symbols.sort();
        let segments = segments(&parsed);
        Some(Self {
            path: path.to_owned(),
            segments,
            frames: Frames::new(sections),
            symbols,
            slots: OnceCell::new(),
            debug_path,
            lines: OnceCell::new(),
            file,
        })
    }

    /// By how much addresses in a process are greater than those of the file, by one of its mappings.
    pub fn moved_by(&self, mapping: &Mapping) -> Option<u64> {
        let bytes = mapping.end - mapping.start;
        let stands_there = |segment: &&Segment| {
            let begin = segment.file_offset & !(PAGE_BYTES - 1);
            let end = segment.file_offset.saturating_add(segment.file_bytes);
            segment.is_executable == mapping.is_executable
                && begin < mapping.offset.saturating_add(bytes)
                && mapping.offset < end
        };
        let segment = self.segments.iter().find(stands_there)?;
        let place = mapping.start.wrapping_sub(mapping.offset);
        Some(
            place
                .wrapping_add(segment.file_offset)
                .wrapping_sub(segment.address),
        )
    }

    /// Whether the file has something at an address, its variables without contents included.
    pub fn covers(&self, address: u64) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|it| {
            let inside = address.checked_sub(it.address);
            inside.is_some_and(|at| at < it.bytes)
        })
    }

    /// The call before an address, and what it goes to; none if there is no call.
    pub fn call_before(&self, address: u64) -> Option<Callee<'_>> {
        let mut bytes = [0; CALL_BYTES_MAX];
        let from = address.checked_sub(CALL_BYTES_MAX as u64)?;
        self.read(from, &mut bytes)?;
        Some(self.callee(calls::before(address, &bytes)?))
    }

    /// Whether the function in which a call stands also wakes all that wait at the condition which that call
    /// waits at, as the one of a barrier does: who comes last wakes the others. `function` is its name, which may
    /// be that of one inlined there; `address` is in the call.
    pub fn wakes_all(&self, address: u64, function: &str) -> bool {
        self.wakes_all_of(address, function).unwrap_or(false)
    }

    fn wakes_all_of(&self, address: u64, function: &str) -> Option<bool> {
        let symbol = self.symbol_at(address, true)?;
        let begin = symbol.address;
        let mut body = vec![0; usize::try_from(symbol.bytes.min(BODY_BYTES_MAX)).ok()?];
        self.read(begin, &mut body)?;
        // Behind the call that waits: its first byte may be any of the last few.
        let from = usize::try_from(address.checked_sub(begin)?).ok()?;
        let behind = from.checked_add(1)?;
        let waited_at = calls::argument(begin, body.get(..behind)?);
        let is_wake = |name: &str| WAKES_ALL.iter().any(|it| name.contains(it));
        Some((1..=body.len()).any(|end| {
            let back = CALL_BYTES_MAX.min(end);
            let target = calls::before(begin + end as u64, &body[end - back..end]);
            let wakes = match target.map(|it| self.callee(it)) {
                Some(Callee::Name(name)) => is_wake(name),
                Some(Callee::Address(at)) => self.names_at(at).any(is_wake),
                _ => false,
            };
            let woken_at = || calls::argument(begin, &body[..end]);
            wakes
                && calls::may_be_same(waited_at, woken_at())
                && self.is_within(begin + end as u64 - 1, function)
        }))
    }

    /// Whether the innermost function at an address that belongs to no library has this name.
    fn is_within(&self, address: u64, function: &str) -> bool {
        let named = self.named(address);
        let own = named.iter().find(|it| !names::is_of_library(it));
        own.and_then(|it| it.function.as_deref()) == Some(function)
    }

    fn callee(&self, target: Target) -> Callee<'_> {
        match target {
            Target::Address(target) => self.linked(target).unwrap_or(Callee::Address(target)),
            Target::Slot(slot) => self.slot(slot),
            Target::Unknown => Callee::Unknown,
        }
    }

    /// What an entry of the procedure linkage table goes to; none if there is no such entry.
    fn linked(&self, address: u64) -> Option<Callee<'_>> {
        let mut bytes = [0; LINKAGE_BYTES];
        self.read(address, &mut bytes)?;
        Some(self.slot(calls::jump(address, &bytes)?))
    }

    fn slot(&self, address: u64) -> Callee<'_> {
        let slots = self.slots.get_or_init(|| {
            let cache = ReadCache::new(&self.file);
            let parsed = Parsed::parse(&cache);
            parsed.map_or_else(|_| HashMap::new(), |parsed| slots(&parsed))
        });
        match slots.get(&address) {
            Some(Slot::Name(name)) => Callee::Name(name),
            Some(Slot::Address(address)) => Callee::Address(*address),
            // The file itself says it, where no loader changes it.
            None => {
                let mut word = [0; 8];
                let found = self
                    .read(address, &mut word)
                    .map(|()| u64::from_le_bytes(word));
                let inside = found.filter(|it| *it != 0 && self.covers(*it));
                inside.map_or(Callee::Unknown, Callee::Address)
            }
        }
    }

    /// Reads what the file has at an address.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let length = bytes.len() as u64;
        let has_all = |it: &&Segment| {
            let inside = address.checked_sub(it.address);
            inside.is_some_and(|at| at < it.file_bytes && it.file_bytes - at >= length)
        };
        let segment = self.segments.iter().find(has_all)?;
        let offset = segment.file_offset.checked_add(address - segment.address)?;
        self.file.read_exact_at(bytes, offset).ok()
    }

    /// The names of the function that begins at an address.
    pub fn names_at(&self, address: u64) -> impl Iterator<Item = &str> {
        let symbols = &self.symbols;
        let begin = symbols.all.partition_point(|it| it.address < address);
        let here = symbols.all[begin..].iter();
        let here = here.take_while(move |it| it.address == address);
        here.filter(|it| it.is_function)
            .filter_map(|it| symbols.name(it))
    }

    /// The name of the variable that an address is in.
    pub fn variable_at(&self, address: u64) -> Option<String> {
        let found = self.symbol_at(address, false)?;
        self.symbols.name(found).map(demangled)
    }

    /// The name of the function that an address is in, by symbols. A library has several for most; the
    /// one without underscores is the one that programs know.
    pub fn function_at(&self, address: u64) -> Option<String> {
        self.function_symbol_at(address).map(demangled)
    }

    fn function_symbol_at(&self, address: u64) -> Option<&str> {
        let found = self.symbol_at(address, true)?;
        let names = self.names_at(found.address);
        names.reduce(|a, b| if is_better_name(b, a) { b } else { a })
    }

    fn symbol_at(&self, address: u64, is_function: bool) -> Option<&Symbol> {
        let symbols = &self.symbols.all;
        let after = symbols.partition_point(|it| it.address <= address);
        let before = symbols[..after]
            .iter()
            .rev()
            .filter(|it| it.is_function == is_function);
        // Symbols of assembly may have no length: they last until the next one.
        let mut near = before.take(16);
        near.find(|it| it.bytes == 0 && is_function || address - it.address < it.bytes)
    }

    /// The function at an address, if all of it is of a library of locks. The debug information of such a library is
    /// larger than that of most programs, and says nothing more.
    pub fn closed_at(&self, address: u64) -> Option<String> {
        let symbol = self.function_symbol_at(address)?;
        Some(demangled(symbol)).filter(|it| names::is_closed(symbol, it))
    }

    /// The functions at an address, the innermost inlined one first, with their lines where there is debug
    /// information. Empty if not even a symbol covers it.
    pub fn named(&self, address: u64) -> Vec<Named> {
        let mut named = self.by_lines(address);
        let symbol = self.function_at(address);
        match named.last_mut() {
            Some(last) if last.function.is_none() => last.function = symbol,
            None => named.extend(symbol.map(|function| Named {
                function: Some(function),
                ..Named::default()
            })),
            Some(_) => {}
        }
        named
    }

    fn by_lines(&self, address: u64) -> Vec<Named> {
        let lines = self.lines.get_or_init(|| {
            let path = self.debug_path.as_deref().unwrap_or(&self.path);
            Lines(Loader::new_with_sup(path, common_path(path)).ok())
        });
        let frames = lines.0.as_ref().and_then(|it| it.find_frames(address).ok());
        let Some(mut frames) = frames else {
            return Vec::new();
        };
        let mut named = Vec::new();
        while named.len() < INLINED_MAX
            && let Ok(Some(frame)) = frames.next()
        {
            let function = frame.function.and_then(|name| {
                let raw = name.raw_name().ok()?;
                Some(demangled(&raw))
            });
            let place = frame.location;
            named.push(Named {
                function,
                file: place.as_ref().and_then(|it| Some(it.file?.to_owned())),
                line: place.as_ref().and_then(|it| it.line),
            });
        }
        named
    }
}

/// Whether programs rather know a function by a name than by another one that it has.
pub fn is_better_name(name: &str, other: &str) -> bool {
    let rank = |name: &str| {
        let underscores = name.bytes().take_while(|it| *it == b'_').count();
        (underscores, name.len())
    };
    (rank(name), name) < (rank(other), other)
}

/// A name as its source has it. Only what a compiler mangled is demangled: as a part of a mangled name `b`, a
/// function of C, would be `bool`. Go marks functions in assembly by how they are called.
pub fn demangled(name: &str) -> String {
    match ["_Z", "_R"].iter().any(|it| name.starts_with(it)) {
        // A variable of C++ has no parameters, so its name may as well be one of Rust's, where this is a module.
        true => addr2line::demangle_auto(name.into(), None)
            .replace("_GLOBAL__N_1", "(anonymous namespace)"),
        false => name.strip_suffix(GO_ASSEMBLY).unwrap_or(name).to_owned(),
    }
}

fn segments<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>) -> Vec<Segment> {
    let mut found = Vec::new();
    for segment in parsed.segments() {
        let (file_offset, file_bytes) = segment.file_range();
        let is_executable = match segment.flags() {
            SegmentFlags::Elf { p_flags } => p_flags & EXECUTABLE != 0,
            _ => false,
        };
        found.push(Segment {
            address: segment.address(),
            bytes: segment.size(),
            file_offset,
            file_bytes,
            is_executable,
        });
    }
    found
}

impl Symbols {
    /// Adds those of a file.
    fn add<'a, R: ReadRef<'a>>(&mut self, parsed: &Parsed<'a, R>) {
        let names = parsed.elf_symbol_table().string_section();
        self.add_table(parsed, names, parsed.symbols());
        let dynamic = parsed.elf_dynamic_symbol_table().string_section();
        self.add_table(parsed, dynamic, parsed.dynamic_symbols());
    }

    fn add_table<'a, R: ReadRef<'a>>(
        &mut self,
        parsed: &Parsed<'a, R>,
        names: SectionIndex,
        symbols: ElfSymbolIterator<'a, '_, FileHeader64<LittleEndian>, R>,
    ) {
        let names = parsed.section_by_index(names).and_then(|it| it.data());
        let Ok(names) = names else { return };
        for symbol in symbols {
            let is_function = match symbol.kind() {
                SymbolKind::Text => true,
                SymbolKind::Data => false,
                _ => continue,
            };
            let name = symbol.elf_symbol().st_name(LittleEndian) as usize;
            let is_here = !symbol.is_undefined() && symbol.address() != 0;
            if is_here && names.get(name).is_some_and(|first| *first != 0) {
                self.all.push(Symbol {
                    address: symbol.address(),
                    bytes: symbol.size(),
                    is_function,
                    table: self.names.len(),
                    name,
                });
            }
        }
        self.names.push(names.to_vec());
    }

    /// By address; of several at one address, the longest first.
    fn sort(&mut self) {
        self.all
            .sort_by(|a, b| (a.address, b.bytes).cmp(&(b.address, a.bytes)));
    }

    fn name(&self, symbol: &Symbol) -> Option<&str> {
        text(self.names.get(symbol.table)?, symbol.name)
    }
}

/// The text that begins at a place of a table and ends with a zero.
fn text(table: &[u8], at: usize) -> Option<&str> {
    let found = CStr::from_bytes_until_nul(table.get(at..)?).ok()?;
    found.to_str().ok()
}

fn slots<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>) -> HashMap<u64, Slot> {
    let symbols = parsed.elf_dynamic_symbol_table();
    let names = parsed.section_by_index(symbols.string_section());
    let names = names.and_then(|it| it.data()).unwrap_or_default();
    let relocations = parsed.dynamic_relocations().into_iter().flatten();
    let slot = |(address, relocation): (u64, object::Relocation)| {
        let slot = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = symbols.symbol(index).ok()?;
                let name = text(names, symbol.st_name(LittleEndian) as usize)?;
                Slot::Name(name.to_owned())
            }
            RelocationTarget::Absolute => Slot::Address(relocation.addend() as u64),
            _ => return None,
        };
        Some((address, slot))
    };
    relocations.filter_map(slot).collect()
}

fn sections<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>) -> Sections {
    let address = |name| parsed.section_by_name(name).map_or(0, |it| it.address());
    Sections {
        text_address: address(".text"),
        got_address: address(".got"),
        eh_frame: section(parsed, ".eh_frame"),
        eh_frame_hdr: section(parsed, ".eh_frame_hdr"),
        debug_frame: section(parsed, ".debug_frame"),
    }
}

fn section<'a, R: ReadRef<'a>>(parsed: &Parsed<'a, R>, name: &str) -> Option<Section> {
    let found = parsed.section_by_name(name)?;
    let bytes = found.uncompressed_data().ok()?.into_owned();
    let address = found.address();
    (!bytes.is_empty()).then_some(Section { address, bytes })
}

/// The file that has the debug information of a program, if that is not the program itself.
pub fn debug_path<'a, R: ReadRef<'a>>(
    parsed: &ElfFile64<'a, LittleEndian, R>,
    path: &Path,
) -> Option<PathBuf> {
    if parsed.section_by_name(".debug_info").is_some() {
        return None;
    }
    let id = parsed.build_id().ok().flatten();
    let link = parsed.gnu_debuglink().ok().flatten();
    let name = link.and_then(|(name, _)| std::str::from_utf8(name).ok());
    let checksum = link.map(|(_, checksum)| checksum);
    let by_name = name.and_then(|name| beside(path, name, Path::new(DEBUG_FOLDER)));
    let places = id.and_then(by_id).into_iter();
    let mut places = places.chain(by_name.into_iter().flatten());
    places.find(|place| place != path && is_of_build(place, id, checksum))
}

/// Where the debug information of a build id is installed.
fn by_id(id: &[u8]) -> Option<PathBuf> {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (folder, rest) = digits.split_at_checked(2)?;
    Some(Path::new(DEBUG_FOLDER).join(format!(".build-id/{folder}/{rest}.debug")))
}

/// Where the debug information of a program may stand by its name.
fn beside(path: &Path, name: &str, installed: &Path) -> Option<[PathBuf; 3]> {
    let name = Path::new(name).file_name()?;
    let folder = path.parent()?;
    let inside = folder.strip_prefix("/").unwrap_or(folder);
    Some([
        folder.join(name),
        folder.join(".debug").join(name),
        installed.join(inside).join(name),
    ])
}

/// Whether a file is there and of the same build: one of another build says other lines. Where one of both has
/// no build id, the checksum tells it that the program has of its debug file.
fn is_of_build(place: &Path, id: Option<&[u8]>, checksum: Option<u32>) -> bool {
    match (id, id_of(place)) {
        (Some(id), Some(found)) => id == found,
        _ => checksum.is_some_and(|it| checksum_of(place) == Some(it)),
    }
}

fn id_of(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let parsed = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let id = parsed.build_id().ok()??.to_vec();
    Some(id)
}

/// As `.gnu_debuglink` has it.
fn checksum_of(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?.take(FILE_BYTES_MAX);
    let mut hasher = crc32fast::Hasher::new();
    let mut block = vec![0; CHECKSUM_BLOCK_BYTES];
    loop {
        match file.read(&mut block).ok()? {
            0 => return Some(hasher.finalize()),
            length => hasher.update(&block[..length]),
        }
    }
}

/// The file that has what the debug information of several programs has in common (as `dwz -m` writes it), by the
/// file that has the debug information of one.
fn common_path(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let parsed = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let (name, id) = parsed.gnu_debugaltlink().ok()??;
    let named = path.parent()?.join(std::str::from_utf8(name).ok()?);
    let mut places = [Some(named), by_id(id)].into_iter().flatten();
    places.find(|place| id_of(place).as_deref() == Some(id))
}

/// Adds what a stripped program lacks.
fn read_debug_file(path: &Path, symbols: &mut Symbols, sections: &mut Sections) {
    let Some(file) = opened(path) else { return };
    let cache = ReadCache::new(file);
    let Ok(parsed) = Parsed::parse(&cache) else {
        return;
    };
    symbols.add(&parsed);
    if sections.debug_frame.is_none() {
        sections.debug_frame = section(&parsed, ".debug_frame");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[inline(never)]
    fn here() -> usize {
        here as *const () as usize
    }

    /// This program, as the kernel has mapped it.
    fn own() -> (Elf, u64) {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let maps = crate::maps::Maps::new(&text, Path::new("/"));
        let (mapping, file) = maps.text_at(here() as u64).unwrap();
        let elf = Elf::open(file.path().unwrap()).unwrap();
        let moved_by = elf.moved_by(mapping).unwrap();
        (elf, moved_by)
    }

    #[test]
    fn a_function_has_a_name_and_a_row() {
        let (elf, moved_by) = own();
        let address = here() as u64 - moved_by;
        let name = elf.function_at(address).unwrap();
        assert!(name.ends_with("::here"), "{name}");
        assert!(elf.names_at(address).any(|it| it.contains("here")));
        assert_eq!(elf.names_at(address + 1).count(), 0);
        let row = elf.frames.row(address).unwrap();
        assert_eq!(row.start, address);
        assert!(elf.frames.row(1).is_none());
        assert!(elf.covers(address) && !elf.covers(u64::MAX));
    }

    #[test]
    fn without_a_table_every_function_has_the_same_row() {
        let (elf, _) = own();
        let cache = ReadCache::new(&elf.file);
        let parsed = Parsed::parse(&cache).unwrap();
        let without = Frames::new(Sections {
            eh_frame_hdr: None,
            ..sections(&parsed)
        });
        let symbols = elf.symbols.all.iter().filter(|it| it.is_function);
        let addresses = symbols.flat_map(|it| [it.address, it.address + it.bytes / 2]);
        let mut found = 0;
        for address in addresses {
            let said = |frames: &Frames| format!("{:?}", frames.row(address));
            found += u32::from(elf.frames.row(address).is_some());
            assert_eq!(said(&without), said(&elf.frames), "{address:#x}");
        }
        assert!(found > 100, "{found}");
    }

    /// Bytes that this thread has read so far, where the kernel counts them.
    fn read_so_far() -> Option<u64> {
        let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        let mut lines = counts.lines();
        lines.find_map(|it| it.strip_prefix("rchar: ")?.parse().ok())
    }

    #[test]
    fn of_a_program_no_more_is_read_than_is_needed() {
        const MORE: usize = 8 << 20;
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::write(at.join("more"), vec![1; MORE]).unwrap();
        let add = ["--add-section", ".debug_more=more", "program"];
        if !built(at, "program", &source(10), &[]) || !ran("objcopy", &add, at) {
            return;
        }
        let before = read_so_far();
        let elf = Elf::open(&at.join("program")).unwrap();
        let Some((before, after)) = before.zip(read_so_far()) else {
            eprintln!("left out: this kernel does not count what is read");
            return;
        };
        assert!(after - before < MORE as u64 / 4, "{}", after - before);
        let main = elf
            .symbols
            .all
            .iter()
            .find(|it| elf.symbols.name(it) == Some("main"));
        assert!(elf.frames.row(main.unwrap().address).is_some());
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        for name in ["b", "f", "i", "St", "add_left", "main", "h17b"] {
            assert_eq!(demangled(name), name);
        }
        assert_eq!(demangled("_ZN5Table3addEi"), "Table::add(int)");
        assert_eq!(demangled("runtime.goexit.abi0"), "runtime.goexit");
        assert_eq!(
            demangled("_ZN12_GLOBAL__N_15plainE"),
            "(anonymous namespace)::plain"
        );
        assert_eq!(
            demangled("_ZN3app5Table3add17h0123456789abcdefE"),
            "app::Table::add"
        );
        assert_eq!(demangled("_RNvC3app3add"), "app::add");
        assert_eq!(demangled("_Zed"), "_Zed");
    }

    /// Calls a tool that must succeed; false, with a word on it, if it is not here.
    fn ran(tool: &str, arguments: &[&str], folder: &Path) -> bool {
        let mut command = Command::new(tool);
        match command.args(arguments).current_dir(folder).status() {
            Ok(status) => {
                assert!(status.success(), "{command:?}");
                true
            }
            Err(error) => {
                eprintln!("left out: {tool}: {error}");
                false
            }
        }
    }

    /// A function that is inlined, and one that is not; `lines` empty ones stand before them.
    fn source(lines: usize) -> String {
        let text = "
struct shelf { long first, second; struct shelf *next; };
static inline __attribute__((always_inline)) long taken_from_shelf(struct shelf *shelf) {
    return shelf->first * 3 + shelf->second;
}
__attribute__((noinline)) long add_to_shelf(struct shelf *shelf) {
    shelf->second = taken_from_shelf(shelf) * 7;
    return shelf->second;
}
int main(int count, char **words) {
    struct shelf shelf = {count, words[0][0], 0};
    return add_to_shelf(&shelf) > 5;
}
";
        "\n".repeat(lines) + text
    }

    fn built(folder: &Path, name: &str, source: &str, options: &[&str]) -> bool {
        let file = format!("{name}.c");
        std::fs::write(folder.join(&file), source).unwrap();
        let fixed = ["-O2", "-g", "-o", name, file.as_str()];
        ran("gcc", &[options, &fixed].concat(), folder)
    }

    /// Moves the debug information of a program into a file.
    fn stripped(folder: &Path, program: &str, into: &str) -> bool {
        let link = format!("--add-gnu-debuglink={into}");
        [
            &["--only-keep-debug", program, into][..],
            &["--strip-debug", program],
            &[&link, program],
        ]
        .iter()
        .all(|arguments| ran("objcopy", arguments, folder))
    }

    /// What stands in a function, with the greatest line.
    fn found_in(program: &Path, function: &str) -> (Vec<String>, u32) {
        let elf = Elf::open(program).unwrap();
        let is_this = |it: &&Symbol| elf.symbols.name(it) == Some(function);
        let symbol = elf.symbols.all.iter().find(is_this).unwrap();
        let addresses = symbol.address..symbol.address + symbol.bytes;
        let named: Vec<_> = addresses.flat_map(|it| elf.named(it)).collect();
        let line = named.iter().filter_map(|it| it.line).max();
        let names = named.into_iter().filter_map(|it| it.function);
        (names.collect(), line.unwrap_or(0))
    }

    fn debug_path_of(program: &Path) -> Option<PathBuf> {
        let bytes = std::fs::read(program).unwrap();
        debug_path(&Parsed::parse(&*bytes).unwrap(), program)
    }

    #[test]
    fn debug_information_apart_is_that_of_the_same_build() {
        for options in [&["-Wl,--build-id=none"][..], &["-Wl,--build-id=sha1"]] {
            let folder = tempfile::tempdir().unwrap();
            let (at, program) = (folder.path(), folder.path().join("program"));
            let right = at.join(".debug/program.debug");
            std::fs::create_dir(at.join(".debug")).unwrap();
            let is_built = built(at, "program", &source(10), options)
                && built(at, "other", &source(300), options)
                && stripped(at, "program", ".debug/program.debug");
            if !is_built {
                return;
            }
            // It is not in the first of the places.
            assert_eq!(
                debug_path_of(&program).as_ref(),
                Some(&right),
                "{options:?}"
            );
            let (names, line) = found_in(&program, "add_to_shelf");
            assert!((10..100).contains(&line), "{options:?} {line}");
            assert!(names.contains(&"taken_from_shelf".into()), "{names:?}");
            // Another build is.
            std::fs::copy(at.join("other"), at.join("program.debug")).unwrap();
            assert_eq!(
                debug_path_of(&program).as_ref(),
                Some(&right),
                "{options:?}"
            );
            std::fs::remove_file(&right).unwrap();
            assert_eq!(debug_path_of(&program), None, "{options:?}");
            assert_eq!(found_in(&program, "add_to_shelf").1, 0, "{options:?}");
        }
    }

    #[test]
    fn a_debug_file_without_a_build_id_has_its_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let (at, program) = (folder.path(), folder.path().join("program"));
        let remove = ["--remove-section", ".note.gnu.build-id", "program.debug"];
        let keep = ["--only-keep-debug", "program", "program.debug"];
        let link = [
            "--strip-debug",
            "--add-gnu-debuglink=program.debug",
            "program",
        ];
        let is_built = built(at, "program", &source(10), &["-Wl,--build-id=sha1"])
            && [&keep[..], &remove, &link]
                .iter()
                .all(|arguments| ran("objcopy", arguments, at));
        if !is_built {
            return;
        }
        let debug = at.join("program.debug");
        assert_eq!(debug_path_of(&program).as_ref(), Some(&debug));
        let mut bytes = std::fs::read(&debug).unwrap();
        bytes.push(0);
        std::fs::write(&debug, bytes).unwrap();
        assert_eq!(debug_path_of(&program), None);
    }

    #[test]
    fn debug_information_is_looked_for_in_three_places_by_its_name() {
        let places = beside(
            Path::new("/opt/bin/app"),
            "../app.debug",
            Path::new("/debug"),
        );
        let places = places.unwrap().map(|it| it.to_str().unwrap().to_owned());
        let expected = [
            "/opt/bin/app.debug",
            "/opt/bin/.debug/app.debug",
            "/debug/opt/bin/app.debug",
        ];
        assert_eq!(places, expected);
    }

    /// Distributions keep once what the debug information of several programs has in common.
    #[test]
    fn names_that_several_programs_share_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let other = source(10).replace("taken_from_shelf", "moved_from_shelf");
        let shared = |common, programs: [&str; 2], source: &str| {
            let share = ["-m", common, "-M", common, programs[0], programs[1]];
            let mut each = programs.iter();
            each.all(|name| built(at, name, source, &["-Wl,--build-id=sha1"]))
                && ran("dwz", &share, at)
        };
        let is_built = shared("common.debug", ["one", "two"], &source(10))
            && shared("other.debug", ["three", "four"], &other);
        if !is_built {
            return;
        }
        for program in ["one", "two"] {
            let (names, _) = found_in(&at.join(program), "add_to_shelf");
            assert!(names.contains(&"taken_from_shelf".into()), "{names:?}");
        }
        // That of another build has other names.
        std::fs::rename(at.join("other.debug"), at.join("common.debug")).unwrap();
        let (names, line) = found_in(&at.join("one"), "add_to_shelf");
        let is_inlined = |it: &String| it.ends_with("_from_shelf");
        assert!(
            !names.iter().any(is_inlined) && line > 0,
            "{names:?} {line}"
        );
    }

    #[test]
    fn what_is_no_program_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01\0\0\0"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(Elf::open(&path).is_none());
        }
        assert!(Elf::open(&folder.path().join("none")).is_none());
    }
}
