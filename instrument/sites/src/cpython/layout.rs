//! Where CPython keeps what is read of it: from version 3.13 on its own table says so, at the beginning of its
//! state, for debuggers and profilers (`Include/internal/pycore_debug_offsets.h`). The layouts of 3.11 and 3.12
//! are those of their headers.

use concurve_probe::elf_sections::number;

/// Begins the table.
const COOKIE: &[u8] = b"xdebugpy";
const TABLE_WORDS: usize = 64;
pub const TABLE_BYTES: usize = 8 * TABLE_WORDS;
/// What is read of a thread, a frame or a code object is no longer.
pub const OBJECT_BYTES_MAX: usize = 1024;
/// The states of the runtime and of an interpreter are larger.
const STATE_BYTES_MAX: usize = 64 << 20;

/// Offsets in the interpreter's structures. A version in hexadecimal has its numbers in its first two bytes:
/// `0x030b…` is 3.11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// In the state of the runtime: the first interpreter.
    pub interpreters: usize,
    /// In an interpreter: the next one, and its first thread.
    pub next_interpreter: usize,
    pub threads: usize,
    /// In a thread: the next one, the number that the kernel gives it, and its innermost frame.
    pub next_thread: usize,
    pub native_thread: usize,
    pub frame: usize,
    /// The frame is not in the thread itself, but so far behind where that points to.
    pub frame_behind: Option<usize>,
    /// In a frame: its caller, its code, its instruction, and who owns it, where there are frames that
    /// stand for the interpreter.
    pub caller: usize,
    pub code: usize,
    pub instruction: usize,
    pub owner: Option<usize>,
    /// In a code object.
    pub filename: usize,
    pub qualified_name: usize,
    pub line_table: usize,
    pub first_line: usize,
    pub instructions: usize,
    /// Where the characters of a string begin, if all are ASCII, and if not.
    pub ascii: usize,
    pub characters: usize,
}

impl Layout {
    fn is_plausible(&self) -> bool {
        let of_states = [self.interpreters, self.next_interpreter, self.threads];
        let of_objects = [
            self.next_thread,
            self.native_thread,
            self.frame,
            self.caller,
            self.code,
            self.instruction,
            self.owner.unwrap_or(0),
            self.filename,
            self.qualified_name,
            self.line_table,
            self.first_line,
            self.instructions,
        ];
        of_states.into_iter().all(|it| it < STATE_BYTES_MAX)
            && of_objects
                .into_iter()
                .all(|it| it.saturating_add(8) <= OBJECT_BYTES_MAX)
    }
}

/// That of a version, with what stands at the beginning of the runtime's state; or why it is not known.
pub fn layout_of(version: u32, table: &[u8]) -> Result<Layout, String> {
    let [major, minor, ..] = version.to_be_bytes();
    match (major, minor) {
        (3, 11) => Ok(PYTHON_3_11),
        (3, 12) => Ok(PYTHON_3_12),
        (3, 13 | 14) => by_table(version, minor, table),
        _ => Err(unknown(&format!("{major}.{minor}"))),
    }
}

/// Why the frames of a version are not known.
pub fn unknown(version: &str) -> String {
    format!("frames of Python {version} are not known, only those of 3.11 to 3.14")
}

const PYTHON_3_11: Layout = Layout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 16,
    next_thread: 8,
    native_thread: 160,
    frame: 56,
    frame_behind: Some(8),
    caller: 48,
    code: 32,
    instruction: 56,
    owner: None,
    filename: 112,
    qualified_name: 128,
    line_table: 136,
    first_line: 72,
    instructions: 184,
    ascii: 48,
    characters: 72,
};

const PYTHON_3_12: Layout = Layout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 72,
    next_thread: 8,
    native_thread: 144,
    frame: 56,
    frame_behind: Some(0),
    caller: 8,
    code: 0,
    instruction: 56,
    owner: Some(70),
    filename: 112,
    qualified_name: 128,
    line_table: 136,
    first_line: 68,
    instructions: 192,
    ascii: 40,
    characters: 56,
};

/// Offsets by the table of the interpreter, whose entries moved between versions.
fn by_table(version: u32, minor: u8, table: &[u8]) -> Result<Layout, String> {
    let entry = |index: usize| number(table, 8 * index, 8).unwrap_or(u64::MAX);
    if !table.starts_with(COOKIE) || entry(1) != u64::from(version) {
        return Err(format!(
            "the table of offsets of Python 3.{minor} was not found in its state"
        ));
    }
    if entry(2) != 0 {
        return Err(format!(
            "frames of Python 3.{minor} without its global interpreter lock are not known"
        ));
    }
    // Where the parts of the table on threads, on frames and on code begin.
    let (threads, frames, code) = match minor {
        13 => (19, 28, 34),
        _ => (22, 31, 39),
    };
    let at = |index: usize| entry(index) as usize;
    let layout = Layout {
        interpreters: at(5),
        next_interpreter: at(8),
        threads: at(9),
        next_thread: at(threads + 2),
        native_thread: at(threads + 6),
        frame: at(threads + 4),
        frame_behind: None,
        caller: at(frames + 1),
        code: at(frames + 2),
        instruction: at(frames + 3),
        owner: Some(at(frames + 5)),
        filename: at(code + 1),
        qualified_name: at(code + 3),
        line_table: at(code + 4),
        first_line: at(code + 5),
        instructions: at(code + 9),
        ascii: 40,
        characters: 56,
    };
    if !layout.is_plausible() {
        return Err(format!(
            "the table of offsets of Python 3.{minor} is not as expected"
        ));
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(version: u32, entries: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = COOKIE.to_vec();
        let mut words = vec![0; TABLE_WORDS - 1];
        words[0] = u64::from(version);
        for (index, value) in entries {
            words[index - 1] = *value;
        }
        bytes.extend(words.iter().flat_map(|it: &u64| it.to_le_bytes()));
        bytes
    }

    #[test]
    fn versions_without_a_table_have_that_of_their_headers() {
        assert_eq!(layout_of(0x030b_07f0, &[]), Ok(PYTHON_3_11));
        assert_eq!(layout_of(0x030c_01f0, &[]), Ok(PYTHON_3_12));
        let old = layout_of(0x030a_0000, &[]).unwrap_err();
        assert!(old.contains("3.10 are not known"), "{old}");
        assert!(layout_of(0x030f_0000, &[]).unwrap_err().contains("3.15"));
    }

    #[test]
    fn a_table_is_read_as_its_version_has_it() {
        let version = 0x030d_01f0;
        let found = table(
            version,
            &[
                (5, 632),
                (8, 7264),
                (9, 7344),
                (21, 8),
                (23, 72),
                (25, 152),
                (35, 112),
                (43, 200),
            ],
        );
        let layout = layout_of(version, &found).unwrap();
        assert_eq!(
            (layout.interpreters, layout.next_interpreter, layout.threads),
            (632, 7264, 7344)
        );
        assert_eq!(
            (layout.next_thread, layout.frame, layout.native_thread),
            (8, 72, 152)
        );
        assert_eq!((layout.filename, layout.instructions), (112, 200));
        let version = 0x030e_00f0;
        let found = table(
            version,
            &[(24, 8), (26, 72), (28, 160), (36, 74), (40, 112), (48, 208)],
        );
        let layout = layout_of(version, &found).unwrap();
        assert_eq!(
            (layout.next_thread, layout.frame, layout.native_thread),
            (8, 72, 160)
        );
        assert_eq!(
            (layout.owner, layout.filename, layout.instructions),
            (Some(74), 112, 208)
        );
    }

    #[test]
    fn a_table_that_is_not_understood_is_refused() {
        let version = 0x030d_00f0;
        for (bytes, reason) in [
            (vec![0; TABLE_BYTES], "was not found"),
            (table(0x030d_01f0, &[]), "was not found"),
            (
                table(version, &[(2, 1)]),
                "without its global interpreter lock",
            ),
            (table(version, &[(25, 1 << 20)]), "not as expected"),
            (table(version, &[(5, u64::MAX >> 1)]), "not as expected"),
            (table(version, &[])[..100].to_vec(), "not as expected"),
        ] {
            let found = layout_of(version, &bytes).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
    }
}
