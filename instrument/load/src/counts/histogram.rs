//! Histograms of latency: their scale, and their encoding as text.

use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::Deserialize;
use serde::de::Error;

/// Significant digits: values are exact to 0.1 %.
const DIGITS: u8 = 3;
/// Longer latencies count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds are constant and valid")
}

/// A histogram as text: base64 of the HdrHistogram V2 serialisation.
pub fn encode(histogram: &Histogram<u64>) -> String {
    BASE64_STANDARD.encode(serialized(histogram))
}

fn serialized(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    bytes
}

/// With [`deserialize`], the form in which serde writes a histogram:
/// `#[serde(with = "super::histogram")]`.
pub fn serialize<S: serde::Serializer>(
    histogram: &Histogram<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(histogram))
}

/// In the header of the format: the length of what follows it, and the digits and bounds. Either may ask
/// for far more memory than there is text, so both are looked at before anything is made.
const LENGTH: Range<usize> = 4..8;
const SCALE: Range<usize> = 12..32;
const HEADER_BYTES: usize = 40;

/// Whether it can be a histogram that [`serialize`] wrote.
fn is_ours(bytes: &[u8]) -> bool {
    let length = bytes.len().checked_sub(HEADER_BYTES);
    let said = length
        .and_then(|it| u32::try_from(it).ok())
        .map(u32::to_be_bytes);
    said.is_some_and(|it| bytes[LENGTH] == it) && bytes[SCALE] == serialized(&histogram())[SCALE]
}

pub fn deserialize<'a, D: serde::Deserializer<'a>>(
    deserializer: D,
) -> Result<Histogram<u64>, D::Error> {
    let bytes = BASE64_STANDARD
        .decode(String::deserialize(deserializer)?)
        .map_err(D::Error::custom)?;
    if !is_ours(&bytes) {
        return Err(D::Error::custom("a histogram of another scale, or cut"));
    }
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Histogram<u64>, serde_json::Error> {
        let text = BASE64_STANDARD.encode(bytes);
        deserialize(&mut serde_json::Deserializer::from_str(&format!(
            "{text:?}"
        )))
    }

    #[test]
    fn a_histogram_of_another_scale_or_length_is_refused() {
        let mut own = histogram();
        own.record_n(1_234_567, 3).unwrap();
        let bytes = serialized(&own);
        assert_eq!(read(&bytes).unwrap(), own);
        for cut in [&bytes[..bytes.len() - 1], &bytes[..20], &[]] {
            assert!(read(cut).is_err());
        }
        // A length of four gigabytes.
        let mut long = bytes.clone();
        long[LENGTH].fill(0xff);
        assert!(read(&long).is_err());
        for (low, high, digits) in [(1, LONGEST_NS, 5), (1, u64::MAX, 3), (1_000, LONGEST_NS, 3)] {
            let other = Histogram::new_with_bounds(low, high, digits).unwrap();
            let refused = read(&serialized(&other)).unwrap_err().to_string();
            assert!(refused.contains("another scale"), "{refused}");
        }
    }
}
