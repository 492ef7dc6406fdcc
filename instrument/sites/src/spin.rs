//! Loops of x86-64 in which a thread does nothing but wait for a word of the memory to change.
//!
//! The code is followed from a sampled instruction on, through instructions that read, compare, exchange and
//! jump. If that leads back to where it began, it is a loop. It waits if it tells the CPU so (`pause`), or if it
//! does the very same in each turn: no register carries a value from one turn to the next. What it puts into the
//! memory must not depend on what it read there: else it is no attempt to take a lock, but one to change data.

use std::collections::BTreeMap;

/// Bytes before and behind a sample that are looked at: a loop that waits is short.
pub const AROUND: usize = 128;
/// Most instructions that are followed.
const FOLLOWED_MAX: usize = 48;
/// Registers by their numbers.
const RAX: u8 = 0;
const RSP: u8 = 4;
const RBP: u8 = 5;

/// A set of registers.
type Registers = u16;

/// What an instruction does, as far as it matters in a loop that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Step {
    bytes: usize,
    /// The register that it writes, and those that its value comes from, by an address, too.
    writes: Option<u8>,
    from: Registers,
    reads_memory: bool,
    /// The register whose value it may put into the memory, where other threads see it.
    puts: Option<u8>,
    /// It compares the memory with rax, and puts what it was into that.
    compares: bool,
    pauses: bool,
    /// It keeps a value on the stack.
    spills: bool,
    /// It writes what another register has.
    copies: bool,
    /// Where it may go on, from behind it, and whether it may go on behind it.
    jumps: Option<i64>,
    falls_through: bool,
}

/// Whether an instruction at `at` of `code` is in a loop in which a thread waits for others.
pub fn waits_at(code: &[u8], at: usize) -> bool {
    let steps = followed(code, at);
    let whole = Turns::of(&steps, at, &|_| true);
    // A value that is computed anew from what was read is an attempt to change data, not to take a lock.
    let tries = |it: &usize| whole.changes_data(*it);
    let attempts: Vec<usize> = whole.inside.iter().copied().filter(tries).collect();
    let turns = match attempts.is_empty() {
        true => whole,
        false => Turns::of(&steps, at, &|it| !attempts.contains(&it)),
    };
    let all = || turns.inside.iter().map(|it| &steps[it]);
    if all().any(|it| it.pauses) {
        return true;
    }
    all().any(|it| it.reads_memory) && !all().any(|it| it.spills) && !turns.carry()
}

/// The instructions that are reached, by where they begin.
fn followed(code: &[u8], at: usize) -> BTreeMap<usize, Step> {
    let mut found = BTreeMap::new();
    let mut next = vec![at];
    while let Some(place) = next.pop() {
        if found.contains_key(&place) || found.len() == FOLLOWED_MAX {
            continue;
        }
        let Some(step) = code.get(place..).and_then(decoded) else {
            continue;
        };
        next.extend(after(place, &step));
        found.insert(place, step);
    }
    found
}

fn after(place: usize, step: &Step) -> impl Iterator<Item = usize> + use<> {
    let behind = place + step.bytes;
    let target = step
        .jumps
        .and_then(|it| usize::try_from(behind as i64 + it).ok());
    step.falls_through
        .then_some(behind)
        .into_iter()
        .chain(target)
}

/// The instructions on ways from one back to itself, and the ways between them; empty if there is none.
struct Turns<'a> {
    steps: &'a BTreeMap<usize, Step>,
    inside: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl<'a> Turns<'a> {
    fn of(steps: &'a BTreeMap<usize, Step>, at: usize, among: &dyn Fn(usize) -> bool) -> Self {
        let mut edges: Vec<(usize, usize)> = steps
            .iter()
            .flat_map(|(place, step)| after(*place, step).map(move |next| (*place, next)))
            .filter(|(from, to)| steps.contains_key(to) && among(*from) && among(*to))
            .collect();
        let behind = reached(at, &edges);
        let reversed: Vec<(usize, usize)> = edges.iter().map(|it| (it.1, it.0)).collect();
        let before = reached(at, &reversed);
        let inside: Vec<usize> = behind
            .into_iter()
            .filter(|it| before.contains(it))
            .collect();
        edges.retain(|(from, to)| inside.contains(from) && inside.contains(to));
        Self {
            steps,
            inside,
            edges,
        }
    }

    /// Whether what an instruction puts into the memory may depend on what was read there, or on the turn.
    fn changes_data(&self, place: usize) -> bool {
        let step = &self.steps[&place];
        let Some(put) = step.puts else {
            return false;
        };
        let needed = bit(put) | if step.compares { bit(RAX) } else { 0 };
        registers(needed).any(|it| !self.is_same(place, it, FOLLOWED_MAX))
    }

    /// Whether a register has the same value in each turn when an instruction begins.
    fn is_same(&self, place: usize, register: u8, depth: usize) -> bool {
        depth > 0
            && self.set_by(place, register).into_iter().all(|it| {
                let step = &self.steps[&it];
                let mut from = registers(step.from);
                !step.reads_memory && from.all(|source| self.is_same(it, source, depth / 2))
            })
    }

    /// The instructions of the loop whose value a register may have when one begins.
    fn set_by(&self, place: usize, register: u8) -> Vec<usize> {
        let before = |place: usize| self.edges.iter().filter(move |it| it.1 == place);
        let mut seen: Vec<usize> = before(place).map(|it| it.0).collect();
        let (mut done, mut found) = (0, Vec::new());
        while let Some(one) = seen.get(done).copied() {
            done += 1;
            if self.steps[&one].writes == Some(register) {
                found.push(one);
                continue;
            }
            for (earlier, _) in before(one) {
                if !seen.contains(earlier) {
                    seen.push(*earlier);
                }
            }
        }
        found
    }

    /// Whether a register has in a turn what was computed from it in the one before. What is only copied stays
    /// the same.
    fn carry(&self) -> bool {
        let mut edges = Vec::new();
        for place in &self.inside {
            for source in registers(self.steps[place].from) {
                edges.extend(
                    self.set_by(*place, source)
                        .into_iter()
                        .map(|it| (*place, it)),
                );
            }
        }
        let computes = |it: &&usize| !self.steps[*it].copies;
        let mut computed = self.inside.iter().filter(computes);
        computed.any(|it| reached(*it, &edges).contains(it))
    }
}

/// What is reached from a place by at least one edge.
fn reached(at: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let next = |place: usize| edges.iter().filter(move |it| it.0 == place).map(|it| it.1);
    let mut found: Vec<usize> = Vec::new();
    let mut left = vec![at];
    while let Some(place) = left.pop() {
        for other in next(place) {
            if !found.contains(&other) {
                found.push(other);
                left.push(other);
            }
        }
    }
    found
}

fn bit(register: u8) -> Registers {
    1 << register
}

fn registers(set: Registers) -> impl Iterator<Item = u8> {
    (0..16).filter(move |it| set & bit(*it) != 0)
}

/// An operand that is a register or stands in the memory.
#[derive(Debug, Clone, Copy)]
enum Operand {
    Register(u8),
    Memory { by: Registers, is_stack: bool },
}

/// The bytes of an instruction that are not read yet.
struct Bytes<'a> {
    all: &'a [u8],
    read: usize,
}

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.all.get(self.read)?;
        self.read += 1;
        Some(byte)
    }

    fn number(&mut self, bytes: usize) -> Option<i64> {
        let from = self.all.get(self.read..self.read + bytes)?;
        self.read += bytes;
        match bytes {
            1 => Some(i64::from(from[0] as i8)),
            4 => Some(i64::from(i32::from_le_bytes(from.try_into().ok()?))),
            _ => Some(0),
        }
    }

    /// The operands of an instruction, by the byte that names them and those behind it.
    fn operands(&mut self, rex: u8) -> Option<(u8, Operand)> {
        let mode = self.next()?;
        let register = (mode >> 3) & 7 | (rex & 4) << 1;
        let (kind, base) = (mode >> 6, mode & 7);
        if kind == 3 {
            return Some((register, Operand::Register(base | (rex & 1) << 3)));
        }
        let mut by = 0;
        let mut is_stack = false;
        let mut is_far = kind == 2;
        if base == 4 {
            let index = self.next()?;
            let scaled = (index >> 3) & 7 | (rex & 2) << 2;
            if scaled != 4 {
                by |= bit(scaled);
            }
            if index & 7 == 5 && kind == 0 {
                is_far = true;
            } else {
                let base = index & 7 | (rex & 1) << 3;
                by |= bit(base);
                is_stack = base == RSP || base == RBP;
            }
        } else if base == 5 && kind == 0 {
            is_far = true; // from the next instruction
        } else {
            let base = base | (rex & 1) << 3;
            by |= bit(base);
            is_stack = base == RBP;
        }
        match (kind, is_far) {
            (_, true) => self.number(4)?,
            (1, _) => self.number(1)?,
            _ => 0,
        };
        Some((register, Operand::Memory { by, is_stack }))
    }
}

/// What the first instruction of some bytes does; none if it is none of those of which loops that wait consist.
fn decoded(all: &[u8]) -> Option<Step> {
    let mut bytes = Bytes { all, read: 0 };
    let (mut is_short, mut is_locked, mut repeats) = (false, false, false);
    let mut byte = bytes.next()?;
    loop {
        match byte {
            0x66 => is_short = true,
            0xf0 => is_locked = true,
            0xf3 => repeats = true,
            0xf2 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => {}
            _ => break,
        }
        byte = bytes.next()?;
    }
    let mut rex = 0;
    if byte & 0xf0 == 0x40 {
        (rex, byte) = (byte, bytes.next()?);
    }
    let immediate = if is_short { 2 } else { 4 };
    let step = match byte {
        0x0f => of_two_bytes(&mut bytes, rex, repeats)?,
        _ => of_one_byte(byte, &mut bytes, rex, repeats, immediate)?,
    };
    let is_known = !is_locked || step.reads_memory && step.puts.is_some();
    is_known.then_some(Step {
        bytes: bytes.read,
        ..step
    })
}

fn of_one_byte(
    byte: u8,
    bytes: &mut Bytes<'_>,
    rex: u8,
    repeats: bool,
    immediate: usize,
) -> Option<Step> {
    let is_wide = byte & 1 != 0;
    let length = if is_wide { immediate } else { 1 };
    Some(match byte {
        // Of add, or, and, sub, xor, and cmp: memory is read, and never written.
        0x00..=0x3d if byte & 7 < 6 && !matches!(byte >> 3, 2 | 3) => {
            let compares = byte >> 3 == 7;
            if byte & 7 >= 4 {
                bytes.number(length)?;
                return Some(if compares {
                    step()
                } else {
                    write(RAX, bit(RAX))
                });
            }
            let (register, operand) = bytes.operands(rex)?;
            let (target, source) = match (byte & 2 != 0, operand) {
                (true, _) => (register, operand),
                (false, Operand::Register(other)) => (other, Operand::Register(register)),
                (false, _) if compares => (register, operand),
                (false, _) => return None,
            };
            if compares {
                return Some(read(operand, step()));
            }
            let is_zero = matches!(source, Operand::Register(it) if it == target)
                && matches!(byte >> 3, 5 | 6);
            if is_zero {
                write(target, 0)
            } else {
                let from = bit(target) | value(source);
                read(source, write(target, from))
            }
        }
        0x63 | 0x8a | 0x8b => {
            let (register, operand) = bytes.operands(rex)?;
            Step {
                copies: matches!(operand, Operand::Register(_)),
                ..read(operand, write(register, value(operand)))
            }
        }
        0x70..=0x7f => jump(bytes.number(1)?, true),
        0x80 | 0x81 | 0x83 => {
            let (operation, operand) = bytes.operands(rex & !4)?;
            bytes.number(if byte == 0x81 { immediate } else { 1 })?;
            match (operation, operand) {
                (7, _) => read(operand, step()),
                (0 | 1 | 4 | 5 | 6, Operand::Register(it)) => write(it, bit(it)),
                _ => return None,
            }
        }
        0x84 | 0x85 => {
            let (_, operand) = bytes.operands(rex)?;
            read(operand, step())
        }
        0x86 | 0x87 => match bytes.operands(rex)? {
            (register, Operand::Memory { by, .. }) => Step {
                writes: Some(register),
                from: by,
                reads_memory: true,
                puts: Some(register),
                ..step()
            },
            _ => return None,
        },
        0x88 | 0x89 => match bytes.operands(rex)? {
            (register, Operand::Register(it)) => Step {
                copies: true,
                ..write(it, bit(register))
            },
            (_, Operand::Memory { is_stack: true, .. }) => Step {
                spills: true,
                ..step()
            },
            _ => return None,
        },
        0x8d => match bytes.operands(rex)? {
            (register, Operand::Memory { by, .. }) => write(register, by),
            _ => return None,
        },
        0x90 if rex & 1 == 0 => Step {
            pauses: repeats,
            ..step()
        },
        0x98 => write(RAX, bit(RAX)),
        0xa8 | 0xa9 => {
            bytes.number(length)?;
            step()
        }
        0xb0..=0xbf => {
            let is_whole = byte >= 0xb8;
            bytes.number(match (is_whole, rex & 8 != 0) {
                (false, _) => 1,
                (true, true) => 8,
                (true, false) => immediate,
            })?;
            write(byte & 7 | (rex & 1) << 3, 0)
        }
        0xc0 | 0xc1 | 0xd0 | 0xd1 => match bytes.operands(rex & !4)? {
            (4 | 5 | 7, Operand::Register(it)) => {
                bytes.number(usize::from(byte < 0xd0))?;
                write(it, bit(it))
            }
            _ => return None,
        },
        0xc6 | 0xc7 => {
            let (_, operand) = bytes.operands(rex & !4)?;
            bytes.number(length)?;
            match operand {
                Operand::Register(it) => write(it, 0),
                Operand::Memory { is_stack: true, .. } => Step {
                    spills: true,
                    ..step()
                },
                Operand::Memory { .. } => return None,
            }
        }
        0xe9 => jump(bytes.number(4)?, false),
        0xeb => jump(bytes.number(1)?, false),
        0xf6 | 0xf7 => {
            let (operation, operand) = bytes.operands(rex & !4)?;
            match (operation, operand) {
                (0 | 1, _) => {
                    bytes.number(length)?;
                    read(operand, step())
                }
                (2 | 3, Operand::Register(it)) => write(it, bit(it)),
                _ => return None,
            }
        }
        0xfe | 0xff => match bytes.operands(rex & !4)? {
            (0 | 1, Operand::Register(it)) => write(it, bit(it)),
            _ => return None,
        },
        _ => return None,
    })
}

fn of_two_bytes(bytes: &mut Bytes<'_>, rex: u8, repeats: bool) -> Option<Step> {
    let byte = bytes.next()?;
    Some(match byte {
        // endbr64 is a no-operation; so is 0f 1f.
        0x1e if repeats => {
            bytes.next()?;
            step()
        }
        0x1f => {
            bytes.operands(rex)?;
            step()
        }
        0x40..=0x4f => {
            let (register, operand) = bytes.operands(rex)?;
            read(operand, write(register, bit(register) | value(operand)))
        }
        0x80..=0x8f => jump(bytes.number(4)?, true),
        0x90..=0x9f => match bytes.operands(rex)? {
            (_, Operand::Register(it)) => write(it, 0),
            _ => return None,
        },
        0xa3 => {
            let (_, operand) = bytes.operands(rex)?;
            read(operand, step())
        }
        0xb0 | 0xb1 => match bytes.operands(rex)? {
            (register, Operand::Memory { by, .. }) => Step {
                writes: Some(RAX),
                from: by,
                reads_memory: true,
                puts: Some(register),
                compares: true,
                ..step()
            },
            _ => return None,
        },
        0xb6 | 0xb7 | 0xbe | 0xbf => {
            let (register, operand) = bytes.operands(rex)?;
            read(operand, write(register, value(operand)))
        }
        _ => return None,
    })
}

fn step() -> Step {
    Step {
        falls_through: true,
        ..Step::default()
    }
}

fn write(register: u8, from: Registers) -> Step {
    Step {
        writes: Some(register),
        from,
        ..step()
    }
}

fn read(operand: Operand, step: Step) -> Step {
    Step {
        reads_memory: matches!(operand, Operand::Memory { .. }),
        ..step
    }
}

fn jump(target: i64, falls_through: bool) -> Step {
    Step {
        jumps: Some(target),
        falls_through,
        ..Step::default()
    }
}

/// The registers that a value comes from.
fn value(operand: Operand) -> Registers {
    match operand {
        Operand::Register(it) => bit(it),
        Operand::Memory { by, .. } => by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let parts = text.split_whitespace();
        parts
            .map(|it| u8::from_str_radix(it, 16).unwrap())
            .collect()
    }

    /// Where a loop that waits is seen among the instructions of some code, which begin at these places.
    fn waiting(text: &str, places: &[usize]) -> Vec<usize> {
        let code = bytes(text);
        let waits = |at: &&usize| waits_at(&code, **at);
        places.iter().filter(waits).copied().collect()
    }

    #[test]
    fn loops_that_only_look_at_a_word_wait() {
        // mov called(%rip),%edx; cmp %ebp,%edx; jne: a ticket lock. Behind it, a copy.
        let ticket = "8b 15 ba 2d 00 00 39 ea 75 f6 48 89 d0 c3";
        assert_eq!(waiting(ticket, &[0, 6, 8, 10, 13]), [0, 6, 8]);
        // mov prepared(%rip),%eax; test %eax,%eax; je
        assert_eq!(
            waiting("8b 05 9a 2d 00 00 85 c0 74 f6", &[0, 6, 8]),
            [0, 6, 8]
        );
        // cmpl $0,(%rdi); je
        assert_eq!(waiting("83 3f 00 74 fb c3", &[0, 3]), [0, 3]);
        // Two tickets in one word, of which each turn takes the upper one: mov (%rdi),%eax; shr $16,%eax;
        // cmp %cx,%ax; jne
        let halves = "8b 07 c1 e8 10 66 39 c8 75 f6";
        assert_eq!(waiting(halves, &[0, 2, 5, 8]), [0, 2, 5, 8]);
    }

    #[test]
    fn loops_that_exchange_until_they_have_a_lock_wait() {
        // mov %r9d,%eax; xchg %al,latch(%rip); test; je out; movzbl latch(%rip),%eax; test; je 0; pause; jmp
        let latch = "44 89 c8 86 05 a7 2b 00 00 84 c0 74 13 0f 1f 00 0f b6 05 99 2b 00 00 84 c0 74 e5 f3 90 eb f1 90";
        assert_eq!(
            waiting(latch, &[0, 3, 9, 16, 23, 27, 29, 31]),
            [0, 3, 9, 16, 23, 27, 29]
        );
        // pause; xor %eax,%eax; lock cmpxchg %r9d,(%rip); jne; inc %rdi
        let swapped = "f3 90 31 c0 f0 44 0f b1 0d db 40 04 00 75 f1 48 ff c7";
        assert_eq!(waiting(swapped, &[0, 2, 4, 13, 15]), [0, 2, 4, 13]);
        // As Go has it, which copies a register to and fro: mov %rcx,%rax; mov %rax,%rcx; xor %eax,%eax;
        // lea (%rip),%rdx; mov $1,%esi; lock cmpxchg %esi,(%rdx); sete %dl; test %dl,%dl; je
        let of_go = "48 89 c8 48 89 c1 31 c0 48 8d 15 7e fe 0e 00 be 01 00 00 00 f0 0f b1 32 0f 94 c2 84 d2 74 e1";
        assert_eq!(waiting(of_go, &[0, 3, 6, 8, 15, 20, 24, 27, 29]).len(), 9);
    }

    #[test]
    fn a_delay_waits_if_it_tells_the_processor() {
        // pause; sub $1,%ecx; jne: as a runtime does before it looks again.
        assert_eq!(waiting("f3 90 83 e9 01 75 f9", &[0, 2, 5]), [0, 2, 5]);
        assert_eq!(waiting("83 e9 01 75 fb", &[0, 3]), []);
    }

    #[test]
    fn attempts_to_change_data_do_not_wait() {
        // lea (%rax,%rdx),%r8; lock cmpxchg %r8,most(%rip); jne
        let most = "4c 8d 04 10 f0 4c 0f b1 05 93 2c 00 00 75 f1";
        assert_eq!(waiting(most, &[0, 4, 13]), []);
        // pause; lea (%rax,%rax,2),%rdx; add %r8,%rdx; lock cmpxchg %rdx,sum(%rip); je out; jmp
        let sum = "f3 90 48 8d 14 40 4c 01 c2 f0 48 0f b1 15 73 2d 00 00 74 d8 eb ea";
        assert_eq!(waiting(sum, &[0, 2, 6, 9, 18, 20]), []);
        // A reader that waits until no writer has it, and counts itself: mov (%rdi),%eax; test; js pause;
        // lea 1(%rax),%edx; lock cmpxchg %edx,(%rdi); jne 0; ret; pause; jmp 0. It waits in the first part.
        let reader = "8b 07 85 c0 78 0a 8d 50 01 f0 0f b1 17 75 f1 c3 f3 90 eb ec";
        assert_eq!(
            waiting(reader, &[0, 2, 4, 6, 9, 13, 16, 18]),
            [0, 2, 4, 16, 18]
        );
    }

    #[test]
    fn work_does_not_wait() {
        // imul; add; sub $1,%rdx; jne
        assert_eq!(
            waiting("48 0f af c7 48 01 f0 48 83 ea 01 75 f3", &[0, 4, 7, 11]),
            []
        );
        // Hashing without a multiplication: xor %rcx,%rax; shl $3,%rax; sub $1,%rdx; jne
        assert_eq!(
            waiting("48 31 c8 48 c1 e0 03 48 83 ea 01 75 f3", &[0, 3, 7, 11]),
            []
        );
        // Searching an array: cmp %esi,(%rdi); je out; add $4,%rdi; jmp
        assert_eq!(waiting("39 37 74 06 48 83 c7 04 eb f6", &[0, 2, 4, 8]), []);
        // Following a list: mov (%rax),%rax; test %rax,%rax; jne
        assert_eq!(waiting("48 8b 00 48 85 c0 75 f8", &[0, 3, 6]), []);
        // The end of a text: movzbl (%rdi,%rcx),%eax; inc %rcx; test %al,%al; jne
        assert_eq!(
            waiting("0f b6 04 0f 48 ff c1 84 c0 75 f5", &[0, 4, 7, 9]),
            []
        );
        // A variable on the stack that counts: mov -8(%rsp)... add $1 … mov back.
        assert_eq!(
            waiting(
                "48 8b 44 24 f8 48 83 c0 01 48 89 44 24 f8 39 c8 7c ee",
                &[0, 5, 9, 14, 16]
            ),
            []
        );
        // A counter that all add to: lock add $1,(%rdi); dec %ecx; jne
        assert_eq!(waiting("f0 83 07 01 ff c9 75 f8", &[0, 4, 6]), []);
        // Filling: mov %rax,(%rdi); jmp
        assert_eq!(waiting("48 89 07 eb fb", &[0, 3]), []);
    }

    #[test]
    fn any_bytes_are_understood_or_not() {
        let mut seed = 7_u64;
        for _ in 0..200_000 {
            let code: Vec<u8> = (0..24)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 56) as u8
                })
                .collect();
            waits_at(&code, 0);
            waits_at(&code, 24);
        }
        waits_at(&[], 0);
    }
}
