//! Finds a regular expression in a line: all ways through its states at once, so that no pattern takes
//! longer than its states times the characters.

use regex_syntax::Parser;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Most states of a pattern; counted repetitions multiply them.
const STATES_MAX: usize = 10_000;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Pattern {
    states: Vec<State>,
}

#[derive(Debug, Clone)]
enum State {
    /// Takes a character of one of these ranges.
    Take(Vec<(char, char)>),
    /// Goes on in two ways.
    Split(usize, usize),
    Goto(usize),
    /// Goes on if the position is such.
    Look(Look),
    Match,
}

impl Pattern {
    /// Compiles a pattern. The error says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let hir = Parser::new().parse(text).map_err(|error| {
            let lines = error.to_string();
            let said = lines.lines().next_back().unwrap_or_default();
            said.trim_start_matches("error: ").to_owned()
        })?;
        let mut pattern = Self { states: Vec::new() };
        pattern.compile(&hir)?;
        pattern.push(State::Match)?;
        Ok(pattern)
    }

    /// Whether the pattern matches anywhere in the line.
    pub fn is_in(&self, line: &str) -> bool {
        let mut now = Active::new(self.states.len());
        let mut next = Active::new(self.states.len());
        let mut before = None;
        let mut rest = line.chars();
        loop {
            let after = rest.clone().next();
            if self.enter(0, before, after, &mut now) {
                return true;
            }
            let Some(character) = rest.next() else {
                return false;
            };
            let then = rest.clone().next();
            next.clear();
            for at in now.list.drain(..) {
                if let State::Take(ranges) = &self.states[at]
                    && ranges
                        .iter()
                        .any(|(low, high)| (*low..=*high).contains(&character))
                    && self.enter(at + 1, Some(character), then, &mut next)
                {
                    return true;
                }
            }
            std::mem::swap(&mut now, &mut next);
            before = Some(character);
        }
    }

    /// Adds a state and those that follow it without a character; whether the match is among them.
    fn enter(
        &self,
        first: usize,
        before: Option<char>,
        after: Option<char>,
        active: &mut Active,
    ) -> bool {
        let mut pending = vec![first];
        while let Some(at) = pending.pop() {
            if std::mem::replace(&mut active.seen[at], true) {
                continue;
            }
            match &self.states[at] {
                State::Match => return true,
                State::Take(_) => active.list.push(at),
                State::Goto(to) => pending.push(*to),
                State::Split(one, other) => pending.extend([*one, *other]),
                State::Look(look) if holds(*look, before, after) => pending.push(at + 1),
                State::Look(_) => {}
            }
        }
        false
    }

    fn push(&mut self, state: State) -> Result<usize, String> {
        if self.states.len() >= STATES_MAX {
            return Err("too large: repeat fewer times".into());
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    fn compile(&mut self, hir: &Hir) -> Result<(), String> {
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| "not UTF-8".to_owned())?;
                for character in text.chars() {
                    self.push(State::Take(vec![(character, character)]))?;
                }
            }
            HirKind::Class(class) => {
                let ranges = ranges(class);
                self.push(State::Take(ranges))?;
            }
            HirKind::Look(look) => {
                self.push(State::Look(*look))?;
            }
            HirKind::Capture(group) => self.compile(&group.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.compile(part)?;
                }
            }
            HirKind::Alternation(parts) => self.alternatives(parts)?,
            HirKind::Repetition(repetition) => {
                for _ in 0..repetition.min {
                    self.compile(&repetition.sub)?;
                }
                match repetition.max {
                    None => self.any_times(&repetition.sub)?,
                    Some(max) => {
                        for _ in repetition.min..max {
                            self.maybe(&repetition.sub)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn alternatives(&mut self, parts: &[Hir]) -> Result<(), String> {
        let Some((last, others)) = parts.split_last() else {
            return Ok(());
        };
        let mut ends = Vec::new();
        for part in others {
            let split = self.push(State::Split(0, 0))?;
            self.compile(part)?;
            ends.push(self.push(State::Goto(0))?);
            self.states[split] = State::Split(split + 1, self.states.len());
        }
        self.compile(last)?;
        for end in ends {
            self.states[end] = State::Goto(self.states.len());
        }
        Ok(())
    }

    fn any_times(&mut self, part: &Hir) -> Result<(), String> {
        let split = self.push(State::Split(0, 0))?;
        self.compile(part)?;
        self.push(State::Goto(split))?;
        self.states[split] = State::Split(split + 1, self.states.len());
        Ok(())
    }

    fn maybe(&mut self, part: &Hir) -> Result<(), String> {
        let split = self.push(State::Split(0, 0))?;
        self.compile(part)?;
        self.states[split] = State::Split(split + 1, self.states.len());
        Ok(())
    }
}

/// The states in which a match may be.
#[derive(Debug)]
struct Active {
    list: Vec<usize>,
    seen: Vec<bool>,
}

impl Active {
    fn new(states: usize) -> Self {
        Self {
            list: Vec::new(),
            seen: vec![false; states],
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
    }
}

fn ranges(class: &Class) -> Vec<(char, char)> {
    match class {
        Class::Unicode(class) => class.iter().map(|it| (it.start(), it.end())).collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|it| (char::from(it.start()), char::from(it.end())))
            .collect(),
    }
}

/// Whether a position, between two characters, is such.
fn holds(look: Look, before: Option<char>, after: Option<char>) -> bool {
    let word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    let (left, right) = (word(before), word(after));
    match look {
        Look::Start | Look::StartLF | Look::StartCRLF => before.is_none(),
        Look::End | Look::EndLF | Look::EndCRLF => after.is_none(),
        Look::WordAscii | Look::WordUnicode => left != right,
        Look::WordAsciiNegate | Look::WordUnicodeNegate => left == right,
        Look::WordStartAscii | Look::WordStartUnicode => !left && right,
        Look::WordEndAscii | Look::WordEndUnicode => left && !right,
        Look::WordStartHalfAscii | Look::WordStartHalfUnicode => !left,
        Look::WordEndHalfAscii | Look::WordEndHalfUnicode => !right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, line: &str) -> bool {
        Pattern::new(pattern).unwrap().is_in(line)
    }

    #[test]
    fn patterns_of_all_kinds() {
        for (pattern, line, expected) in [
            (
                "Ready to accept connections",
                "1:M * Ready to accept connections tcp",
                true,
            ),
            ("ready", "Ready", false),
            ("(?i)ready", "READY.", true),
            (r"listening on .*:(\d+)$", "listening on [::]:8080", true),
            (
                r"listening on .*:(\d+)$",
                "listening on [::]:8080 now",
                false,
            ),
            ("^up", "up and away", true),
            ("^up", "sup", false),
            (r"\bup\b", "is up.", true),
            (r"\bup\b", "supper", false),
            ("a|bc|d", "xbcx", true),
            ("a|bc|d", "xbx", false),
            ("ab{2,3}c", "abbbc", true),
            ("ab{2,3}c", "abc", false),
            ("ab{2,3}c", "abbbbc", false),
            ("(ab)*c", "c", true),
            ("(ab)+c", "c", false),
            ("(ab)+c", "ababc", true),
            ("x?y", "y", true),
            ("[^a-z]", "abc", false),
            ("[^a-z]", "abC", true),
            ("grün|bereit", "Server ist grün", true),
            ("", "", true),
            (".", "", false),
            (
                "(a*)*b",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
                false,
            ),
            ("a.c", "abc", true),
        ] {
            assert_eq!(found(pattern, line), expected, "{pattern:?} in {line:?}");
        }
    }

    #[test]
    fn a_long_line_takes_time_in_proportion() {
        let line = "a".repeat(100_000);
        assert!(!found("(a|aa|aaa)*b", &line));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["(", "[a", "(?=a)", r"\1", "a{99999}", "(a{200}){200}"] {
            let error = Pattern::new(text).unwrap_err();
            assert!(
                !error.is_empty() && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
