//! A code object of CPython: the function that it is, and the line of each of its instructions.

/// Bytes of an instruction, with which the table of lines counts.
const UNIT_BYTES: u32 = 2;
/// Longest name of a function or of a file that is read.
pub const NAME_MAX: usize = 1000;
/// Below it are no characters of names.
const SPACE: u32 = 0x20;

/// What a code object says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// With the classes and functions that it is in.
    pub function: String,
    pub file: String,
    pub first_line: u32,
    /// `co_linetable`.
    pub lines: Vec<u8>,
}

impl Code {
    /// The line of the instruction at so many bytes. The table is a row of entries: a byte with its highest bit
    /// set, which has the kind of the entry and for how many instructions it is, and what the kind needs
    /// (`Objects/locations.md` of CPython).
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        let mut line = i64::from(self.first_line);
        let mut begin: u32 = 0;
        let mut entries = self.lines.as_slice();
        while let Some((first, rest)) = entries.split_first() {
            let length = rest.iter().position(|byte| byte & 0x80 != 0);
            let (operands, next) = rest.split_at(length.unwrap_or(rest.len()));
            entries = next;
            let kind = (first >> 3) & 15;
            line = line.checked_add(match kind {
                13 | 14 => signed(operands)?,
                10..=12 => i64::from(kind) - 10,
                _ => 0,
            })?;
            let units = u32::from(first & 7) + 1;
            let end = begin.checked_add(UNIT_BYTES * units)?;
            if offset < end {
                // 15: of no line.
                return u32::try_from(line).ok().filter(|it| *it > 0 && kind != 15);
            }
            begin = end;
        }
        None
    }
}

/// A number in pieces of six bits, the lowest ones first, whose lowest bit is its sign.
fn signed(operands: &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for (index, byte) in operands.iter().enumerate() {
        let shift = u32::try_from(6 * index).ok().filter(|it| *it < 60)?;
        value |= u64::from(byte & 0x3f) << shift;
        if byte & 0x40 == 0 {
            let size = (value >> 1) as i64;
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

/// The text of a string object of so many characters. `ascii` is what stands where the characters of one with
/// ASCII alone begin, `wide` where those of any other do: of one, two or four bytes each, with a 0 at the end.
/// What is no text for a name there is not read as one, so no flags of the object are needed.
pub fn text(length: usize, ascii: &[u8], wide: &[u8]) -> Option<String> {
    let of_width = |bytes: &[u8], width: usize| -> Option<String> {
        let count = length.checked_add(1)?.checked_mul(width)?;
        let mut characters = bytes.get(..count)?.chunks_exact(width).map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |all, byte| (all << 8) | u32::from(*byte))
        });
        let mut found = String::with_capacity(length);
        for value in characters.by_ref().take(length) {
            found.push(char::from_u32(value).filter(|_| value >= SPACE)?);
        }
        (characters.next() == Some(0)).then_some(found)
    };
    of_width(ascii, 1).filter(|it| it.is_ascii()).or_else(|| {
        [1, 2, 4]
            .into_iter()
            .find_map(|width| of_width(wide, width))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u8, units: u8) -> u8 {
        0x80 | (kind << 3) | (units - 1)
    }

    #[test]
    fn each_instruction_has_its_line() {
        let code = Code {
            first_line: 10,
            lines: [
                // One line on, with columns; the same line; two lines on; no line; 100 lines back and 3 on.
                vec![entry(11, 1), 4, 9],
                vec![entry(3, 2), 0x12],
                vec![entry(12, 3), 1, 2],
                vec![entry(15, 1)],
                vec![entry(13, 1), 0x40 | 9, 3],
                vec![entry(14, 8), 6, 0, 1, 1],
            ]
            .concat(),
            ..Code::default()
        };
        let lines: Vec<_> = (0..20).step_by(2).map(|it| code.line_at(it)).collect();
        let is = |line| Some(line);
        assert_eq!(
            lines[..7],
            [is(11), is(11), is(11), is(13), is(13), is(13), None]
        );
        // -(201 >> 1) = -100: below 1, so no line.
        assert_eq!(lines[7], None);
        assert_eq!(code.line_at(1000), None);
    }

    #[test]
    fn any_table_ends() {
        for length in 0..200 {
            let lines: Vec<u8> = (0..length).map(|it| (it * 37 % 251) as u8).collect();
            let code = Code {
                lines,
                ..Code::default()
            };
            assert!((0..400).all(|offset| code.line_at(offset) != Some(0)));
        }
    }

    fn wide(text: &str, width: usize) -> Vec<u8> {
        let end = std::iter::once(0);
        let characters = text.chars().map(u32::from).chain(end);
        characters
            .flat_map(|it| it.to_le_bytes().into_iter().take(width))
            .collect()
    }

    #[test]
    fn names_are_read_whatever_their_width() {
        let ascii = |text: &str| [text.as_bytes(), &[0]].concat();
        assert_eq!(text(3, &ascii("add"), &[]).as_deref(), Some("add"));
        // What stands there instead: the length and the address of a copy in UTF-8.
        let no_text = [5, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x41, 0x42, 0, 0, 0];
        for (name, width) in [("größe", 1), ("Größe_š", 2), ("加算", 2), ("f😀", 4)] {
            let length = name.chars().count();
            assert_eq!(
                text(length, &no_text, &wide(name, width)).as_deref(),
                Some(name)
            );
        }
        assert_eq!(text(3, &ascii("ad\n"), &[]), None);
        assert_eq!(text(usize::MAX, &ascii("add"), &no_text), None);
    }
}
