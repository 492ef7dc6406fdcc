//! Keeps the first and the last part of a stream of any length.

use std::collections::VecDeque;

use concurve_wire::record::Output;

/// A bounded copy of an output stream.
#[derive(Debug)]
pub struct Excerpt {
    half_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl Excerpt {
    /// Keeps at most `bytes_max`: half from the head, half from the tail.
    pub fn new(bytes_max: u64) -> Self {
        Self {
            half_bytes: usize::try_from(bytes_max / 2).unwrap_or(usize::MAX),
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Appends what was read.
    pub fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let for_head = chunk.len().min(self.half_bytes - self.head.len());
        self.head.extend(&chunk[..for_head]);
        let rest = &chunk[for_head..];
        let rest = &rest[rest.len().saturating_sub(self.half_bytes)..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.half_bytes);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
    }

    /// Bytes that were pushed in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The line that most likely says why a program failed ([`telling`]); none if all are blank. If the
    /// middle was dropped, the line that the tail begins with is left out: its own beginning is missing, so
    /// whoever hides secrets in it might not know one by its end.
    pub fn telling_line(&self) -> Option<String> {
        let mut kept = self.head.clone();
        let is_whole = self.bytes == (self.head.len() + self.tail.len()) as u64;
        let skipped = match is_whole {
            true => 0,
            false => {
                let end = self.tail.iter().position(|byte| *byte == b'\n');
                end.unwrap_or(self.tail.len())
            }
        };
        kept.extend(self.tail.iter().skip(skipped));
        let said = telling(&String::from_utf8_lossy(&kept))?;
        Some(said.chars().take(TOLD_CHARS).collect())
    }

    /// The wire form.
    pub fn finish(mut self) -> Output {
        let kept = (self.head.len() + self.tail.len()) as u64;
        Output {
            bytes: self.bytes,
            head: String::from_utf8_lossy(&self.head).into_owned(),
            tail: String::from_utf8_lossy(self.tail.make_contiguous()).into_owned(),
            dropped: self.bytes - kept,
        }
    }
}

/// A line is told up to so many characters: enough for a command to type.
const TOLD_CHARS: usize = 600;

/// How Python begins what it says of an exception, whose name and message come last.
const TRACEBACK: &str = "Traceback (most recent call last)";

/// Words of a line that says what is fatal, and of one that says what went wrong.
const FATAL: [&str; 8] = [
    "fatal",
    "panic",
    "panicked",
    "emerg",
    "abort",
    "aborted",
    "segmentation",
    "segfault",
];
const WRONG: [&str; 17] = [
    "error",
    "exception",
    "failed",
    "failure",
    "cannot",
    "unable",
    "invalid",
    "unknown",
    "unrecognized",
    "unrecognised",
    "undefined",
    "refused",
    "denied",
    "illegal",
    "missing",
    "unexpected",
    "unsupported",
];
/// The same in several words.
const WRONG_WORDS: [&str; 7] = [
    "not defined",
    "not found",
    "no such",
    "could not",
    "can't",
    "not allowed",
    "giving up",
];

/// The line of a text that says why a program failed: the last exception of Python, else the first of
/// those that say most, since usage, hints, places in the code and what follows from it come behind it;
/// else the last line. A line that ends with a colon is told with the next.
fn telling(text: &str) -> Option<String> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let Some(chosen) = exception(&lines).or_else(|| most_telling(&lines)) else {
        return last(&lines);
    };
    let line = lines[chosen].trim();
    match lines.get(chosen + 1) {
        Some(next) if line.ends_with(':') => Some(format!("{line} {}", next.trim())),
        _ => Some(line.to_owned()),
    }
}

/// The last line; of one that is indented, behind the line that it belongs to: a remedy stands under what failed.
fn last(lines: &[&str]) -> Option<String> {
    let (last, before) = lines.split_last()?;
    let above = before.iter().rfind(|line| !is_indented(line));
    Some(match above {
        Some(above) if is_indented(last) => format!("{}; {}", above.trim(), last.trim()),
        _ => last.trim().to_owned(),
    })
}

/// The place of the line that names the last exception of Python.
fn exception(lines: &[&str]) -> Option<usize> {
    let begin = lines.iter().rposition(|line| line.starts_with(TRACEBACK))?;
    let behind = lines[begin + 1..].iter();
    let offset = behind.clone().position(|line| !is_indented(line))?;
    Some(begin + 1 + offset)
}

/// The place of the first line that says most; none if no line says anything of an error.
fn most_telling(lines: &[&str]) -> Option<usize> {
    let ranks: Vec<u8> = lines.iter().map(|line| rank(line)).collect();
    let most = *ranks.iter().max()?;
    if most == 0 {
        return None;
    }
    ranks.iter().position(|rank| *rank == most)
}

/// How much a line says of an error: 0 is nothing. What is indented belongs to another line: to usage, or to
/// a place in the code.
fn rank(line: &str) -> u8 {
    let lower = line.trim().to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |wanted: &[&str]| {
        (0..words.len()).any(|at| wanted.contains(&words[at]) && !counts_none(&words, at))
    };
    if has(&["warning", "warn", "usage"]) {
        return 0;
    }
    let begins = words.first() == Some(&"error") && !counts_none(&words, 0);
    let says_fatal = begins || has(&FATAL) || names_exception(line);
    let says_wrong = has(&WRONG) || WRONG_WORDS.iter().any(|part| lower.contains(part));
    match (says_fatal, says_wrong, is_indented(line)) {
        (true, _, false) => 4,
        (false, true, false) => 3,
        (true, _, true) => 2,
        (false, true, true) => 1,
        _ => 0,
    }
}

/// Is the word at this place counted, and there are none: "0 failed", "no error", "failed requests: 0"?
fn counts_none(words: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map(|it| words[it]);
    let behind = &words[at + 1..];
    let zero_behind = match words[at] {
        // What is behind it says which error it was, but for a zero that ends the line.
        "error" => behind == ["0"],
        _ => behind.iter().take(2).any(|it| *it == "0"),
    };
    matches!(before, Some("0" | "no")) || zero_behind
}

/// Does a word of the line name an exception or an error, as `java.lang.OutOfMemoryError:` does?
fn names_exception(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        let name = word.trim_end_matches(':');
        let is_name = |end: &str| name.ends_with(end) && name.len() > end.len();
        is_name("Exception") || is_name("Error")
    }) && !line.trim_start().starts_with("at ")
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(bytes_max: u64, chunks: &[&str]) -> Output {
        let mut excerpt = Excerpt::new(bytes_max);
        for chunk in chunks {
            excerpt.push(chunk.as_bytes());
        }
        excerpt.finish()
    }

    #[test]
    fn short_streams_are_kept_whole() {
        let output = excerpt(8, &["ab", "cd"]);
        assert_eq!((output.head.as_str(), output.tail.as_str()), ("abcd", ""));
        assert_eq!((output.bytes, output.dropped), (4, 0));
    }

    #[test]
    fn long_streams_lose_their_middle() {
        let output = excerpt(8, &["abc", "defghijkl", "mn"]);
        assert_eq!(
            (output.head.as_str(), output.tail.as_str()),
            ("abcd", "klmn")
        );
        assert_eq!((output.bytes, output.dropped), (14, 6));
    }

    #[test]
    fn nothing_kept_still_counts() {
        assert_eq!(
            (excerpt(0, &["abc"]).bytes, excerpt(0, &["abc"]).dropped),
            (3, 3)
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut excerpt = Excerpt::new(100);
        excerpt.push(&[b'a', 0xff, b'\n', b'\n']);
        assert_eq!(excerpt.telling_line().unwrap(), "a\u{fffd}");
        assert_eq!(excerpt.finish().head, "a\u{fffd}\n\n");
    }

    #[test]
    fn a_line_without_its_beginning_tells_nothing() {
        let telling_line = |text: &str| {
            let mut excerpt = Excerpt::new(20);
            excerpt.push(text.as_bytes());
            excerpt.telling_line()
        };
        assert_eq!(telling_line("one\nerror: ").unwrap(), "error:");
        let cut = "first line\npassword=word\nend\n";
        assert_eq!(telling_line(cut).unwrap(), "end");
        assert_eq!(
            telling_line("begin-and-a-password-at-the-end").unwrap(),
            "begin-and-"
        );
        assert_eq!(
            telling_line("error: abcdefgh secret\nusage").unwrap(),
            "error: abc"
        );
    }

    #[test]
    fn the_error_tells_more_than_the_hint_behind_it() {
        let telling_line = |text: &str| {
            let mut excerpt = Excerpt::new(1000);
            excerpt.push(text.as_bytes());
            excerpt.telling_line()
        };
        let clap = "error: unexpected argument '--x'\n\nUsage: y\n\nFor more, try '--help'.\n";
        assert_eq!(
            telling_line(clap).unwrap(),
            "error: unexpected argument '--x'"
        );
        assert_eq!(
            telling_line("warming up\ndivision by zero\n").unwrap(),
            "division by zero"
        );
        assert_eq!(telling_line(" \n"), None);
    }

    #[test]
    fn the_line_that_names_the_cause_is_told_not_the_last() {
        let cases = [
            (
                "pgbench (15.18)\npgbench: error: connection to server on socket \"/s\" failed: FATAL:  sorry, too \
                 many clients already\npgbench: error: could not create connection for client 13\n",
                "pgbench: error: connection to server on socket \"/s\" failed: FATAL:  sorry, too many \
                 clients already",
            ),
            (
                "Exception in thread \"main\" java.lang.NumberFormatException: For input string: \"x\"\n\tat \
                 java.base/java.lang.Integer.parseInt(Integer.java:652)\n\tat Primes.main(Primes.java:3)\n",
                "Exception in thread \"main\" java.lang.NumberFormatException: For input string: \"x\"",
            ),
            (
                "flag provided but not defined: -x\nUsage of ./server:\n  -fail\n    \texit on error\n  -n int\n\
                 \tthreads\n",
                "flag provided but not defined: -x",
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\nKeyError: \
                 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent \
                 call last):\n  File \"a.py\", line 3, in <module>\n    raise ValueError('b')\nValueError: b\n",
                "ValueError: b",
            ),
            (
                "panic: runtime error: index out of range [3] with length 2\n\ngoroutine 1 [running]:\n\
                 main.main()\n\t/x/main.go:5 +0x1d\nexit status 2\n",
                "panic: runtime error: index out of range [3] with length 2",
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:\nno threads\nnote: run with `RUST_BACKTRACE=1` \
                 environment variable to display a backtrace\n",
                "thread 'main' panicked at src/main.rs:2:5: no threads",
            ),
            (
                "usage: a.py [-h]\na.py: error: unrecognized arguments: --x\n",
                "a.py: error: unrecognized arguments: --x",
            ),
            (
                "a: unrecognized option '--x'\nTry 'a --help' for more information.\n",
                "a: unrecognized option '--x'",
            ),
            (
                "nginx: [warn] a directive is missing\nnginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address \
                 already in use)\nnginx: still could not bind()\n",
                "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
            ),
            ("reading\n0 errors\nout of luck\n", "out of luck"),
            (
                "errors: 0 so far\nSegmentation violation in module x\n",
                "Segmentation violation in module x",
            ),
            (
                "test a ok, 0 failed\ndisk full, giving up\n",
                "disk full, giving up",
            ),
            ("Failed requests:  0\nerror=0\nended early\n", "ended early"),
            ("errorless so far\nended early\n", "ended early"),
            (
                "reading\nload: there is no data yet\n  try: load --init-only\n",
                "load: there is no data yet; try: load --init-only",
            ),
            ("  try: load --init-only\n", "try: load --init-only"),
            (
                "error: 0 arguments given\nTry --help\n",
                "error: 0 arguments given",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(telling(text).unwrap(), expected);
        }
    }
}
