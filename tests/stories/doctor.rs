//! `ait doctor`: finds what is wrong, names everything `ait` has set, and only looks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::run::Running;
use crate::support::tmux::Pane;
use crate::support::{AIT, DEADLINE, Home, Ran, Supervisor, Tmux, wait_until};

fn adopted(home: &Home, tmux: &Tmux) -> Pane {
    let program = home.bin().join("claude");
    let pane = tmux.window("main", "w", &home.project("alpha"), &[program.to_str().unwrap(), "demo-agent"]);
    wait_until("the stand-in to draw", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("waiting").then_some(())
    });
    home.ait(["adopt", &pane.id]).ok();
    pane
}

/// What is wrong, one `about: what` each, without the missing supervisor.
fn wrong(home: &Home) -> Vec<String> {
    let report = home.ait(["doctor", "--json"]).json();
    let bad = report["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == "bad");
    bad.filter(|finding| !finding["what"].as_str().unwrap().starts_with("none runs"))
        .map(|finding| {
            format!("{}: {}", finding["about"].as_str().unwrap(), finding["what"].as_str().unwrap())
        })
        .collect()
}

#[track_caller]
fn only_wrong(home: &Home, part: &str) {
    let wrong = wrong(home);
    assert!(wrong.len() == 1 && wrong[0].contains(part), "{wrong:#?}");
}

#[test]
fn a_fresh_machine_lacks_only_a_supervisor() {
    let home = Home::new();
    let before = crate::cli_help::tree(&home);
    let ran = home.ait(["doctor"]).code(10);
    assert!(ran.text().contains("BAD  supervisor none runs"), "{ran}");
    assert!(ran.text().ends_with("1 thing is wrong"), "{ran}");
    assert_eq!(crate::cli_help::tree(&home), before, "looking makes nothing");
}

#[test]
fn the_version_and_its_faults_are_named() {
    let home = Home::new();
    home.script("tmux", "#!/bin/sh\necho tmux 3.7c\n");
    let text = home.ait(["doctor"]).code(10).text();
    assert!(text.contains("tmux       3.7c ("), "{text}");
    assert!(text.contains("R1: ") && !text.contains("R2: ") && !text.contains("R9: "), "{text}");
    home.script("tmux", "#!/bin/sh\necho tmux 3.1c\n");
    assert!(home.ait(["doctor"]).code(10).text().contains("3.2 or later is needed"));
    let nowhere = Ran::run(home.ait_command(["doctor"]).env("PATH", home.runtime())).code(10);
    assert!(nowhere.text().contains("no tmux on PATH"), "{nowhere}");
}

#[test]
fn open_folders_and_files_are_found() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    adopted(&home, &tmux);
    assert_eq!(wrong(&home), [""; 0]);
    fs::set_permissions(home.store(), fs::Permissions::from_mode(0o644)).unwrap();
    only_wrong(&home, "agent_sessions.json is open wider than 0600 (mode 0644)");
    fs::set_permissions(home.store(), fs::Permissions::from_mode(0o600)).unwrap();
    let frozen = home.home().join(".config/aitasks/frozen");
    fs::create_dir(&frozen).unwrap();
    fs::set_permissions(&frozen, fs::Permissions::from_mode(0o755)).unwrap();
    only_wrong(&home, "frozen is open to others (mode 0755)");
}

#[test]
fn a_broken_store_and_what_a_killed_writer_left_are_found() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    adopted(&home, &tmux);
    let lockd = home.store().with_file_name("agent_sessions.json.lockd");
    fs::create_dir(&lockd).unwrap();
    fs::write(lockd.join("pid"), "999999999\n").unwrap();
    let text = home.ait(["doctor"]).text();
    assert!(text.contains("is held by process 999999999, which is gone"), "{text}");
    fs::remove_dir_all(&lockd).unwrap();
    fs::write(home.store(), "{]").unwrap();
    only_wrong(&home, "corrupt");
}

#[test]
fn an_autostart_that_leads_elsewhere_or_twice_is_found() {
    let home = Home::new();
    let conf = home.home().join(".tmux.conf");
    let line =
        |program: &str| format!("run-shell -b \"exec {program} supervise --detach >/dev/null 2>&1\" # ait\n");
    fs::write(&conf, format!("set -g mouse on\n{}", line(AIT))).unwrap();
    assert_eq!(wrong(&home), [""; 0]);
    fs::write(&conf, line("/no/such/ait")).unwrap();
    only_wrong(&home, ".tmux.conf:1 starts /no/such/ait, which is not there to be run");
    fs::write(&conf, line("/bin/sh")).unwrap();
    only_wrong(&home, "which is another program than this one");
    fs::write(&conf, line(AIT).repeat(2)).unwrap();
    only_wrong(&home, "it is set up 2 times");
}

#[test]
fn what_a_crash_left_on_a_server_is_found() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = adopted(&home, &tmux);
    assert_eq!(wrong(&home), [""; 0]);
    let hidden = tmux.session("_ait", &home.home(), &["cat"]);
    only_wrong(&home, "a session _ait that nobody holds");
    tmux.ok(["kill-session", "-t", &hidden.session]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_record", "0badcafe"]);
    only_wrong(&home, &format!("pane {} carries @aitask_record 0badcafe, which is no record", pane.id));
}

#[test]
fn a_client_of_a_supervisor_that_is_no_more_is_found() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let mut command = tmux.command(["-C", "new-session", "-s", "_ait", "cat"]);
    let mut client = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    wait_until("the client", DEADLINE, || {
        let told = tmux.ok(["list-clients", "-F", "#{client_control_mode} #{session_name}"]);
        (told == "1 _ait").then_some(())
    });
    only_wrong(&home, &format!("a stale control client of ait (process {})", client.process().pid));
    client.process().signal(Signal::KILL);
    client.join(DEADLINE);
}

#[test]
fn a_supervisor_that_looks_elsewhere_is_found() {
    let home = Home::new();
    let elsewhere = home.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let supervisor = Supervisor::launch(&home, &[], &[("TMUX_TMPDIR", elsewhere.to_str().unwrap())]);
    supervisor.ready();
    only_wrong(&home, &format!("the supervisor looks in {}", elsewhere.display()));
}

#[test]
fn a_stopped_server_is_unknown_and_a_deleted_socket_is_named() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    adopted(&home, &tmux);
    let server = tmux.server();
    server.signal(Signal::STOP);
    let wrong_now = wrong(&home);
    server.signal(Signal::CONT);
    assert!(wrong_now.len() == 1 && wrong_now[0].contains("did not answer"), "{wrong_now:?}");
    fs::remove_file(tmux.socket()).unwrap();
    only_wrong(&home, &format!("was deleted; its server lives (pid {})", server.pid));
}

/// Everything of a server that a user could have set or could notice.
fn settings(tmux: &Tmux) -> String {
    let questions: [&[&str]; 8] = [
        &["show-options", "-g"],
        &["show-options", "-gw"],
        &["show-options", "-s"],
        &["show-hooks", "-g"],
        &["list-keys"],
        &["show-environment", "-g"],
        &[
            "list-windows",
            "-a",
            "-f",
            "#{!=:#{session_name},_ait}",
            "-F",
            "#{window_id} #{window_width}x#{window_height}",
        ],
        &["list-sessions", "-f", "#{!=:#{session_name},_ait}", "-F", "#{session_name} #{session_attached}"],
    ];
    questions.iter().map(|words| tmux.ok(words.iter())).collect::<Vec<_>>().join("\n--\n")
}

/// Every option that stands on a pane itself, one `pane option value` each.
fn pane_options(tmux: &Tmux) -> Vec<String> {
    let mut all = Vec::new();
    // the hidden session's pane among them
    for pane in tmux.ok(["list-panes", "-a", "-F", "#{pane_id}"]).lines() {
        let options = tmux.ok(["show-options", "-p", "-t", pane]);
        all.extend(options.lines().map(|line| format!("{pane} {line}")));
    }
    all.sort();
    all
}

fn listed(touched: &Value) -> Vec<String> {
    let panes = touched["servers"][0]["panes"].as_array().unwrap();
    let mut all: Vec<String> = panes
        .iter()
        .map(|option| {
            option.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    all.sort();
    all
}

#[test]
fn the_list_of_what_was_touched_is_whole() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (before, panes_before) = (settings(&tmux), pane_options(&tmux));
    assert_eq!(panes_before, [""; 0]);
    let pane = adopted(&home, &tmux);
    let touched = home.ait(["doctor", "--touched", "--json"]).json()["touched"].clone();
    assert_eq!(listed(&touched), pane_options(&tmux), "the stamp alone");
    assert_eq!(touched["servers"][0]["hidden_session"], false);

    // with a supervisor: its session, and the pane that is kept when its agent dies
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.attached(&tmux);
    wait_until("the pane to be kept", DEADLINE, || {
        pane_options(&tmux).contains(&format!("{} remain-on-exit on", pane.id)).then_some(())
    });
    let touched = home.ait(["doctor", "--touched", "--json"]).json()["touched"].clone();
    assert_eq!(listed(&touched), pane_options(&tmux));
    assert_eq!(touched["servers"][0]["hidden_session"], true);
    let strip = |text: String| {
        let new = format!("{} ", pane.window);
        text.lines()
            .filter(|line| !line.starts_with(&new))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    assert_eq!(strip(settings(&tmux)), strip(before.clone()), "nothing else");
    assert_eq!(wrong(&home), [""; 0]);

    // a clean end takes back what hangs on the supervisor
    supervisor.stop();
    let touched = home.ait(["doctor", "--touched", "--json"]).json()["touched"].clone();
    assert_eq!(touched["servers"][0]["hidden_session"], false);
    assert_eq!(strip(settings(&tmux)), strip(before));
}

#[test]
fn broken_settings_and_hooks_that_are_there_twice_are_found() {
    let home = Home::new();
    let config = home.home().join(".config/ait/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "recover = \"auto\"\nrecover_agents = 7\n").unwrap();
    only_wrong(&home, "config.toml:2:");
    fs::remove_file(&config).unwrap();
    home.hooked("claude");
    assert_eq!(wrong(&home), Vec::<String>::new());
    let path = home.hook_settings("claude");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let group = settings["hooks"]["Stop"][0].clone();
    settings["hooks"]["Stop"].as_array_mut().unwrap().push(group);
    fs::write(&path, settings.to_string()).unwrap();
    only_wrong(&home, "calls ait for Stop 2 times");
    let touched = home.ait(["doctor", "--touched"]).code(10).text();
    let line = touched
        .lines()
        .find(|line| line.contains("(hooks of claude)"))
        .unwrap_or_else(|| panic!("{touched}"));
    assert!(line.contains(path.to_str().unwrap()) && line.contains("UserPromptSubmit"), "{line}");
}
