//! Executing a prepared statement: its numbers, each in the form of its parameter's type.

use super::{HEADER, Query, message};
use crate::workload::Numbers;

/// OIDs of the types that are sent in binary.
pub const INT2: u32 = 21;
pub const INT4: u32 = 23;
pub const INT8: u32 = 20;
/// What is sent of a number where its type is another: digits with leading zeros, and the sign.
const DIGITS: usize = 20;

/// Bind and Execute of a prepared statement, and where its numbers go.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    bytes: Vec<u8>,
    numbers: Vec<Place>,
    /// The same with all numbers as digits, for those that are too large for their type: the
    /// server refuses them in its own words.
    in_digits: Option<Box<Prepared>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: usize,
    number: usize,
    form: Form,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Int2,
    Int4,
    Int8,
    Text,
}

impl Form {
    fn of(oid: u32) -> Self {
        match oid {
            INT2 => Self::Int2,
            INT4 => Self::Int4,
            INT8 => Self::Int8,
            _ => Self::Text,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Int2 => 2,
            Self::Int4 => 4,
            Self::Int8 => 8,
            Self::Text => DIGITS,
        }
    }

    fn holds(self, number: i64) -> bool {
        match self {
            Self::Int2 => i16::try_from(number).is_ok(),
            Self::Int4 => i32::try_from(number).is_ok(),
            Self::Int8 | Self::Text => true,
        }
    }

    fn is_binary(self) -> bool {
        self != Self::Text
    }
}

impl Prepared {
    /// For parameters of these types.
    pub fn of(query: &Query, types: &[u32]) -> Self {
        let forms: Vec<Form> = types.iter().map(|oid| Form::of(*oid)).collect();
        let narrow = forms.iter().any(|it| matches!(it, Form::Int2 | Form::Int4));
        let in_digits = || Box::new(Self::in_forms(query, &vec![Form::Text; forms.len()]));
        Self {
            in_digits: narrow.then(in_digits),
            ..Self::in_forms(query, &forms)
        }
    }

    fn in_forms(query: &Query, forms: &[Form]) -> Self {
        let mut numbers = Vec::new();
        let mut body = vec![0]; // the unnamed portal
        body.extend_from_slice(query.name.as_bytes());
        body.push(0);
        put_count(forms.len(), &mut body);
        for form in forms {
            put_count(usize::from(form.is_binary()), &mut body);
        }
        put_count(forms.len(), &mut body);
        for (form, number) in forms.iter().zip(&query.places) {
            body.extend_from_slice(&(form.bytes() as u32).to_be_bytes());
            numbers.push(Place {
                offset: HEADER + body.len(),
                number: *number,
                form: *form,
            });
            body.resize(body.len() + form.bytes(), b'0');
        }
        put_count(0, &mut body); // every result in text
        let mut bytes = message(b'B', &body);
        bytes.extend_from_slice(&message(b'E', &[0; 5])); // of that portal, all rows
        Self {
            bytes,
            numbers,
            in_digits: None,
        }
    }

    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        let holds = |it: &Place| it.form.holds(numbers[it.number]);
        if let Some(in_digits) = &self.in_digits
            && !self.numbers.iter().all(holds)
        {
            return in_digits.put(numbers, out);
        }
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for place in &self.numbers {
            let number = numbers[place.number];
            let at = &mut out[begin + place.offset..][..place.form.bytes()];
            match place.form {
                Form::Int2 => at.copy_from_slice(&(number as i16).to_be_bytes()),
                Form::Int4 => at.copy_from_slice(&(number as i32).to_be_bytes()),
                Form::Int8 => at.copy_from_slice(&number.to_be_bytes()),
                Form::Text => at.copy_from_slice(format!("{number:0DIGITS$}").as_bytes()),
            }
        }
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u16).to_be_bytes());
}
