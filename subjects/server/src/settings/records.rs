//! What services over records are told.

use std::path::PathBuf;

use super::{Durability, Latching, Service, name_of, refused};
use crate::error::Error;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Records and statements")]
#[group(id = "records")]
pub struct RecordOptions {
    /// Where records are kept
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Memory for pages of records [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    cache_mib: Option<u32>,

    /// How much the log of records grows between checkpoints [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    checkpoint_mib: Option<u32>,
}

/// Where records are kept, and how.
#[derive(Debug, Clone)]
pub struct RecordSettings {
    pub folder: PathBuf,
    pub engine: concurve_records::EngineOptions,
}

impl RecordOptions {
    /// One that was given: the lock service has none of them.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--folder", self.folder.is_some()),
            ("--cache-mib", self.cache_mib.is_some()),
            ("--checkpoint-mib", self.checkpoint_mib.is_some()),
        ];
        given.into_iter().find_map(|(name, is)| is.then_some(name))
    }

    /// What they mean together with the dials of all services.
    pub fn settings(
        &self,
        service: Service,
        latching: Latching,
        durability: Durability,
    ) -> Result<RecordSettings, Error> {
        let service = name_of(service);
        let Some(durability) = durability.of_records() else {
            let text = format!("--durability {}", name_of(durability));
            return Err(refused(
                &text,
                &format!("{service}: take none, group or each"),
            ));
        };
        let Some(folder) = self.folder.clone() else {
            return Err(Error::Usage(format!(
                "--service {service} needs --folder FOLDER, where records are kept"
            )));
        };
        let cache_mib = self.cache_mib.unwrap_or(64) as usize;
        Ok(RecordSettings {
            folder,
            engine: concurve_records::EngineOptions {
                latching: match latching {
                    Latching::Global => concurve_records::Latching::Global,
                    Latching::File => concurve_records::Latching::File,
                    Latching::Record => concurve_records::Latching::Record,
                },
                durability,
                cache_pages: cache_mib << 20 >> concurve_records::page::PAGE_BYTES.ilog2(),
                checkpoint_bytes: u64::from(self.checkpoint_mib.unwrap_or(64)) << 20,
            },
        })
    }
}
