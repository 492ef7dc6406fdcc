//! Packets: a length of three bytes, a sequence number, and a payload. A payload that is too long for
//! one packet continues in the next ("MySQL Packets" in MySQL's protocol documentation).

use std::borrow::Cow;

use crate::protocol::{ProtocolError, TEXT_BYTES_MAX};

/// A payload of this length continues in the next packet.
const FULL: usize = 0xff_ffff;
pub const HEADER: usize = 4;

/// A payload, and where the packets that carry it end.
#[derive(Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub payload: Cow<'a, [u8]>,
    /// Bytes of the input, headers included.
    pub consumed: usize,
    /// Sequence number of the packet that follows.
    pub sequence: u8,
}

/// The payload that begins with the first packet in `input`; `None` if it is not complete.
///
/// # Errors
/// It has another sequence number than `sequence`, or is too long to be an answer.
pub fn first(input: &[u8], mut sequence: u8) -> Result<Option<Packet<'_>>, ProtocolError> {
    let mut payload = Cow::Borrowed(&input[..0]);
    let mut at = 0;
    loop {
        let Some(header) = input.get(at..at + HEADER) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if header[3] != sequence {
            return Err(garbled(input));
        }
        if at + length > TEXT_BYTES_MAX {
            return Err(ProtocolError::TooLong);
        }
        sequence = sequence.wrapping_add(1);
        let Some(part) = input.get(at + HEADER..at + HEADER + length) else {
            return Ok(None);
        };
        at += HEADER + length;
        match payload.is_empty() {
            true => payload = Cow::Borrowed(part),
            false => payload.to_mut().extend_from_slice(part),
        }
        if length < FULL {
            return Ok(Some(Packet {
                payload,
                consumed: at,
                sequence,
            }));
        }
    }
}

/// Writes what `fill` appends as a packet, or several if it is long; returns the sequence number that
/// follows.
pub fn put(mut sequence: u8, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let begin = out.len();
    out.extend_from_slice(&[0; HEADER]);
    fill(out);
    let length = out.len() - begin - HEADER;
    if length < FULL {
        put_header(length, sequence, &mut out[begin..]);
        return sequence.wrapping_add(1);
    }
    let payload = out.split_off(begin + HEADER);
    out.truncate(begin);
    // A packet of the full length is followed by another one, which may be empty.
    for part in 0..=length / FULL {
        let rest = &payload[part * FULL..];
        let part = &rest[..rest.len().min(FULL)];
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER]);
        put_header(part.len(), sequence, &mut out[begin..]);
        out.extend_from_slice(part);
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

fn put_header(length: usize, sequence: u8, header: &mut [u8]) {
    header[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    header[3] = sequence;
}

/// Reads the fields of a payload one after the other; `None` where it ends too early.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// An integer of at most eight bytes, the lowest first.
    pub fn integer(&mut self, bytes: usize) -> Option<u64> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(self.bytes(bytes)?);
        Some(u64::from_le_bytes(wide))
    }

    /// An integer that says by its first byte how long it is; outer `None` if there is none, inner
    /// for NULL.
    pub fn length(&mut self) -> Option<Option<u64>> {
        let first = self.integer(1)?;
        Some(match first {
            0xfb => None,
            0xfc => Some(self.integer(2)?),
            0xfd => Some(self.integer(3)?),
            0xfe => Some(self.integer(8)?),
            0xff => return None,
            small => Some(small),
        })
    }

    /// A text with its length before it; inner `None` for NULL.
    pub fn text(&mut self) -> Option<Option<&'a [u8]>> {
        let Some(length) = self.length()? else {
            return Some(None);
        };
        self.bytes(usize::try_from(length).ok()?).map(Some)
    }

    /// A text that ends with a zero byte, or with the payload.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[], |end| &self.0[end + 1..]);
        text
    }
}

/// The error for input that is not understood.
pub fn garbled(input: &[u8]) -> ProtocolError {
    ProtocolError::Garbage(shown(input), "MySQL's protocol")
}

/// The beginning of an input, for messages.
pub fn shown(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_long_goes_in_parts_and_comes_back_whole() {
        for length in [0, 1, FULL - 1, FULL, FULL + 1, 2 * FULL, 2 * FULL + 5] {
            let payload: Vec<u8> = (0..length).map(|it| it as u8).collect();
            let mut out = b"before".to_vec();
            let sequence = put(255, &mut out, |out| out.extend_from_slice(&payload));
            assert_eq!(sequence, (length / FULL) as u8);
            let bytes = &out[6..];
            assert_eq!(bytes.len(), length + HEADER * (length / FULL + 1));
            let packet = first(bytes, 255).unwrap().unwrap();
            assert_eq!(packet.consumed, bytes.len());
            assert_eq!(packet.sequence, sequence);
            assert!(*packet.payload == *payload, "{length}");
            for cut in [0, 3, HEADER, FULL, bytes.len() - 1] {
                if cut < bytes.len() {
                    assert_eq!(first(&bytes[..cut], 255), Ok(None));
                }
            }
        }
    }

    #[test]
    fn a_packet_out_of_turn_or_too_long_is_refused() {
        assert!(first(&[0, 0, 0, 1], 0).is_err());
        let full = [0xff, 0xff, 0xff];
        let mut endless = Vec::new();
        for sequence in 0..5 {
            endless.extend_from_slice(&full);
            endless.push(sequence);
            endless.resize(endless.len() + FULL, 0);
        }
        assert_eq!(first(&endless, 0), Err(ProtocolError::TooLong));
    }

    #[test]
    fn integers_say_how_long_they_are() {
        for (bytes, expected) in [
            (&[250][..], Some(Some(250))),
            (&[0xfb], Some(None)),
            (&[0xfc, 0xfb, 0], Some(Some(251))),
            (&[0xfd, 0, 0, 1], Some(Some(65_536))),
            (&[0xfe, 0, 0, 0, 1, 0, 0, 0, 0], Some(Some(1 << 24))),
            (&[0xfe, 0, 0, 0, 1], None),
            (&[0xff], None),
            (&[], None),
        ] {
            assert_eq!(Fields(bytes).length(), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(input in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = first(&input, 0);
            let mut fields = Fields(&input);
            let _ = (fields.text(), fields.until_zero(), fields.text(), fields.integer(3));
        }
    }
}
