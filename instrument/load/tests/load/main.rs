//! The whole program, against servers of the tests' own, real ones, and engines in its own process.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/mariadb.rs"]
mod mariadb;
#[path = "../common/postgresql.rs"]
mod postgresql;

mod embedded;
mod lost;
mod mysql;
mod objectives;
mod postgres;
mod program;
mod refusals;
mod together;
mod unanswered;
