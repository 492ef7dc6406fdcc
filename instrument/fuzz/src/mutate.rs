//! Changes of a valid input, of the kinds that fuzzers use: bits, interesting numbers, parts that are
//! removed, repeated or taken from another input, words of the format.

use crate::draw::Draw;

/// Numbers at the ends of ranges, where parsers often go wrong.
const NUMBERS: [u64; 15] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];
/// The most changes of one input.
const CHANGES: usize = 6;
const RUN: usize = 300;

/// An input: one case in eight is random bytes, the others are changed from the corpus.
pub fn input(draw: &mut Draw, corpus: &[Vec<u8>], words: &[&[u8]], bytes_max: usize) -> Vec<u8> {
    let mut bytes = match corpus.is_empty() || draw.once_in(8) {
        true => {
            let length = draw.below(bytes_max.min(256) + 1);
            draw.bytes(length)
        }
        false => draw.pick(corpus).clone(),
    };
    for _ in 0..draw.below(CHANGES + 1) {
        change(&mut bytes, draw, corpus, words);
        bytes.truncate(bytes_max);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, draw: &mut Draw, corpus: &[Vec<u8>], words: &[&[u8]]) {
    let at = draw.below(bytes.len() + 1);
    let end = (at + 1 + draw.below(16)).min(bytes.len());
    match draw.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
        1 if at < bytes.len() => bytes[at] = draw.byte(),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let part = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, part));
        }
        5 => {
            let count = draw.below(8);
            let new = draw.bytes(count);
            drop(bytes.splice(at..at, new));
        }
        6 => {
            let (count, byte) = (draw.below(RUN), draw.byte());
            drop(bytes.splice(at..end, std::iter::repeat_n(byte, count)));
        }
        7 => put_number(bytes, at, draw),
        8 => digits(bytes, at, draw),
        9 if !words.is_empty() => {
            let word = *draw.pick(words);
            let end = if draw.once_in(2) { at } else { end };
            drop(bytes.splice(at..end, word.iter().copied()));
        }
        _ if !corpus.is_empty() => {
            let other = draw.pick(corpus);
            let from = draw.below(other.len() + 1);
            let to = from + draw.below(other.len() - from + 1);
            drop(bytes.splice(at..end, other[from..to].iter().copied()));
        }
        _ => bytes.push(draw.byte()),
    }
}

/// Writes an interesting number over bytes, in one of the usual forms.
fn put_number(bytes: &mut [u8], at: usize, draw: &mut Draw) {
    let number = draw
        .pick(&NUMBERS)
        .wrapping_add(draw.below(3) as u64)
        .wrapping_sub(1);
    let width = *draw.pick(&[1, 2, 3, 4, 8]);
    let wide = match draw.once_in(2) {
        true => number.to_le_bytes(),
        false => {
            let mut wide = number.to_be_bytes();
            // The low bytes of a number in network order are its last ones.
            wide.rotate_left(8 - width);
            wide
        }
    };
    for (place, byte) in bytes.iter_mut().skip(at).take(width).zip(wide) {
        *place = byte;
    }
}

/// Replaces the digits at a place, or inserts some: a number as text, often one that is too large.
fn digits(bytes: &mut Vec<u8>, at: usize, draw: &mut Draw) {
    let is_digit = |it: &u8| it.is_ascii_digit();
    let from = at + bytes[at..].iter().position(is_digit).unwrap_or(0);
    let to = from + bytes[from..].iter().take_while(|it| is_digit(it)).count();
    let number = match draw.below(4) {
        0 => format!("-{}", draw.pick(&NUMBERS)),
        1 => "9".repeat(1 + draw.below(400)),
        2 => draw.below(100).to_string(),
        _ => draw.pick(&NUMBERS).to_string(),
    };
    drop(bytes.splice(from..to, number.into_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_for_the_same_seed_and_no_longer_than_they_may_be() {
        let corpus = [b"*1\r\n$4\r\nPING\r\n".to_vec(), Vec::new()];
        let words: [&[u8]; 2] = [b"\r\n", b"$"];
        let make = |seed| input(&mut Draw::new(seed), &corpus, &words, 100);
        let mut different = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            assert_eq!(make(seed), make(seed));
            assert!(make(seed).len() <= 100);
            different.insert(make(seed));
        }
        assert!(different.len() > 1000, "{}", different.len());
        assert!(different.contains(&corpus[0]), "some are left as they are");
    }

    #[test]
    fn without_a_corpus_there_are_random_bytes() {
        let lengths: Vec<usize> = (0..100)
            .map(|seed| input(&mut Draw::new(seed), &[], &[], 1000).len())
            .collect();
        assert!(lengths.iter().any(|it| *it > 100));
    }
}
