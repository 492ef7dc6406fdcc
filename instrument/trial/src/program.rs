//! What a role's child needs for its exec, made before the fork; and the lookup in `PATH`.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use concurve_probe::spawn::REPORT_FD;
use concurve_reporter::REPORT_VARIABLE;
use concurve_wire::spec::RoleSpec;
use concurve_wire::{ROLE_VARIABLE, TRIAL_VARIABLE};

/// Where `execvp` looks if there is no `PATH`.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

/// A role's program, ready for the exec.
#[derive(Debug)]
pub struct Prepared {
    pub paths: Vec<CString>,
    pub argv: Vec<CString>,
    pub environment: Vec<CString>,
    pub cwd: Option<CString>,
}

impl Prepared {
    /// For a checked spec: none of its strings holds a NUL.
    pub fn new(role: &RoleSpec, trial: &str) -> Self {
        let environment = environment(role, trial);
        Self {
            paths: candidates(role, &environment)
                .into_iter()
                .map(|path| c_string(path.into_os_string().into_vec()))
                .collect(),
            argv: role
                .argv
                .iter()
                .map(|text| c_string(text.as_str()))
                .collect(),
            environment: environment
                .iter()
                .map(|(name, value)| {
                    let parts = [name.as_bytes(), b"=", value.as_bytes()];
                    c_string(parts.concat())
                })
                .collect(),
            cwd: role.cwd.as_deref().map(c_string),
        }
    }
}

/// Why a program cannot be started, found without starting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    NotFound,
    NotExecutable,
}

/// Looks up a role's program as its exec will.
pub fn look_up(role: &RoleSpec) -> Result<PathBuf, Missing> {
    let base = role.cwd.as_deref().map_or(Path::new("."), Path::new);
    let mut missing = Missing::NotFound;
    for candidate in candidates(role, &environment(role, "")) {
        let path = base.join(&candidate);
        match path.metadata() {
            Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(_) => missing = Missing::NotExecutable,
            Err(_) => {}
        }
    }
    Err(missing)
}

fn environment(role: &RoleSpec, trial: &str) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let own = [
        (REPORT_VARIABLE, REPORT_FD.to_string()),
        (TRIAL_VARIABLE, trial.to_owned()),
        (ROLE_VARIABLE, role.name.clone()),
    ];
    for (name, value) in &role.env {
        environment.insert(name.into(), value.into());
    }
    for (name, value) in own {
        environment.insert(name.into(), value.into());
    }
    environment
}

fn candidates(role: &RoleSpec, environment: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let program = &role.argv[0];
    if program.contains('/') {
        return vec![PathBuf::from(program)];
    }
    let path = environment
        .get(std::ffi::OsStr::new("PATH"))
        .cloned()
        .unwrap_or_else(|| PATH_DEFAULT.into());
    // An empty entry means the working directory; joined to it, the name stays relative.
    std::env::split_paths(&path)
        .map(|directory| match directory.as_os_str().is_empty() {
            true => Path::new(".").join(program),
            false => directory.join(program),
        })
        .collect()
}

fn c_string(bytes: impl Into<Vec<u8>>) -> CString {
    // The spec was checked, and neither environments nor paths can hold a NUL.
    CString::new(bytes).unwrap_or_default()
}
