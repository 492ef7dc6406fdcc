//! Values that different CPUs use.

use std::ops::Deref;

/// A value on cache lines of its own: two, as CPUs fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
