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

    /// The line that most likely says why a program failed; none if all are blank. The first that
    /// begins with `error`, since usage and hints follow it; otherwise the last. If the middle was
    /// dropped, the line that the tail begins with is left out: its own beginning is missing, so whoever
    /// hides secrets in it might not know one by its end.
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
        let text = String::from_utf8_lossy(&kept);
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines()
            .find(|line| line.to_ascii_lowercase().starts_with("error"))
            .or_else(|| lines().next_back())
            .map(|line| line.chars().take(400).collect())
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
}
