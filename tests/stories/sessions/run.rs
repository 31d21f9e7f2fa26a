//! Runs: one prompt to its end, its log, its exit status.

use std::io::Read;
use std::process::Stdio;

use super::{Asked, ait, data, envelope, habits, refusal};
use crate::support::run::Running;
use crate::support::wait::within;
use crate::support::{DEADLINE, Home, Supervisor, Tmux, wait_until};

/// An agent that says what it was given, and ends with status 3.
fn parrot(home: &Home) -> String {
    let text = "#!/bin/sh\necho \"words: $*\"\ncat\necho trouble >&2\nprintf 'b\\nc\\n'\nexit 3\n";
    home.script("parrot", text).to_string_lossy().into_owned()
}

#[test]
fn a_run_keeps_its_log_and_its_exit_status() {
    let home = Home::new();
    let tmux = habits(&home);
    let parrot = parrot(&home);
    let words =
        ["run", "--agent", "claude", "--agent-bin", &parrot, "--id", "r", "--wait", "--format", "json"];
    let asked = Asked::of(&home);
    let ran =
        ait(&home, &[&words[..], &["--agent-arg=-v", "--prompt", "-p \"$(x)\" ünï\nlast"]].concat()).code(1);
    assert_eq!(asked.with("$(x)"), [[""; 0]; 0], "the prompt stands in no command line");
    drop(asked);
    let seen = data(&ran, "run");
    for (field, value) in [("mode", "run"), ("status", "stopped"), ("agent", "claude")] {
        assert_eq!(seen[field], value, "{field}: {seen:#}");
    }
    assert_eq!((&seen["exit_status"], &seen["resumable"]), (&3.into(), &false.into()), "{seen:#}");
    let log = std::fs::read_to_string(seen["log_file"].as_str().unwrap()).unwrap();
    assert_eq!(log, "words: -p -v\n-p \"$(x)\" ünï\nlasttrouble\nb\nc\n");
    let logs = data(&ait(&home, &["logs", "r", "--tail", "2", "--format", "json"]).ok(), "logs");
    assert_eq!((&logs["source"], &logs["text"]), (&"file".into(), &"b\nc\n".into()), "{logs:#}");
    home.wrap_tmux("exit 1");
    let without = data(&ait(&home, &["logs", "r", "--tail", "2", "--format", "json"]).ok(), "logs");
    home.unwrap_tmux();
    assert_eq!(without, logs, "no tmux is needed for it");
    let refused = ait(&home, &["resume", "r", "--format", "json"]).code(65);
    assert_eq!(refusal(&refused), "session-not-resumable");
    ait(&home, &["delete", "r"]).ok();
    assert!(home.records().is_empty());
    let failed =
        ait(&home, &["run", "--agent", "claude", "--agent-bin", &parrot, "--prompt", "P", "--wait"]).code(1);
    assert_eq!(failed.errors(), "warning: its agent ended with exit status 3");
    assert!(failed.text().ends_with("trouble\nb\nc"), "{failed}");
    let left = tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]);
    assert!(!left.lines().any(|name| name == "r"), "{left}");
}

#[test]
fn a_run_is_archived_with_its_exit_status_where_a_supervisor_watches() {
    let home = Home::new();
    let tmux = habits(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let parrot = parrot(&home);
    let words = ["run", "--agent", "claude", "--agent-bin", &parrot, "--id", "r", "--prompt", "P"];
    ait(&home, &[&words[..], &["--format", "json"]].concat()).ok();
    let seen = wait_until("the run in the archive", DEADLINE, || {
        let seen = data(&ait(&home, &["show", "r", "--format", "json"]).ok(), "show");
        (seen["state"] == "archived").then_some(seen)
    });
    let archived = home.archived_record(seen["id"].as_str().unwrap());
    assert_eq!(
        (&seen["exit_status"], &seen["status"]),
        (&3.into(), &"stopped".into()),
        "{seen:#} {archived:#?}"
    );
}

#[test]
fn the_pane_of_what_was_started_here_closes_with_it_where_a_supervisor_watches() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    let parrot = parrot(&home);
    let before = tmux.panes().len();
    for _ in 0..3 {
        let words = ["run", "--agent", "claude", "--agent-bin", &parrot, "--prompt", "P", "--format", "json"];
        let run = data(&ait(&home, &words).ok(), "run");
        home.until_ended(run["id"].as_str().unwrap());
    }
    let started = data(&ait(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
    let record = home.record(started["id"].as_str().unwrap()).expect("its record");
    let pane = record["pane_id"].as_str().unwrap().to_owned();
    tmux.ok(["send-keys", "-t", &pane, "-l", "/exit"]);
    tmux.ok(["send-keys", "-t", &pane, "Enter"]);
    home.until_ended(started["id"].as_str().unwrap());
    let closed = within(DEADLINE, || (tmux.panes().len() == before).then_some(()));
    let told = "#{pane_id} #{pane_dead} #{pane_dead_status} #{@aitask_record} #{@aitask_agent_session} #{remain-on-exit}";
    assert!(closed.is_some(), "no dead pane stays: {}", tmux.ok(["list-panes", "-a", "-F", told]));
}

#[test]
fn a_run_that_takes_too_long_runs_on() {
    let home = Home::new();
    let _tmux = habits(&home);
    let slow = home.script("slow", "#!/bin/sh\necho begun\nexec sleep 1000\n");
    let words =
        ["run", "--agent", "codex", "--agent-bin", slow.to_str().unwrap(), "--id", "s", "--prompt", "P"];
    let ran = ait(&home, &[&words[..], &["--wait", "--timeout", "0s", "--format", "json"]].concat()).code(13);
    let seen = data(&ran, "run");
    assert!(envelope(&ran)["warnings"][0].as_str().unwrap().contains("runs on"), "{ran}");
    assert_eq!(seen["status"], "running", "{seen:#}");
    let log = seen["log_file"].as_str().unwrap().to_owned();
    wait_until("its log", DEADLINE, || {
        (std::fs::read_to_string(&log).is_ok_and(|log| log == "begun\n")).then_some(())
    });
    let told = data(&ait(&home, &["delete", "s", "--format", "json"]).ok(), "delete");
    assert_eq!(told["killed"], true, "{told:#}");
}

#[test]
fn a_run_is_over_with_its_agent_whatever_that_left_running() {
    let home = Home::new();
    let _tmux = habits(&home);
    let left = home.root().join("left");
    // what is left holds the run's output open
    let text = format!(
        "#!/bin/sh\ncat\ntrap '' HUP\nsleep 1000 &\necho $! > '{}'\necho bye\nexit 4\n",
        left.display()
    );
    let leaves = home.script("leaves", &text);
    let words =
        ["run", "--agent", "claude", "--agent-bin", leaves.to_str().unwrap(), "--id", "r", "--prompt", "P"];
    let seen = data(&ait(&home, &[&words[..], &["--wait", "--format", "json"]].concat()).code(1), "run");
    assert_eq!((&seen["exit_status"], &seen["status"]), (&4.into(), &"stopped".into()), "{seen:#}");
    assert_eq!(std::fs::read_to_string(seen["log_file"].as_str().unwrap()).unwrap(), "Pbye\n");
    let left = std::fs::read_to_string(left).unwrap().trim().parse().unwrap();
    let left = crate::support::proc::Process::of(left).expect("it is left alone");
    assert!(left.end(DEADLINE));
}

#[test]
fn a_run_that_is_waited_for_is_heard_as_it_goes_on() {
    let home = Home::new();
    let _tmux = habits(&home);
    let gate = home.root().join("gate");
    let text = format!(
        "#!/bin/sh\nprintf 'begun\\377'\nwhile [ ! -e '{}' ]; do sleep 0.05; done\necho over\n",
        gate.display()
    );
    let gated = home.script("gated", &text);
    home.agent_program("claude");
    let mut run = home.ait_command(["run", "--agent", "claude", "--prompt", "P", "--wait", "--agent-bin"]);
    run.arg(gated).current_dir(home.project("alpha"));
    let mut run = Running::start(run.stdin(Stdio::null()).stdout(Stdio::piped()));
    let mut out = run.child().stdout.take().unwrap();
    let mut heard = [0; 6];
    out.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"begun\xff", "byte for byte");
    assert_eq!(run.ended(), None, "it is heard while it goes on");
    std::fs::write(gate, "").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "over\n");
    assert_eq!(run.join(DEADLINE).code(), Some(0));
}

#[test]
fn a_run_needs_a_prompt_and_an_agent_that_leaves() {
    let home = Home::new();
    let _tmux = habits(&home);
    for (words, code) in [
        (&["--agent", "claude"][..], "missing-prompt"),
        (&["--agent", "claude", "--prompt", " \n"], "missing-prompt"),
        (&["--agent", "hermes", "--prompt", "P"], "unsupported-run-agent"),
    ] {
        let ran = ait(&home, &[&["run", "--format", "json"], words].concat()).code(64);
        assert_eq!(refusal(&ran), code, "{words:?}");
        assert_eq!(envelope(&ran)["schema_version"], "cli.ait.run.v1");
    }
    assert!(home.records().is_empty());
    assert!(!home.home().join(".local/state/ait/sessions").exists(), "no folder is left behind");
}

#[test]
fn the_folder_of_a_session_that_was_deleted_is_swept_and_no_other() {
    let home = Home::new();
    let tmux = habits(&home);
    let parrot = parrot(&home);
    let words = ["run", "--agent", "claude", "--agent-bin", &parrot, "--prompt", "P", "--format", "json"];
    let run = || data(&ait(&home, &words).ok(), "run")["id"].as_str().unwrap().to_owned();
    let (kept, gone) = (run(), run());
    {
        let _supervisor = Supervisor::start(&home, &[&tmux]);
        home.until_ended(&kept);
        home.until_ended(&gone);
    }
    ait(&home, &["delete", &gone]).ok();
    let live = data(&ait(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
    let live = live["id"].as_str().unwrap().to_owned();
    let folders = home.home().join(".local/state/ait/sessions");
    // what a hook writes too late, and a session of another store
    let (late, strange) = (folders.join(&gone), folders.join("0000dead"));
    for folder in [&late, &strange] {
        assert!(!folder.exists());
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("prompt.md"), "P").unwrap();
    }
    for folder in [&strange, &folders.join(&kept), &folders.join(&live)] {
        let folder = std::fs::File::open(folder).unwrap();
        folder.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7200)).unwrap();
    }
    // a deletion that was killed when its record was dropped: the next one takes the rest, too
    let half = data(&ait(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
    let half = half["id"].as_str().unwrap().to_owned();
    home.ait(["drop", &half, "--force"]).ok();
    std::fs::create_dir_all(folders.join(&half)).unwrap();
    std::fs::write(folders.join(&half).join("prompt.md"), "P").unwrap();
    let other = data(&ait(&home, &["start", "--agent", "claude", "--format", "json"]).ok(), "start");
    ait(&home, &["delete", other["id"].as_str().unwrap()]).ok();
    assert!(!folders.join(&half).exists() && folders.join(&kept).exists() && strange.exists());
    std::fs::create_dir_all(&late).unwrap();
    let _supervisor = Supervisor::start(&home, &[&tmux]);
    wait_until("the folder of the deleted one to be gone", DEADLINE, || (!late.exists()).then_some(()));
    assert!(folders.join(&kept).join("output.log").exists(), "one in the archive is a session still");
    assert!(folders.join(&live).exists() && strange.join("prompt.md").exists());
}

#[test]
fn a_wait_for_a_run_ends_when_it_is_told_to_and_the_run_goes_on() {
    let home = Home::new();
    let _tmux = habits(&home);
    let slow = home.script("slow", "#!/bin/sh\necho begun\nexec sleep 1000\n");
    home.agent_program("claude");
    for (told, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let mut run = home.ait_command(["run", "--agent", "claude", "--prompt", "P", "--wait", "--id", "s"]);
        run.arg("--agent-bin").arg(&slow).current_dir(home.project("alpha"));
        let mut run = Running::start(run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut heard = [0; 6];
        run.child().stdout.as_mut().unwrap().read_exact(&mut heard).unwrap();
        assert!(run.process().signal(told));
        assert_eq!(run.join(DEADLINE).code(), Some(code));
        let seen = data(&ait(&home, &["show", "s", "--format", "json"]).ok(), "show");
        assert_eq!(seen["status"], "running", "{seen:#}");
        ait(&home, &["delete", "s"]).ok();
    }
}

/// A run whose command is killed as soon as its window is there, before its record can say where; its id, and its pane's process.
#[track_caller]
fn cut_short(home: &Home, tmux: &Tmux) -> (String, crate::support::proc::Process) {
    let parrot = parrot(home);
    home.wrap_tmux(
        "case \"$*\" in *exec*--record*) \"$TMUX_REAL\" \"$@\"; kill -KILL $PPID; exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"",
    );
    let words = ["run", "--agent", "claude", "--agent-bin", &parrot, "--prompt", "P", "--id", "cut"];
    assert_eq!(ait(home, &words).status.code(), None, "it was killed");
    home.unwrap_tmux();
    let id = home.records()[0]["id"].as_str().unwrap().to_owned();
    let pid = wait_until("its window", DEADLINE, || {
        let all = marked(tmux);
        let line = all.lines().find(|line| line.ends_with(&id))?;
        line.split(' ').nth(1)?.parse::<u32>().ok()
    });
    let process = crate::support::proc::Process::of(pid);
    let shows = || {
        tmux.ok([
            "capture-pane",
            "-p",
            "-S",
            "-9",
            "-t",
            marked(tmux).lines().find(|line| line.ends_with(&id)).unwrap().split(' ').next().unwrap(),
        ])
    };
    (id.clone(), process.unwrap_or_else(|| panic!("{} {}", marked(tmux), shows())))
}

/// Each pane with its process, whether it is dead, and whose it is.
fn marked(tmux: &Tmux) -> String {
    tmux.ok(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead} #{@aitask_frozen}"])
}

#[test]
fn what_stands_in_the_name_of_a_run_that_was_cut_short_goes_when_it_is_deleted() {
    let home = Home::new();
    let tmux = habits(&home);
    let before = tmux.panes();
    let (id, process) = cut_short(&home, &tmux);
    process.end(DEADLINE);
    wait_until("a dead pane", DEADLINE, || {
        marked(&tmux).lines().any(|line| line.ends_with(&format!("1 {id}"))).then_some(())
    });
    // as it is settled once its time is over
    super::edit(&home, |records| {
        let record = &mut records[0];
        record["state"] = "frozen".into();
        for field in ["op_nonce", "op_started_at"] {
            record[field] = "".into();
        }
        record["op_owner_pid"] = 0.into();
    });
    let told = data(&ait(&home, &["delete", "cut", "--format", "json"]).ok(), "delete");
    assert_eq!(told["killed"], true, "{told:#}");
    assert_eq!(tmux.panes(), before, "{}", marked(&tmux));
}

#[test]
fn a_run_that_was_cut_short_is_deleted_where_nobody_settles_it() {
    let home = Home::new();
    let tmux = habits(&home);
    let before = tmux.panes();
    let (_, process) = cut_short(&home, &tmux);
    let busy = ait(&home, &["delete", "cut", "--format", "json"]).code(1);
    assert_eq!(refusal(&busy), "session-busy", "whoever was at it may be there still");
    // its time is over
    super::edit(&home, |records| {
        records[0]["op_started_at"] = "2026-01-01T00:00:00Z".into();
        records[0]["ait"].as_object_mut().unwrap().remove("op_started_boot");
    });
    let told = data(&ait(&home, &["delete", "cut", "--format", "json"]).ok(), "delete");
    assert_eq!(told["killed"], true, "{told:#}");
    assert!(!process.alive() && home.records().is_empty());
    assert_eq!(tmux.panes(), before, "{}", marked(&tmux));
}
