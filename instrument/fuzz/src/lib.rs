//! Fuzzing for the tests of parsers: valid inputs that are changed at random, and random bytes. No
//! program uses this crate, only tests do.
//!
//! A [`Target`] has a name, a corpus of valid inputs, and words of its format. [`Target::run`] hands the
//! inputs to a check, one case after the other. A case fails if the check panics, takes more than five
//! seconds of CPU time, or allocates more than the target allows. Each case has a seed, from which alone
//! its input is made: a failure prints the seed, the input, and the command that runs this case again.
//!
//! How many cases run is a matter of the environment:
//! - nothing set: [`Target::cases`] cases from seed 0 on, the same in each run;
//! - `CONCURVE_FUZZ_SECONDS=600`: so long, from a fresh seed on, which is printed;
//! - `CONCURVE_FUZZ_SEED=17`: the case with this seed alone.
//!
//! `docs/decisions/0038-fuzzing.md` says why it is done in this way.
//!
//! ```
//! use concurve_fuzz::Target;
//!
//! fn number(input: &[u8]) -> Option<i64> {
//!     std::str::from_utf8(input).ok()?.parse().ok()
//! }
//!
//! let corpus = [b"12".to_vec(), b"-7".to_vec()];
//! Target::new("example", "numbers", &corpus).words(&[b"-", b"9223372036854775808"]).run(|input, _| {
//!     let _ = number(input);
//! });
//! ```

mod draw;
mod memory;
mod mutate;
mod target;

pub use draw::Draw;
pub use memory::Counting;
pub use target::Target;
