//! Words, read one after the other.

use crate::command::{Refusal, Words};

/// What is left to be read.
pub struct Rest<'a, W: ?Sized> {
    words: &'a W,
    at: usize,
}

impl<'a, W: Words + ?Sized> Rest<'a, W> {
    pub fn of(words: &'a W) -> Self {
        Self { words, at: 0 }
    }

    /// The place of the next word.
    pub fn next(&mut self) -> Option<usize> {
        let at = self.at;
        self.at += 1;
        (at < self.words.count()).then_some(at)
    }

    /// The same, of a word that must be there.
    pub fn need(&mut self, what: &str) -> Result<usize, Refusal> {
        self.next()
            .ok_or_else(|| usage(format!("the statement ends where {what} is needed")))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.words.word(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Passes a word if it is the next one.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.is(self.at, word);
        self.at += usize::from(found);
        found
    }

    /// Reads a number of this range.
    pub fn number(&mut self, what: &str, least: usize, most: usize) -> Result<usize, Refusal> {
        let at = self.need(what)?;
        let text = std::str::from_utf8(self.words.word(at)).ok();
        let number = text.and_then(|it| it.parse().ok());
        let number = number.filter(|it| (least..=most).contains(it));
        number.ok_or_else(|| usage(format!("'{}' is not {what}", self.shown(at))))
    }

    /// A word, shortened for a message.
    pub fn shown(&self, at: usize) -> String {
        let word = self.words.word(at);
        String::from_utf8_lossy(&word[..word.len().min(2000)]).into_owned()
    }

    /// The word at a place.
    pub fn word(&self, at: usize) -> &[u8] {
        self.words.word(at)
    }
}

pub fn usage(text: String) -> Refusal {
    Refusal::Usage(text)
}
