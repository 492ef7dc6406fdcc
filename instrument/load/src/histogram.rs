//! Histograms of latency: their scale, and how they travel as text.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Three digits hold: 0.1 %.
const DIGITS: u8 = 3;
/// Latencies beyond an hour count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty one.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds are constant and valid")
}

/// A histogram as text: base64 of the HdrHistogram V2 serialisation.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram in memory is written to memory");
    BASE64_STANDARD.encode(bytes)
}

/// For serde: `#[serde(with = "encoded")]`.
pub mod encoded {
    use super::{BASE64_STANDARD, Deserializer, Engine, Histogram};
    use serde::{Deserialize, Deserializer as Source, Serializer, de::Error};

    pub fn serialize<S: Serializer>(it: &Histogram<u64>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::encode(it))
    }

    pub fn deserialize<'a, D: Source<'a>>(from: D) -> Result<Histogram<u64>, D::Error> {
        let bytes = BASE64_STANDARD
            .decode(String::deserialize(from)?)
            .map_err(D::Error::custom)?;
        Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(D::Error::custom)
    }
}
