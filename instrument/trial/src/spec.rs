//! Reads a spec and refuses invalid ones.

use std::io::Read;

use concurve_wire::FORMAT;
use concurve_wire::spec::{
    Attach, AttachedProcess, Controls, End, PolicyClass, Ready, RoleSpec, TrialSpec,
};

use crate::error::{Result, TrialError};
use crate::ready;

/// Reads one spec to the end of the input.
pub fn read(mut input: impl Read) -> Result<TrialSpec> {
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| {
        TrialError::Spec(format!(
            "standard input: {error}; give one JSON object in UTF-8"
        ))
    })?;
    parse(&text)
}

/// Parses and checks a spec.
pub fn parse(text: &str) -> Result<TrialSpec> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let spec: TrialSpec = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        TrialError::Spec(format!(
            "{path}: {}; see schema/trial-spec.schema.json",
            error.into_inner()
        ))
    })?;
    deserializer
        .end()
        .map_err(|error| TrialError::Spec(format!("after the object: {error}; give one object")))?;
    check(&spec).map_err(TrialError::Spec)?;
    Ok(spec)
}

fn check(spec: &TrialSpec) -> std::result::Result<(), String> {
    if spec.format != FORMAT {
        return Err(format!(
            "format: {} is not known, this runner reads {FORMAT}; use matching versions",
            spec.format
        ));
    }
    if spec.trial.is_empty() || spec.trial.contains('\0') {
        return Err("trial: give a name that is not empty".into());
    }
    if spec.roles.is_empty() {
        return Err("roles: give at least one role".into());
    }
    if !spec.roles.iter().any(|role| role.end == End::Exit) {
        return Err("roles: all of them serve; let one have end = \"exit\"".into());
    }
    if spec.sampling.interval_ns_min == 0 {
        return Err("sampling.interval_ns_min: give at least 1".into());
    }
    if !(spec.sampling.cpu_share_max > 0.0 && spec.sampling.cpu_share_max <= 1.0) {
        return Err("sampling.cpu_share_max: give a share above 0, at most 1".into());
    }
    for (index, role) in spec.roles.iter().enumerate() {
        check_role(role, &spec.roles[..index])
            .map_err(|problem| format!("roles[{index}] ({}).{problem}", role.name))?;
    }
    Ok(())
}

fn check_role(role: &RoleSpec, earlier: &[RoleSpec]) -> std::result::Result<(), String> {
    if role.name.is_empty() || role.name.contains('\0') {
        return Err("name: give a name that is not empty".into());
    }
    if earlier.iter().any(|other| other.name == role.name) {
        return Err("name: an earlier role has it; give each its own".into());
    }
    if role.attach.is_some() {
        return check_attached(role);
    }
    if role.argv.first().is_none_or(String::is_empty) {
        return Err("argv: give a program".into());
    }
    if role.argv.iter().any(|argument| argument.contains('\0')) {
        return Err("argv: an argument holds a NUL; leave it out".into());
    }
    if role.cwd.as_ref().is_some_and(|cwd| cwd.contains('\0')) {
        return Err("cwd: holds a NUL; leave it out".into());
    }
    for (name, value) in &role.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!(
                "env: {name:?} cannot be set; no empty names, no '=' in names, no NUL"
            ));
        }
    }
    for name in &role.after {
        match earlier.iter().find(|other| other.name == *name) {
            Some(other) if other.end == End::Exit => {}
            Some(_) => {
                return Err(format!(
                    "after: {name:?} serves and never exits before; name a role with end = \"exit\""
                ));
            }
            None => {
                return Err(format!(
                    "after: {name:?} is not an earlier role; name one that stands before"
                ));
            }
        }
    }
    if let Some(probe) = &role.ready_probe {
        ready::check(probe).map_err(|problem| format!("ready_probe.{problem}"))?;
    }
    check_controls(&role.controls).map_err(|problem| format!("controls.{problem}"))
}

/// An attached role runs already: nothing of what starts, changes or ends a role is for it.
fn check_attached(role: &RoleSpec) -> std::result::Result<(), String> {
    if let Some(Attach::Cgroup(folder)) = &role.attach
        && (!folder.starts_with('/') || folder.contains('\0'))
    {
        return Err(format!(
            "attach.cgroup: {folder:?} is no path; give that of its folder"
        ));
    }
    if let Some(Attach::Process(AttachedProcess { pid: 0, .. })) = role.attach {
        return Err("attach.process.pid: give the number of a process".into());
    }
    let given = [
        ("argv", !role.argv.is_empty()),
        ("env", !role.env.is_empty()),
        ("cwd", role.cwd.is_some()),
        ("controls", role.controls != Controls::default()),
        ("ready", role.ready != Ready::Launch),
        ("ready_probe", role.ready_probe.is_some()),
        ("after", !role.after.is_empty()),
    ];
    if let Some((key, _)) = given.iter().find(|(_, given)| *given) {
        return Err(format!(
            "{key}: the role is attached: it runs already and is left as it is; leave {key} out"
        ));
    }
    match role.end {
        End::Serve => Ok(()),
        End::Exit => Err("end: an attached role is not waited for; give end = \"serve\"".into()),
    }
}

fn check_controls(controls: &Controls) -> std::result::Result<(), String> {
    if let Some(cpus) = &controls.cpus {
        if cpus.is_empty() {
            return Err("cpus: give at least one CPU".into());
        }
        if !cpus.is_sorted_by(|left, right| left < right) {
            return Err("cpus: list them in ascending order, each once".into());
        }
    }
    if let Some(nice) = controls.nice
        && !(-20..=19).contains(&nice)
    {
        return Err(format!("nice: {nice} is out of range; give −20 to 19"));
    }
    let Some(policy) = controls.policy else {
        return Ok(());
    };
    let real_time = matches!(policy.class, PolicyClass::Fifo | PolicyClass::Rr);
    match (policy.class, policy.priority) {
        (PolicyClass::Deadline, _) => {
            return Err(
                "policy.class: deadline needs times that a spec cannot give; use fifo".into(),
            );
        }
        (_, 1..=99) if real_time => {}
        (_, 0) if !real_time => {}
        (_, priority) if real_time => {
            return Err(format!(
                "policy.priority: {priority} is out of range; give 1 to 99"
            ));
        }
        (_, priority) => {
            return Err(format!(
                "policy.priority: {priority} is for fifo and rr only; give 0 or leave it out"
            ));
        }
    }
    if controls.nice.is_some() && !matches!(policy.class, PolicyClass::Other | PolicyClass::Batch) {
        return Err("nice: has no effect under this policy; leave one of them out".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut spec = serde_json::json!({
            "format": 1, "trial": "t",
            "roles": [{"name": "a", "argv": ["true"]}, {"name": "b", "argv": ["true"]}],
        });
        parse(&spec.to_string()).unwrap();
        change(&mut spec);
        parse(&spec.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn any_text_is_read_or_refused() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/golden");
        let corpus: Vec<Vec<u8>> = ["full", "minimal"]
            .iter()
            .filter_map(|it| std::fs::read(folder.join(format!("trial-spec-1-{it}.json"))).ok())
            .collect();
        assert!(!corpus.is_empty());
        let words: [&[u8]; 8] = [
            b"{", b"[", b"\"", b"null", b"-1", b"1e400", b"\\u0000", b"(a+)+",
        ];
        concurve_fuzz::Target::new(env!("CARGO_PKG_NAME"), "spec::tests::any_text", &corpus)
            .words(&words)
            .bytes_max(64 << 10)
            .run(|input, _| drop(read(input)));
    }

    #[test]
    fn refusals_name_the_key() {
        for (pointer, value, expected) in [
            ("/format", "2", "format"),
            ("/trial", "\"\"", "trial"),
            ("/roles", "[]", "roles"),
            ("/roles/1/name", "\"a\"", "roles[1] (a).name"),
            ("/roles/0/argv", "[]", "roles[0] (a).argv"),
            ("/roles/0/argv", "\"true\"", "roles[0].argv"),
            ("/roles/0/nmae", "1", "roles[0].nmae"),
            ("/roles/0/after", "[\"b\"]", "roles[0] (a).after"),
            ("/roles/0/env", "{\"A=B\": \"1\"}", "roles[0] (a).env"),
            (
                "/roles/0/ready_probe",
                "{\"tcp\": \"6379\"}",
                "roles[0] (a).ready_probe.tcp",
            ),
            (
                "/roles/0/ready_probe",
                "{\"line\": \"(\"}",
                "roles[0] (a).ready_probe.line",
            ),
            (
                "/roles/0/ready_probe",
                "{\"command\": []}",
                "roles[0] (a).ready_probe.command",
            ),
            (
                "/roles/0/ready_probe",
                "{\"udp\": \"a:1\"}",
                "roles[0].ready_probe",
            ),
            (
                "/roles/0/attach",
                "{\"process\": {\"pid\": 1, \"started_ticks\": 1}}",
                "roles[0] (a).argv: the role is attached",
            ),
            (
                "/roles/0/attach",
                "{\"process\": {\"pid\": 0, \"started_ticks\": 1}}",
                "roles[0] (a).attach.process.pid",
            ),
            (
                "/roles/0/attach",
                "{\"cgroup\": \"redis\"}",
                "roles[0] (a).attach.cgroup",
            ),
            (
                "/roles/1/controls",
                "{\"nice\": 20}",
                "roles[1] (b).controls.nice",
            ),
            (
                "/roles/1/controls",
                "{\"nice\": \"x\"}",
                "roles[1].controls.nice",
            ),
            ("/roles/1/controls", "{\"cpus\": []}", "controls.cpus"),
            ("/roles/1/controls", "{\"cpus\": [1, 0]}", "controls.cpus"),
            (
                "/roles/1/controls",
                "{\"policy\": {\"class\": \"fifo\"}}",
                "controls.policy.priority",
            ),
            (
                "/roles/1/controls",
                "{\"policy\": {\"class\": \"deadline\"}}",
                "controls.policy.class",
            ),
            (
                "/roles/1/controls",
                "{\"policy\": {\"class\": \"idle\"}, \"nice\": 1}",
                "controls.nice",
            ),
            (
                "/sampling",
                "{\"cpu_share_max\": 0}",
                "sampling.cpu_share_max",
            ),
            (
                "/sampling",
                "{\"interval_ns_min\": 0}",
                "sampling.interval_ns_min",
            ),
        ] {
            let message = refusal(|spec| {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                let value = serde_json::from_str(value).unwrap();
                spec.pointer_mut(parent).unwrap()[key] = value;
            });
            assert!(message.contains(expected), "{pointer}: {message}");
        }
    }

    #[test]
    fn nothing_that_changes_a_role_is_for_an_attached_one() {
        for (key, value) in [
            ("argv", "[\"true\"]"),
            ("env", "{\"A\": \"1\"}"),
            ("cwd", "\"/\""),
            ("controls", "{\"nice\": 5}"),
            ("controls", "{\"cpus\": [0]}"),
            ("ready", "\"report\""),
            ("ready_probe", "{\"tcp\": \"a:1\"}"),
            ("end", "\"exit\""),
        ] {
            let message = refusal(|spec| {
                spec["roles"][0] = serde_json::json!({
                    "name": "server", "end": "serve",
                    "attach": {"process": {"pid": 1, "started_ticks": 1}},
                });
                assert!(parse(&spec.to_string()).is_ok());
                spec["roles"][0][key] = serde_json::from_str(value).unwrap();
            });
            let expected = format!("roles[0] (server).{key}: ");
            assert!(message.contains(&expected), "{key}: {message}");
        }
    }

    #[test]
    fn only_servers_would_never_end() {
        let message = refusal(|spec| {
            spec["roles"][0]["end"] = "serve".into();
            spec["roles"][1]["end"] = "serve".into();
        });
        assert!(message.contains("serve"), "{message}");
    }

    #[test]
    fn text_that_is_no_spec() {
        for text in ["", "[]", "{", "{}{}", "null"] {
            assert!(matches!(parse(text), Err(TrialError::Spec(_))), "{text}");
        }
    }
}
