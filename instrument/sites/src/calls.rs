//! Call instructions of x86-64, by the address behind them.

/// Longest call that is understood.
pub const CALL_BYTES_MAX: usize = 7;

/// What a call instruction calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// This address.
    Address(u64),
    /// What the word at this address holds: an entry of the global offset table.
    Slot(u64),
    /// What a register or a word elsewhere holds.
    Unknown,
}

/// What the instruction before an address calls, if it is a call. `before` are the bytes before it. Bytes
/// that happen to look like a call are one, too: only the frames above can tell.
pub fn before(address: u64, before: &[u8]) -> Option<Target> {
    let last = |count: usize| before.len().checked_sub(count).map(|at| &before[at..]);
    if let Some([0xe8, offset @ ..]) = last(5) {
        return Some(Target::Address(moved(address, offset)?));
    }
    if let Some([0xff, 0x15, offset @ ..]) = last(6) {
        return Some(Target::Slot(moved(address, offset)?));
    }
    let is_call = (2..=CALL_BYTES_MAX).any(|count| {
        last(count)
            .is_some_and(|bytes| bytes[0] == 0xff && indirect_bytes(&bytes[1..]) == Some(count))
    });
    is_call.then_some(Target::Unknown)
}

/// What a jump at an address jumps to by the global offset table, as the entries of a procedure linkage table
/// do; the table's entry. `from` are the bytes from there on.
pub fn jump(address: u64, from: &[u8]) -> Option<u64> {
    // endbr64, and the prefix bnd.
    let rest = from.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(from);
    let rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let offset = rest.strip_prefix(&[0xff, 0x25])?.get(..4)?;
    let behind = (from.len() - rest.len()) as u64 + 6;
    moved(address.wrapping_add(behind), offset)
}

/// Length of `call` by a register or by memory, from its byte behind the operation code on.
fn indirect_bytes(operand: &[u8]) -> Option<usize> {
    let (mode, operation, base) = (operand[0] >> 6, (operand[0] >> 3) & 7, operand[0] & 7);
    if operation != 2 {
        return None;
    }
    let has_index = mode != 3 && base == 4;
    let index = if has_index { *operand.get(1)? } else { 0 };
    let displacement = match (mode, base) {
        (0, 5) => 4,
        (0, 4) if index & 7 == 5 => 4,
        (0 | 3, _) => 0,
        (1, _) => 1,
        _ => 4,
    };
    Some(2 + usize::from(has_index) + displacement)
}

/// Bytes before a call that are searched for its first argument.
const ARGUMENT_BYTES: usize = 32;
/// No call by its address is shorter.
const CALL_BYTES_MIN: usize = 5;

/// What is put into the register of the first argument before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    Address(u64),
    /// A number of bytes from what this register holds.
    From(u8, i32),
}

/// Whether two arguments within a function may be the same, as far as they are known. A register may hold
/// what another one held.
pub fn may_be_same(one: Option<Argument>, other: Option<Argument>) -> bool {
    match (one, other) {
        (Some(Argument::Address(one)), Some(Argument::Address(other))) => one == other,
        (Some(Argument::From(held, one)), Some(Argument::From(also, other))) => {
            held != also || one == other
        }
        _ => true,
    }
}

/// The first argument of the call at the end of `code`, which begins at an address: by the last instruction before
/// it that puts one of these there. None if it is put there in another way.
pub fn argument(address: u64, code: &[u8]) -> Option<Argument> {
    let call = code.len().saturating_sub(CALL_BYTES_MIN);
    let least = call.saturating_sub(ARGUMENT_BYTES);
    (least..call).rev().find_map(|at| {
        let instruction = &code[at..];
        let number = |from: usize| {
            Some(i32::from_le_bytes(
                instruction.get(from..from + 4)?.try_into().ok()?,
            ))
        };
        // REX.W, with B for the registers from 8 on; `lea` and `mov`; the mode byte with rdi as its destination.
        match *instruction {
            [0x48, 0x8d, 0x3d, ..] => {
                let behind = address.checked_add(at as u64 + 7)?;
                Some(Argument::Address(
                    behind.wrapping_add_signed(number(3)?.into()),
                ))
            }
            [rex @ (0x48 | 0x49), 0x8d, mode, ..] if mode & 0xf8 == 0x78 && mode & 7 != 4 => {
                let offset = *instruction.get(3)? as i8;
                Some(Argument::From(register(rex, mode), offset.into()))
            }
            [rex @ (0x48 | 0x49), 0x8d, mode, ..] if mode & 0xf8 == 0xb8 && mode & 7 != 4 => {
                Some(Argument::From(register(rex, mode), number(3)?))
            }
            [rex @ (0x48 | 0x4c), 0x89, mode, ..] if mode & 0xc7 == 0xc7 => {
                let high = if rex == 0x4c { 8 } else { 0 };
                Some(Argument::From(high | ((mode >> 3) & 7), 0))
            }
            // Without position independence: `mov $address, %edi`.
            [0xbf, ..] => Some(Argument::Address(number(1)? as u32 as u64)),
            _ => None,
        }
    })
}

fn register(rex: u8, mode: u8) -> u8 {
    let high = if rex & 1 == 1 { 8 } else { 0 };
    high | (mode & 7)
}

fn moved(address: u64, offset: &[u8]) -> Option<u64> {
    let offset = i32::from_le_bytes(offset.try_into().ok()?);
    Some(address.wrapping_add_signed(offset.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_the_bytes_before_their_return() {
        // As an assembler encodes them.
        let address = |bytes: &[u8]| before(0x1000, bytes);
        assert_eq!(
            address(&[0x90, 0x90, 0xe8, 0xf0, 0xff, 0xff, 0xff]),
            Some(Target::Address(0xff0))
        );
        assert_eq!(
            address(&[0x90, 0xff, 0x15, 0x10, 0, 0, 0]),
            Some(Target::Slot(0x1010))
        );
        let unknown: [&[u8]; 8] = [
            &[0xff, 0xd0],                               // call *%rax
            &[0x41, 0xff, 0xd4],                         // call *%r12
            &[0xff, 0x10],                               // call *(%rax)
            &[0xff, 0x50, 0x08],                         // call *8(%rax)
            &[0xff, 0x90, 0x88, 0, 0, 0],                // call *0x88(%rax)
            &[0xff, 0x14, 0xc5, 0x78, 0x56, 0x34, 0x12], // call *0x12345678(,%rax,8)
            &[0xff, 0x54, 0x24, 0x08],                   // call *8(%rsp)
            &[0xff, 0x94, 0x24, 0x88, 0, 0, 0],          // call *0x88(%rsp)
        ];
        for bytes in unknown {
            assert_eq!(address(bytes), Some(Target::Unknown), "{bytes:x?}");
        }
        for bytes in [&[0x90; 7][..], &[0xff, 0xe0], &[0xff, 0x20], &[0xff], &[]] {
            assert_eq!(address(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn first_arguments_are_known_by_the_instruction_that_puts_them_there() {
        let call = [0xe8, 0, 0, 0, 0];
        let found = |code: &[u8]| argument(0x1000, &[code, &call].concat());
        let lea = [0x48, 0x8d, 0x3d, 0x10, 0, 0, 0]; // lea 0x10(%rip),%rdi
        assert_eq!(found(&lea), Some(Argument::Address(0x1017)));
        assert_eq!(
            found(&[0x48, 0x8d, 0x7b, 0x28]),
            Some(Argument::From(3, 0x28))
        ); // lea 0x28(%rbx),%rdi
        assert_eq!(
            found(&[0x49, 0x8d, 0xbd, 0x80, 0, 0, 0]),
            Some(Argument::From(13, 0x80))
        ); // lea 0x80(%r13),%rdi
        assert_eq!(found(&[0x48, 0x89, 0xef]), Some(Argument::From(5, 0))); // mov %rbp,%rdi
        assert_eq!(found(&[0x4c, 0x89, 0xe7]), Some(Argument::From(12, 0))); // mov %r12,%rdi
        assert_eq!(
            found(&[0xbf, 0x40, 0x10, 0x40, 0]),
            Some(Argument::Address(0x40_1040))
        ); // mov $0x401040,%edi
        // The nearest one counts, and what is no such instruction is none.
        assert_eq!(
            found(&[&lea[..], &[0x48, 0x89, 0xef]].concat()),
            Some(Argument::From(5, 0))
        );
        assert_eq!(found(&[0x90; 40]), None);
        assert_eq!(argument(0x1000, &[]), None);
        let (left, right) = (Some(Argument::Address(8)), Some(Argument::Address(16)));
        assert!(may_be_same(left, left) && !may_be_same(left, right) && may_be_same(left, None));
        let field = |held, at| Some(Argument::From(held, at));
        assert!(may_be_same(field(3, 8), field(5, 16)) && may_be_same(left, field(3, 8)));
        assert!(!may_be_same(field(3, 8), field(3, 16)));
    }

    #[test]
    fn entries_of_a_linkage_table_jump_by_a_slot() {
        let plain = [0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9];
        assert_eq!(jump(0x1030, &plain), Some(0x4018));
        let checked = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f,
        ];
        assert_eq!(jump(0x1050, &checked), Some(0x1050 + 11 + 0x2f75));
        assert_eq!(jump(0x1050, &[0x55, 0x48]), None);
        assert_eq!(jump(0x1050, &[0xff, 0x25, 0]), None);
    }
}
