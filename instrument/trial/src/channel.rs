//! The report channel: splits the bytes of a pipe into report lines, whatever the program writes.

use concurve_reporter::line::ReportLine;
use concurve_wire::record::ReportError;

/// Longest line; encoded histograms are long.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Errors kept word for word; further ones are only counted.
const ERRORS_MAX: usize = 20;
const EXCERPT_CHARS: usize = 120;

/// Cuts a byte stream into report lines.
#[derive(Debug, Default)]
pub struct Channel {
    partial: Vec<u8>,
    /// The current line is too long and is being skipped.
    skipping: bool,
    lines: u64,
    errors: Vec<ReportError>,
    errors_more: u64,
}

impl Channel {
    /// Takes what was read; gives the lines that it completed, with their numbers.
    pub fn push(&mut self, mut chunk: &[u8]) -> Vec<(u64, ReportLine)> {
        let mut lines = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.append(&chunk[..end]);
            lines.extend(self.finish_line());
            chunk = &chunk[end + 1..];
        }
        self.append(chunk);
        lines
    }

    /// The stream has ended: a last line without a line feed counts.
    pub fn finish(&mut self) -> Option<(u64, ReportLine)> {
        if self.partial.is_empty() && !self.skipping {
            return None;
        }
        self.finish_line()
    }

    /// Records that a line could be parsed but makes no sense.
    pub fn refuse(&mut self, line: u64, message: String, excerpt: &str) {
        if self.errors.len() >= ERRORS_MAX {
            self.errors_more += 1;
            return;
        }
        self.errors.push(ReportError {
            line,
            message,
            excerpt: excerpt.chars().take(EXCERPT_CHARS).collect(),
        });
    }

    /// The lines that were not understood.
    pub fn into_errors(mut self) -> Vec<ReportError> {
        if self.errors_more > 0 {
            self.errors.push(ReportError {
                line: self.lines,
                message: format!("{} further lines were not understood", self.errors_more),
                excerpt: String::new(),
            });
        }
        self.errors
    }

    fn append(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX - self.partial.len();
        self.skipping |= part.len() > room;
        self.partial.extend(&part[..part.len().min(room)]);
    }

    fn finish_line(&mut self) -> Option<(u64, ReportLine)> {
        self.lines += 1;
        let line = std::mem::take(&mut self.partial);
        let too_long = std::mem::take(&mut self.skipping);
        let shown = String::from_utf8_lossy(&line);
        if too_long {
            let message = format!("longer than {LINE_BYTES_MAX} bytes; write shorter lines");
            self.refuse(self.lines, message, &shown);
            return None;
        }
        if shown.trim().is_empty() {
            return None;
        }
        match parse(&line) {
            Ok(report) => Some((self.lines, report)),
            Err(message) => {
                self.refuse(self.lines, message, &shown);
                None
            }
        }
    }
}

fn parse(line: &[u8]) -> Result<ReportLine, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let kinds = ["ready", "phase", "indicator", "fact", "histogram"];
    let Some(kind) = kinds.iter().find(|kind| value.get(**kind).is_some()) else {
        return Err(format!("not a report line: has none of the keys {kinds:?}"));
    };
    // One kind at a time, so that the message says what is wrong with it.
    match *kind {
        "ready" => serde_json::from_value(value).map(ReportLine::Ready),
        "phase" => serde_json::from_value(value).map(ReportLine::Phase),
        "indicator" => serde_json::from_value(value).map(ReportLine::Indicator),
        "fact" => serde_json::from_value(value).map(ReportLine::Fact),
        _ => serde_json::from_value(value).map(ReportLine::Histogram),
    }
    .map_err(|error| format!("not a {kind} line: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_come_in_any_pieces() {
        let text = b"{\"ready\":true}\n\n{\"indicator\":\"x_ns\",\"value\":1}\n{\"fact\":\"a\",\"value\":[1]}";
        for size in 1..text.len() {
            let mut channel = Channel::default();
            let mut lines: Vec<_> = text
                .chunks(size)
                .flat_map(|chunk| channel.push(chunk))
                .collect();
            lines.extend(channel.finish());
            let numbers: Vec<u64> = lines.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, [1, 3, 4]);
            assert!(matches!(lines[1].1, ReportLine::Indicator(_)));
            assert!(channel.into_errors().is_empty());
        }
    }

    #[test]
    fn garbage_is_reported_and_harmless() {
        let mut channel = Channel::default();
        let lines = channel.push(
            b"hello\n{\"x\":1}\n\xff\xfe\n{\"phase\":\"a\",\"edge\":\"middle\"}\n\
              {\"indicator\":\"a\",\"value\":\"b\"}\n{\"ready\":true}\n[1]\n",
        );
        assert_eq!(lines.len(), 1);
        let errors = channel.into_errors();
        let numbers: Vec<u64> = errors.iter().map(|error| error.line).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 7]);
        assert!(errors[0].message.contains("JSON"));
        assert!(errors[2].message.contains("UTF-8"));
        assert!(errors[3].message.contains("phase line"));
    }

    #[test]
    fn errors_are_bounded_and_counted() {
        let mut channel = Channel::default();
        channel.push("x\n".repeat(1000).as_bytes());
        let errors = channel.into_errors();
        assert_eq!(errors.len(), ERRORS_MAX + 1);
        assert!(errors.last().unwrap().message.starts_with("980 "));
    }

    #[test]
    fn whatever_a_program_writes_is_harmless() {
        let corpus = [
            b"{\"ready\":true}\n\n{\"phase\":\"measure\",\"edge\":\"begin\",\"at_ns\":17}\n".to_vec(),
            b"{\"indicator\":\"x_ns\",\"value\":1e3,\"unit\":\"ns\",\"worker\":\"w1\"}\n".to_vec(),
            b"{\"fact\":\"a\",\"value\":[1,{\"b\":null}]}\n{\"fact\":\"b\",\"value\":\"\\u00e9\"}".to_vec(),
            b"{\"histogram\":\"latency\",\"unit\":\"ns\",\"encoded\":\"HISTFAAAABx4nJNpmSzMwA==\"}\n".to_vec(),
        ];
        let words: [&[u8]; 10] = [
            b"\n",
            b"\"",
            b"{",
            b"[",
            b"[[[[[[[[[[[[[[[[",
            b"null",
            b"true",
            b"1e999",
            b"\"ready\":",
            b"\\ud800",
        ];
        concurve_fuzz::Target::new(env!("CARGO_PKG_NAME"), "channel::tests::whatever", &corpus)
            .words(&words)
            .run(|input, draw| {
                let (mut channel, mut rest, mut lines) = (Channel::default(), input, 0);
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(1 + draw.below(rest.len()));
                    lines += channel.push(piece).len();
                    rest = after;
                }
                lines += channel.finish().iter().count();
                let errors = channel.into_errors();
                assert!(errors.len() <= ERRORS_MAX + 1);
                assert!(lines + errors.len() <= input.split(|it| *it == b'\n').count() + 1);
            });
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut channel = Channel::default();
        for _ in 0..64 {
            channel.push(&[b'x'; 1 << 16]);
        }
        assert!(channel.partial.len() <= LINE_BYTES_MAX);
        assert_eq!(channel.push(b"\n{\"ready\":true}\n").len(), 1);
        assert!(channel.into_errors()[0].message.contains("longer"));
    }
}
