//! From the copy of a stack to the calls that led there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::capture::Sample;
use crate::cfi::{Caller, Memory, REGISTERS, RETURN_ADDRESS, Registers, Row, STACK_POINTER};
use crate::elf::{Callee, Elf};
use crate::maps::{MappedFile, Maps};

/// Most frames that are followed.
const FRAMES_MAX: usize = 64;
const WORD: u64 = 8;

/// How a frame was found, the surest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// By call frame information alone.
    Cfi,
    /// Behind a call of this very function on the stack, here or in a frame below.
    ScanExact,
    /// Behind a call of something that is not known, from which the unwinding reaches the thread's start.
    ScanWeak,
}

/// A call on the stack.
#[derive(Debug, Clone)]
pub struct Frame {
    pub elf: Rc<Elf>,
    pub path: Arc<str>,
    /// In the call instruction (in the innermost frame behind it), by the file's own addresses.
    pub address: u64,
    pub found: Found,
}

/// The files that samples are unwound by, each read once, and what was found by them.
#[derive(Debug, Default)]
pub struct Files {
    opened: RefCell<HashMap<MappedFile, Option<Rc<Elf>>>>,
    /// By the number of the maps, and the mapping's place there.
    mapped: RefCell<HashMap<(u64, usize), Option<Mapped>>>,
    calls: RefCell<HashMap<CallOf, Option<Found>>>,
    /// By the number of the maps, and the address.
    variables: RefCell<HashMap<(u64, u64), Option<String>>>,
}

/// The file of a mapping, and by how much its addresses are greater than those of the file.
type Mapped = (Rc<Elf>, u64);

/// An address of a file, and a function that may have been called before it.
type CallOf = (*const Elf, u64, (*const Elf, u64));

/// An address of a process, as one of a file.
#[derive(Debug, Clone)]
struct Place {
    elf: Rc<Elf>,
    path: Arc<str>,
    address: u64,
}

impl Files {
    /// A file that is still the one that was mapped.
    pub fn open(&self, file: &MappedFile) -> Option<Rc<Elf>> {
        let known = self.opened.borrow().get(file).cloned();
        known.unwrap_or_else(|| {
            let elf = file.path().and_then(Elf::open).map(Rc::new);
            self.opened.borrow_mut().insert(file.clone(), elf.clone());
            elf
        })
    }

    /// The program text at an address of a process.
    fn place(&self, maps: &Maps, address: u64) -> Option<Place> {
        let (index, mapping) = maps.find(address)?;
        let key = (maps.number(), index);
        let known = self.mapped.borrow().get(&key).cloned();
        let (elf, moved_by) = known.unwrap_or_else(|| {
            let found = self.file_at(maps, address);
            self.mapped.borrow_mut().insert(key, found.clone());
            found
        })?;
        Some(Place {
            elf,
            path: mapping.path.clone(),
            address: address.wrapping_sub(moved_by),
        })
    }

    /// What has program text at an address.
    fn file_at(&self, maps: &Maps, address: u64) -> Option<Mapped> {
        let (mapping, file) = maps.text_at(address)?;
        let elf = self.open(file)?;
        let moved_by = elf.moved_by(mapping)?;
        Some((elf, moved_by))
    }

    /// The name of the variable at an address of a process, of those that a file has.
    pub fn variable(&self, maps: &Maps, address: u64) -> Option<String> {
        let key = (maps.number(), address);
        let known = self.variables.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let found = self.variable_at(maps, address);
            self.variables.borrow_mut().insert(key, found.clone());
            found
        })
    }

    fn variable_at(&self, maps: &Maps, address: u64) -> Option<String> {
        let (mapping, file) = maps.text_before(address)?;
        let elf = self.open(file)?;
        let own = address.wrapping_sub(elf.moved_by(mapping)?);
        elf.covers(own).then(|| elf.variable_at(own))?
    }
}

/// Whether an address is behind a call, and whether that is one of this function.
fn called(caller: &Place, function: &Place, row: &Row) -> Option<Found> {
    let is_this = match caller.elf.call_before(caller.address.wrapping_add(1))? {
        Callee::Address(target) => Rc::ptr_eq(&caller.elf, &function.elf) && target == row.start,
        Callee::Name(name) => function.elf.names_at(row.start).any(|it| it == name),
        Callee::Unknown => return Some(Found::ScanWeak),
    };
    // A call of another function that ends by jumping to this one looks so, too.
    Some(match is_this {
        true => Found::ScanExact,
        false => Found::ScanWeak,
    })
}

/// The copy of a stack.
struct Stack<'a> {
    begin: u64,
    bytes: &'a [u8],
}

impl Stack<'_> {
    fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes.len() as u64)
    }
}

impl Memory for Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(WORD as usize)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// How far an unwinding came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Something that is no program text, or a frame by a register that is not known.
    Broken,
    /// To the end of the copy.
    End,
    /// To the start of the thread.
    Root,
}

/// The frames of a sample, the innermost one first, as far as they are known.
pub struct Walk<'a> {
    unwinding: Unwinding<'a>,
    registers: Registers,
    found: Found,
    /// The registers say where an instruction stands, and not what stands behind a call.
    is_exact_address: bool,
    /// Where the last frame stands.
    last: Option<Place>,
    frames: usize,
}

impl<'a> Walk<'a> {
    pub fn new(sample: &'a Sample, files: &'a Files) -> Self {
        let mut registers: Registers = [None; REGISTERS];
        registers[STACK_POINTER] = Some(sample.stack_pointer);
        registers[RETURN_ADDRESS] = Some(sample.instruction);
        Self {
            unwinding: Unwinding {
                maps: &sample.maps,
                files,
                until: sample.python.interpreter(),
                stack: Stack {
                    begin: sample.stack_pointer,
                    bytes: &sample.stack,
                },
            },
            registers,
            found: Found::Cfi,
            is_exact_address: !sample.is_return_address,
            last: None,
            frames: 0,
        }
    }

    /// The next frame; none if it is not known, or known by a scan alone and that is not wanted.
    pub fn next(&mut self, may_scan: bool) -> Option<Frame> {
        if let Some(last) = self.last.take() {
            self.step(&last, may_scan)?;
        }
        if self.frames == FRAMES_MAX {
            return None;
        }
        self.frames += 1;
        let place = self.unwinding.at(&self.registers, self.is_exact_address)?;
        let frame = Frame {
            elf: place.elf.clone(),
            path: place.path.clone(),
            address: place.address,
            found: self.found,
        };
        self.last = Some(place);
        Some(frame)
    }

    fn step(&mut self, place: &Place, may_scan: bool) -> Option<()> {
        let row = place.elf.frames.row(place.address)?;
        self.registers = match row.caller(&self.registers, &self.unwinding.stack) {
            Caller::Found(caller) => *caller,
            Caller::UnknownFrame if may_scan => {
                let (caller, how) = self.unwinding.scan(&self.registers, place, &row)?;
                self.found = self.found.max(how);
                caller
            }
            _ => return None,
        };
        // Behind the frame of a signal stands an instruction that was interrupted.
        self.is_exact_address = row.is_signal;
        Some(())
    }
}

struct Unwinding<'a> {
    maps: &'a Maps,
    files: &'a Files,
    /// The file at which it ends: a large one, of which nothing is to be known.
    until: Option<&'a str>,
    stack: Stack<'a>,
}

impl Unwinding<'_> {
    /// The text that the registers stand in. A return address is behind its call, which may be the last
    /// instruction of its function.
    fn at(&self, registers: &Registers, is_exact_address: bool) -> Option<Place> {
        let address = registers[RETURN_ADDRESS]?;
        let inside = if is_exact_address {
            address
        } else {
            address.checked_sub(1)?
        };
        let mapping = self.maps.at(inside)?;
        if self.until == Some(&*mapping.path) {
            return None;
        }
        self.files.place(self.maps, inside)
    }

    /// Looks for the return address of a function whose frame is not known, from its stack pointer on. What
    /// earlier calls left on the stack looks alike: so a call of this very function comes first, and else
    /// only one from which the unwinding reaches the start of the thread.
    fn scan(&self, registers: &Registers, place: &Place, row: &Row) -> Option<(Registers, Found)> {
        let mut best: Option<(Found, Reach, Registers)> = None;
        let mut at = registers[STACK_POINTER]?.checked_next_multiple_of(WORD)?;
        while let Some((value, next)) = self.stack.word(at).zip(at.checked_add(WORD)) {
            at = next;
            let Some(how) = self.called(value, place, row) else {
                continue;
            };
            let Caller::Found(caller) = row.caller_of(at, registers, &self.stack) else {
                continue;
            };
            if caller[RETURN_ADDRESS] != Some(value) {
                continue;
            }
            let reach = self.reach(*caller);
            let is_better = best.as_ref().is_none_or(|(best_how, best_reach, _)| {
                how < *best_how || how == *best_how && reach > *best_reach
            });
            if is_better && (how == Found::ScanExact || reach == Reach::Root) {
                best = Some((how, reach, *caller));
            }
            // Nothing is better, and of equals the first one counts.
            if matches!(best, Some((Found::ScanExact, Reach::Root, _))) {
                break;
            }
        }
        best.map(|(how, _, caller)| (caller, how))
    }

    /// Whether a value of the stack is an address behind a call that may be one of this function.
    fn called(&self, value: u64, function: &Place, row: &Row) -> Option<Found> {
        let caller = self.files.place(self.maps, value.checked_sub(1)?)?;
        let own = (Rc::as_ptr(&function.elf), row.start);
        let key = (Rc::as_ptr(&caller.elf), caller.address, own);
        if let Some(known) = self.files.calls.borrow().get(&key) {
            return *known;
        }
        let found = called(&caller, function, row);
        self.files.calls.borrow_mut().insert(key, found);
        found
    }

    /// How far call frame information leads from these registers.
    fn reach(&self, mut registers: Registers) -> Reach {
        for _ in 0..FRAMES_MAX {
            let row = self
                .at(&registers, false)
                .and_then(|it| it.elf.frames.row(it.address));
            let Some(row) = row else {
                return Reach::Broken;
            };
            registers = match row.caller(&registers, &self.stack) {
                Caller::Found(next) => *next,
                Caller::None => return Reach::Root,
                Caller::UnknownWord if self.ends(&registers) => return Reach::End,
                _ => return Reach::Broken,
            };
        }
        Reach::End
    }

    /// Whether the frame of these registers may end beyond the copy.
    fn ends(&self, registers: &Registers) -> bool {
        let below = registers[STACK_POINTER].unwrap_or(0);
        below <= self.stack.end()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::maps::Mapping;

    const MOVED: u64 = 0x10_0000;

    static OWN_VARIABLE: AtomicU64 = AtomicU64::new(0);

    /// Two processes may have the same file at different addresses, and one that maps it anew, too.
    #[test]
    fn what_is_known_of_one_process_is_not_said_of_another() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let all = Maps::new(&text, Path::new("/"));
        let here = Files::place as *const () as u64;
        let (mapping, file) = all.text_at(here).unwrap();
        let moved = Mapping {
            start: mapping.start + MOVED,
            end: mapping.end + MOVED,
            ..mapping.clone()
        };
        let first = Maps::of_texts([(mapping.clone(), file.clone())]);
        let other = Maps::of_texts([(moved, file.clone())]);
        let files = Files::default();
        let place = |maps, address| files.place(maps, address).map(|it| it.address);
        let variable = &raw const OWN_VARIABLE as u64;
        let expected = place(&first, here);
        assert!(expected.is_some());
        for _ in 0..2 {
            assert_eq!(place(&first, here), expected);
            assert_eq!(place(&other, here + MOVED), expected);
            let name = files.variable(&first, variable).unwrap();
            assert!(name.ends_with("OWN_VARIABLE"), "{name}");
            assert_eq!(files.variable(&other, variable + MOVED), Some(name));
            assert_ne!(
                files.variable(&first, variable),
                files.variable(&other, variable)
            );
        }
    }
}
