//! Histograms of latency: their scale, and their encoding as text.

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
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    BASE64_STANDARD.encode(bytes)
}

/// With [`deserialize`], the form in which serde writes a histogram:
/// `#[serde(with = "super::histogram")]`.
pub fn serialize<S: serde::Serializer>(
    histogram: &Histogram<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(histogram))
}

pub fn deserialize<'a, D: serde::Deserializer<'a>>(
    deserializer: D,
) -> Result<Histogram<u64>, D::Error> {
    let bytes = BASE64_STANDARD
        .decode(String::deserialize(deserializer)?)
        .map_err(D::Error::custom)?;
    Deserializer::new()
        .deserialize(&mut &bytes[..])
        .map_err(D::Error::custom)
}
