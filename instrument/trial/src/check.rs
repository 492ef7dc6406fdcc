//! `concurve-trial check`: whether every role would start with the controls that it asks for.

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process;
use concurve_wire::record::{GrantedControls, OutcomeKind};
use concurve_wire::spec::{ReadyProbe, RoleSpec, TrialSpec};
use nix::sys::signal::Signal;
use serde::Serialize;

use crate::attached;
use crate::launch::{self, NotStarted};
use crate::program::{self, Missing};
use crate::role::Role;

/// What `check` prints.
#[derive(Debug, Serialize)]
pub struct CheckReport {
    roles: Vec<RoleCheck>,
}

#[derive(Debug, Serialize)]
struct RoleCheck {
    name: String,
    /// As read back from a suspended process that never ran the program.
    controls: GrantedControls,
    problem: Option<Problem>,
}

#[derive(Debug, Serialize)]
struct Problem {
    kind: ProblemKind,
    /// What is missing and what to try.
    message: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum ProblemKind {
    NotFound,
    NotExecutable,
    ControlRefused,
}

/// Checks each role without running its program.
pub fn check(spec: &TrialSpec) -> CheckReport {
    let proc_fs = ProcFs::default();
    let roles = spec.roles.iter();
    CheckReport {
        roles: roles.map(|role| check_role(role, spec, &proc_fs)).collect(),
    }
}

fn check_role(spec: &RoleSpec, trial: &TrialSpec, proc_fs: &ProcFs) -> RoleCheck {
    let mut role = Role::new(spec.clone(), 0);
    if let Some(which) = &spec.attach {
        let problem = attached::check(which, proc_fs).err();
        return RoleCheck {
            name: spec.name.clone(),
            controls: role.controls,
            problem: problem.map(|message| Problem {
                kind: ProblemKind::NotFound,
                message,
            }),
        };
    }
    let started = launch_suspended(&mut role, &trial.trial, proc_fs);
    let problem = match started {
        Err(problem) => Some(Problem {
            kind: match problem.kind {
                OutcomeKind::ControlRefused => ProblemKind::ControlRefused,
                _ => ProblemKind::NotExecutable,
            },
            message: problem.message,
        }),
        Ok(()) => missing_of(spec).or_else(|| missing_of(&readiness_command(spec)?)),
    };
    RoleCheck {
        name: spec.name.clone(),
        controls: role.controls,
        problem,
    }
}

fn launch_suspended(role: &mut Role, trial: &str, proc_fs: &ProcFs) -> Result<(), NotStarted> {
    let suspended = launch::suspend(role, trial, || ())?;
    let verdict = launch::control(role, &suspended, proc_fs, false);
    let pid = suspended.pid();
    let _ = process::kill(pid, Signal::SIGKILL);
    let _ = process::reap(pid);
    verdict
}

fn missing_of(spec: &RoleSpec) -> Option<Problem> {
    let missing = program::look_up(spec).err()?;
    Some(missing_program(spec, missing))
}

/// The command that asks whether a role is ready, as a role.
fn readiness_command(spec: &RoleSpec) -> Option<RoleSpec> {
    let Some(ReadyProbe::Command(argv)) = &spec.ready_probe else {
        return None;
    };
    Some(RoleSpec {
        argv: argv.clone(),
        ..spec.clone()
    })
}

fn missing_program(spec: &RoleSpec, missing: Missing) -> Problem {
    let program = &spec.argv[0];
    match missing {
        Missing::NotFound => Problem {
            kind: ProblemKind::NotFound,
            message: format!(
                "{program:?} was not found; check the name, the working folder and PATH"
            ),
        },
        Missing::NotExecutable => Problem {
            kind: ProblemKind::NotExecutable,
            message: format!("{program:?} is not an executable file; try chmod +x"),
        },
    }
}
