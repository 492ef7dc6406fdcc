//! The bytes of a record: 8 for each field, little-endian; the key is the first field. Zeros pad it
//! to the length of the file's records.

use concurve_records::{FileDefinition, Key, SegmentKind};
use concurve_statements::Value;

/// Bytes of a field.
pub const FIELD_BYTES: usize = size_of::<Value>();

/// A file of records of this length.
pub fn definition(record_bytes: u16) -> FileDefinition {
    FileDefinition {
        record_bytes,
        keys: vec![Key::unique(0, FIELD_BYTES as u16, SegmentKind::Integer)],
    }
}

/// A key in the form of the record engine.
pub fn key(value: Value) -> [u8; FIELD_BYTES] {
    value.to_le_bytes()
}

/// A field of a record; 0 where the record ends before it.
pub fn field(record: &[u8], number: usize) -> Value {
    let bytes = record.get(number * FIELD_BYTES..);
    let bytes = bytes.and_then(|it| it.first_chunk());
    bytes.map_or(0, |it| Value::from_le_bytes(*it))
}

/// Changes a field of a record.
pub fn set_field(record: &mut [u8], number: usize, value: Value) {
    record[number * FIELD_BYTES..][..FIELD_BYTES].copy_from_slice(&value.to_le_bytes());
}

/// A record of these fields.
pub fn record(values: &[Value], record_bytes: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(record_bytes);
    for value in values {
        record.extend_from_slice(&value.to_le_bytes());
    }
    record.resize(record_bytes, 0);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_they_were_put() {
        let mut bytes = record(&[1, -2, i64::MAX], 100);
        assert_eq!(bytes.len(), 100);
        set_field(&mut bytes, 1, i64::MIN);
        assert_eq!(
            [0, 1, 2, 3].map(|it| field(&bytes, it)),
            [1, i64::MIN, i64::MAX, 0]
        );
        assert_eq!(bytes[..FIELD_BYTES], key(1));
    }
}
