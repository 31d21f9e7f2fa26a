//! A lease is freed by proof, never by a timer, a recycled pid or a clock.

use std::fs;

use super::super::support::Home;
use super::super::support::run::Running;
use super::{nonce_of, record, refused, upsert};

/// Takes a lease for a process and gives its token.
fn lease(home: &Home, id: &str, pid: u32) -> String {
    nonce_of(&record(home, ["lease-take", id, "--owner-pid", &pid.to_string()]).ok().text())
}

/// Rewrites the one lease in the store.
fn edit(home: &Home, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(home.store()).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed, "nothing to edit: {text}");
    fs::write(home.store(), changed).unwrap();
}

/// The text of a number or string after a key.
fn value_of(text: &str, key: &str) -> String {
    let at = text.find(key).unwrap() + key.len();
    text[at..].trim_start().chars().take_while(|c| !matches!(c, ',' | '\n' | '}')).collect()
}

fn make_old(home: &Home) {
    edit(home, |text| {
        let seconds = value_of(&text, "\"seconds\":");
        let old = seconds.parse::<u64>().unwrap().saturating_sub(61);
        text.replace(&format!("\"seconds\": {seconds}"), &format!("\"seconds\": {old}"))
    });
}

#[test]
fn an_owner_that_lives_keeps_it_for_ever() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    lease(&home, &id, std::process::id());
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    make_old(&home);
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    let mut hurried = home.ait_command(["record", "lease-take", &id, "--owner-pid", "1"]);
    hurried.env("AITASKS_STALE_OP_GRACE", "0.01");
    let ran = super::super::support::Ran::run(&mut hurried);
    assert_eq!(ran.text(), format!("LEASE_HELD:{id}"), "a shorter grace never frees a living owner's lease");
}

#[test]
fn a_dead_owner_keeps_it_for_the_grace_and_no_longer() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let mut owner = home.command("sleep").arg("600").spawn().unwrap();
    lease(&home, &id, owner.id());
    owner.kill().unwrap();
    owner.wait().unwrap();
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    make_old(&home);
    record(&home, ["lease-take", &id, "--owner-pid", "1"]).ok();
}

#[test]
fn a_recycled_pid_is_not_the_owner() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let stranger = Running::start(home.command("sleep").arg("600"));
    lease(&home, &id, stranger.process().pid);
    make_old(&home);
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    edit(&home, |text| {
        let started = value_of(&text, "\"op_owner_started\":");
        text.replace(&format!("\"op_owner_started\": {started}"), "\"op_owner_started\": \"1\"")
    });
    record(&home, ["lease-take", &id, "--owner-pid", "1"]).ok();
    assert!(stranger.process().alive());
}

#[test]
fn another_boot_frees_it_at_once() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    lease(&home, &id, std::process::id());
    edit(&home, |text| {
        let boot = value_of(&text, "\"boot_id\":");
        text.replace(&boot, "\"an-earlier-boot\"")
    });
    record(&home, ["lease-take", &id, "--owner-pid", "1"]).ok();
}

#[test]
fn a_step_of_the_wall_clock_frees_nothing() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let mut owner = home.command("sleep").arg("600").spawn().unwrap();
    lease(&home, &id, owner.id());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let stamp = home.record(&id).unwrap()["op_started_at"].as_str().unwrap().to_owned();
    for year in ["1999", "2199"] {
        edit(&home, |text| {
            let now = value_of(&text, "\"op_started_at\":");
            text.replace(
                &format!("\"op_started_at\": {now}"),
                &format!("\"op_started_at\": \"{year}{}\"", &stamp[4..]),
            )
        });
        refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    }
}

#[test]
fn a_lease_of_the_earlier_scripts_knows_only_pid_and_wall_clock() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    let taken = |pid: u32, at: &str| {
        let text = fs::read_to_string(home.store()).unwrap();
        let mut store: serde_json::Value = serde_json::from_str(&text).unwrap();
        let record = &mut store["sessions"][0];
        record.as_object_mut().unwrap().remove("ait");
        record["op_nonce"] = "0badf00d".into();
        record["op_owner_pid"] = pid.into();
        record["op_started_at"] = at.into();
        fs::write(home.store(), serde_json::to_string_pretty(&store).unwrap() + "\n").unwrap();
    };
    taken(std::process::id(), "2001-01-01T00:00:00Z");
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    let mut gone = home.command("true").spawn().unwrap();
    gone.wait().unwrap();
    taken(gone.id(), "2199-01-01T00:00:00Z");
    refused(&home, 8, ["lease-take", &id, "--owner-pid", "1"]);
    taken(gone.id(), "2001-01-01T00:00:00Z");
    record(&home, ["lease-take", &id, "--owner-pid", "1"]).ok();
}
