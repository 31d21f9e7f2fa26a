//! Starting, glancing, logs, deleting: on a tmux full of habits.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::{Asked, ait, data, envelope, habits, refusal};
use crate::support::fake::new_id;
use crate::support::run::Running;
use crate::support::tmux::Start;
use crate::support::wait::{trials, within};
use crate::support::wrapper::{Act, Calls, When};
use crate::support::{DEADLINE, Fake, Home, Ran, Supervisor, Tmux, wait_until};

/// Starts a session that must start; its data.
#[track_caller]
fn started(home: &Home, words: &[&str]) -> Value {
    let all = [&["start", "--agent", "claude", "--format", "json"], words].concat();
    data(&ait(home, &all).ok(), "start")
}

/// Nothing of any session is left on disk.
#[track_caller]
fn nothing_is_left(home: &Home) {
    assert_eq!(home.records(), Vec::<Value>::new());
    let folders = home.home().join(".local/state/ait/sessions");
    let left: Vec<_> = std::fs::read_dir(folders).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(data(&ait(home, &["list", "--all", "--format", "json"]).ok(), "list"), serde_json::json!([]));
}

fn argv(pid: &Value) -> String {
    let path = format!("/proc/{pid}/cmdline");
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).replace('\0', " ")
}

fn shows(home: &Home, id: &str, text: &str) {
    wait_until(&format!("{text:?} on its screen"), DEADLINE, || {
        let seen = data(&ait(home, &["glance", id, "--format", "json"]).ok(), "glance");
        seen["tail"].as_str().unwrap().contains(text).then_some(())
    });
}

#[test]
fn a_session_starts_with_its_prompt() {
    let home = Home::new();
    let tmux = habits(&home);
    let prompt = "say; $(x) #{pane_id}\nsecond line";
    let asked = Asked::of(&home);
    let words = ["start", "--agent", "claude", "--title", "Fix API", "--prompt", prompt, "--format", "json"];
    let ran = ait(&home, &[&words[..], &["--agent-arg=--effort", "--agent-arg", "a; $(x)"]].concat()).ok();
    let seen = data(&ran, "start");
    let id = seen["id"].as_str().unwrap();
    for (field, value) in
        [("agent", "claude"), ("status", "running"), ("title", "Fix API"), ("tmux_session", "alpha")]
    {
        assert_eq!(seen[field], value, "{field}: {seen:#}");
    }
    let pane = seen["location"]["pane"].as_str().unwrap();
    assert_eq!(
        tmux.format(pane, "#{@aitask_record} #{@aitask_frozen}#{@aitask_restore_attempt}"),
        format!("{id} ")
    );
    assert_eq!(tmux.format(pane, "#{window_name} #{window_index} #{pane_index}"), "Fix API 1 1");
    let record = home.record(id).unwrap();
    assert_eq!(record["state"], "live", "{record:#}");
    assert_eq!(record["ait"]["generation"], 1, "{record:#}");
    let line = argv(&seen["location"]["pid"]);
    let session_id = record["codeagent_session_id"].as_str().unwrap();
    let words = format!("--session-id {session_id} --name Fix API --effort a; $(x) ");
    assert!(line.ends_with(&words), "{line}");
    // it is told to nobody but its agent
    let environment = std::fs::read(format!("/proc/{}/environ", seen["location"]["pid"])).unwrap();
    for part in ["second line", "say; $(x)"] {
        assert_eq!(asked.with(part), [[""; 0]; 0], "tmux is asked");
        assert!(!(ran.text() + &ran.errors()).contains(part), "{ran}");
        assert!(!line.contains(part), "{line}");
        assert!(!String::from_utf8_lossy(&environment).contains(part), "its variables");
    }
    drop(asked);
    let resume: Vec<&str> =
        seen["provider_resume"]["resume_args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(resume[..2], ["--resume", session_id], "{seen:#}");
    let prompt_file = seen["prompt_file"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(prompt_file).unwrap(), prompt);
    assert_eq!(std::fs::metadata(prompt_file).unwrap().permissions().mode() & 0o777, 0o600);
    wait_until("the whole prompt as one turn of the conversation", DEADLINE, || {
        let text = std::fs::read_to_string(home.conversation_file("claude", session_id)?).ok()?;
        (home.turns("claude", session_id) == 1 && text.contains("#{pane_id}\\nsecond line")).then_some(())
    });
    shows(&home, "Fix API", "0 earlier");
    assert_eq!(tmux.ok(["list-buffers", "-F", "#{buffer_name}"]), "", "the paste left nothing");
    assert!(!std::fs::read_to_string(home.store()).unwrap().contains("second line"));
}

#[test]
fn a_first_prompt_is_handed_in_though_its_enter_was_missed() {
    let home = Home::new();
    let _tmux = habits(&home);
    home.manners("claude", serde_json::json!({"missed_enters": 1}));
    let seen = started(&home, &["--id", "s", "--prompt", "first\nsecond"]);
    let conversation = seen["provider_resume"]["session_id"].as_str().unwrap();
    wait_until("one turn", DEADLINE, || (home.turns("claude", conversation) == 1).then_some(()));
    let held = std::fs::read_to_string(home.conversation_file("claude", conversation).unwrap()).unwrap();
    assert_eq!(held.matches("\"first\\nsecond\"").count(), 1, "{held}");
}

/// What comes before its prompt line is open is lost to it, and it takes its time.
#[test]
fn a_first_prompt_waits_for_an_agent_that_comes_up_late() {
    let home = Home::new();
    let _tmux = habits(&home);
    let [lost, up, heard] = ["lost", "up", "heard"].map(|name| home.root().join(name));
    let screen = "──────\\r\\n❯ \\r\\n──────\\r\\n  ? for shortcuts\\r\\n";
    let program = home.script(
        "late",
        &format!(
            "#!/bin/sh\nstty raw -echo\ncat < /dev/tty >> '{}' &\n\
             until [ -e '{}' ]; do sleep 0.02; done\nkill $!\nwait\n\
             : > '{2}'\nprintf '{screen}'\nexec cat >> '{2}'\n",
            lost.display(),
            up.display(),
            heard.display()
        ),
    );
    let asked = Asked::of(&home);
    let mut start =
        home.ait_command(["start", "--agent", "claude", "--id", "s", "--prompt", "one\ntwo", "--agent-bin"]);
    start.args([program.as_os_str(), "--format".as_ref(), "json".as_ref()]);
    start.current_dir(home.project("alpha")).stdin(Stdio::null());
    let mut start = Running::start(start.stdout(Stdio::piped()).stderr(Stdio::null()));
    // it counts as standing, and is looked at on and on
    wait_until("its record to be live", DEADLINE, || {
        home.records().iter().any(|record| record["state"] == "live").then_some(())
    });
    let looks = asked.with("capture-pane").len();
    wait_until("three looks more", DEADLINE, || {
        (start.ended().is_some() || asked.with("capture-pane").len() >= looks + 3).then_some(())
    });
    assert!(start.ended().is_none(), "its prompt waits");
    assert_eq!(asked.with("paste-buffer"), [[""; 0]; 0], "nothing is pasted");
    assert_eq!(std::fs::read(&lost).unwrap_or_default(), b"");
    std::fs::write(&up, "").unwrap();
    assert_eq!(start.join(DEADLINE).code(), Some(0));
    let mut said = String::new();
    start.child().stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["ok"], said.get("warnings")), (&true.into(), None), "{said:#}");
    wait_until("the prompt and its Enter", DEADLINE, || {
        let heard = std::fs::read(&heard).unwrap_or_default();
        heard.ends_with(b"\r").then_some(())
    });
    let heard = std::fs::read(&heard).unwrap();
    assert!(heard.starts_with(b"one\ntwo\r"), "{:?}", String::from_utf8_lossy(&heard));
    assert_eq!(std::fs::read(&lost).unwrap_or_default(), b"");
}

#[test]
fn a_hermes_starts_with_its_word_for_a_talk() {
    let home = Home::new();
    let tmux = habits(&home);
    let words = home.root().join("words");
    home.script(
        "hermes",
        &format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\nprintf '\\033]0;✓ x\\007❯ '\ncat\n",
            words.display()
        ),
    );
    let seen = data(
        &ait(&home, &["start", "--agent", "hermes", "--agent-arg=--yolo", "--format", "json"]).ok(),
        "start",
    );
    assert_eq!((&seen["agent"], &seen["status"]), (&"hermes".into(), &"running".into()), "{seen:#}");
    assert_eq!(std::fs::read_to_string(words).unwrap(), "chat\n--yolo\n");
    ait(&home, &["delete", seen["id"].as_str().unwrap()]).ok();
    nothing_is_left(&home);
    assert!(!tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]).lines().any(|name| name == "hermes"));
}

#[test]
fn a_start_says_how_to_go_on() {
    let home = Home::new();
    let _tmux = habits(&home);
    let words = ["start", "--agent", "claude", "--host", "box", "--prompt", "the wording"];
    let text = ait(&home, &words).ok().text();
    let id = home.records()[0]["id"].as_str().unwrap().to_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert!(!text.contains("wording"), "{text}");
    assert_eq!(lines[0], format!("started claude session {id}"), "{text}");
    assert_eq!(lines[1], "tmux: alpha", "{text}");
    assert!(lines[2].starts_with("attach: tmux -S "), "{text}");
    assert!(lines[3].starts_with("ssh: ssh -t box "), "{text}");
    assert_eq!(lines[4], format!("delete: ait delete {id}"), "{text}");
    assert_eq!(lines.len(), 5, "{text}");
}

#[test]
fn wrong_words_start_nothing() {
    let home = Home::new();
    let _tmux = habits(&home);
    let asked = Asked::of(&home);
    let claude =
        ["--session-id", "-r", "-rX", "-c", "--continue", "--resume=x", "--fork-session", "--from-pr=1"];
    let codex =
        ["resume", "fork", "--cd", "--cd=/", "-C", "-C/", "--last", "--all", "--include-non-interactive"];
    let all = claude.map(|word| ("claude", word)).into_iter().chain(codex.map(|word| ("codex", word)));
    for (agent, word) in all {
        let arg = format!("--agent-arg={word}");
        let ran = ait(&home, &["start", "--agent", agent, "--format", "json", &arg]).code(64);
        assert_eq!(refusal(&ran), "reserved-agent-arg", "{word}");
        let details = envelope(&ran)["error"]["details"].clone();
        assert_eq!(details["agent"], agent, "{ran}");
        assert!(word.starts_with(details["flag"].as_str().unwrap()), "{ran}");
    }
    assert_eq!(asked.calls(), [[""; 0]; 0], "tmux is asked nothing");
    drop(asked);
    for (words, code, exit) in [
        (&["--agent", "claude", "--prompt", "a", "--prompt-stdin"][..], "multiple-prompt-sources", 64),
        (&["--agent", "claude", "--prompt", "--prompt-stdin"], "option-as-text", 64),
        (&["--agent", "claude", "--prompt-file", "/no/such/file"], "prompt-file-read-failed", 1),
        (&["--agent", "claude", "--cwd", "/no/such/folder"], "cwd-unavailable", 64),
        (&["--agent", "claude", "--cwd", "/dev/null"], "cwd-not-directory", 64),
        (&["--agent", "nobody"], "invalid-agent", 64),
        (&["--agent", "claude", "--id", ""], "invalid-session-id", 64),
        (&["--agent", "claude", "--id", "../x"], "invalid-session-id", 64),
        (&["--agent", "claude", "--id", &"x".repeat(300)], "invalid-session-id", 64),
        (&["--agent", "claude", "--title", "a\nb"], "invalid-title", 64),
        (&["--agent", "claude", "--title", "\x1b[31mred"], "invalid-title", 64),
        (&["--agent", "claude", "--title", &"é".repeat(121)], "title-too-long", 64),
        (&["--agent", "claude", "--session", ""], "invalid-tmux-session", 64),
        (&["--agent", "claude", "--session", "a\nb"], "invalid-tmux-session", 64),
        (&["--agent", "claude", "--prompt", "x\x1b[201~y"], "invalid-prompt", 64),
        // a server that was named is never the user's default one
        (&["--agent", "claude", "--socket-path", "/no/such/default"], "tmux-unavailable", 69),
    ] {
        let all = [&["start", "--format", "json"], words].concat();
        assert_eq!(refusal(&ait(&home, &all).code(exit)), code, "{words:?}");
    }
    nothing_is_left(&home);
}

#[test]
fn an_odd_name_is_data_wherever_it_goes() {
    let home = Home::new();
    let tmux = habits(&home);
    let witness = home.root().join("witness");
    let ran = format!("#(touch {})", witness.display());
    for (session, title) in [
        ("a:b.c", "👩‍👩‍👧 مرحبا"),
        ("#{pid}", ran.as_str()),
        ("-x", "%end 1 2 0"),
        ("$1", ";"),
        ("back\\slash$x", "é"),
        ("@1", "é é"),
        ("s p a c e", "\\;"),
    ] {
        let words = ["--title", title, &format!("--session={session}")];
        let seen = started(&home, &words);
        let really = session.replace([':', '.', '$', '\\'], "_");
        assert_eq!(
            (&seen["tmux_session"], &seen["title"]),
            (&really.as_str().into(), &title.into()),
            "{seen:#}"
        );
        let pane = seen["location"]["pane"].as_str().unwrap();
        let there = tmux.ok(["list-panes", "-a", "-F", "#{pane_id} #{session_name}"]);
        assert!(there.lines().any(|line| line == format!("{pane} {really}")), "{session}: {there}");
        // once more: it is found, not made a second time
        assert_eq!(started(&home, &[&format!("--session={session}")])["tmux_session"], really.as_str());
        let told = data(&ait(&home, &["show", title, "--format", "json"]).ok(), "show");
        assert_eq!(told["id"], seen["id"], "{told:#}");
        ait(&home, &["delete", title]).ok();
        assert!(!witness.exists());
    }
}

#[test]
fn an_agents_words_reach_it_as_they_are() {
    let home = Home::new();
    let _tmux = habits(&home);
    let heard = home.root().join("heard");
    let hears = format!(
        "#!/bin/sh\nprintf '[%s]' \"$@\" > '{0}.new'; mv '{0}.new' '{0}'\nexec sleep 1000\n",
        heard.display()
    );
    let hears = home.script("hears", &hears);
    let words =
        [";", "a;", "\\;", "#{pane_id}", "$(x) `y`", "", "one\ntwo\n", "-", "it's", "👩‍👧 مرحبا", "%end 1 2 0"];
    let mut all = vec!["--agent-bin".to_owned(), hears.to_str().unwrap().to_owned()];
    all.extend(words.iter().map(|word| format!("--agent-arg={word}")));
    let all: Vec<&str> =
        ["start", "--agent", "hermes"].into_iter().chain(all.iter().map(String::as_str)).collect();
    ait(&home, &all).ok();
    let heard = wait_until("what it was given", DEADLINE, || std::fs::read_to_string(&heard).ok());
    let given: String = ["chat"].iter().chain(&words).map(|word| format!("[{word}]")).collect();
    assert_eq!(heard, given);
}

#[test]
fn a_program_that_is_nowhere_is_said_before_a_window_is_made() {
    let home = Home::new();
    let _tmux = habits(&home);
    let calls = home.root().join("calls");
    home.wrap_tmux(&format!("echo \"$*\" >> '{}'\nexec \"$TMUX_REAL\" \"$@\"", calls.display()));
    for (words, said) in [
        (&["start", "--agent", "hermes"][..], "there is no program hermes on PATH"),
        (
            &["run", "--agent", "codex", "--prompt", "P", "--agent-bin", "no-such"],
            "there is no program no-such on PATH",
        ),
        (
            &["start", "--agent", "claude", "--agent-bin", "/no/such"],
            "/no/such is no program that can be run",
        ),
    ] {
        let ran = ait(&home, &[words, &["--format", "json"]].concat()).code(1);
        assert_eq!(refusal(&ran), "command-spawn-failed", "{ran}");
        assert_eq!(envelope(&ran)["error"]["message"], said, "{ran}");
    }
    home.unwrap_tmux();
    let calls = std::fs::read_to_string(calls).unwrap_or_default();
    assert!(!calls.contains("new-"), "{calls}");
    nothing_is_left(&home);
}

#[test]
fn a_start_that_fails_leaves_nothing() {
    let home = Home::new();
    let tmux = habits(&home);
    let before = tmux.panes();
    home.script("quick", "#!/bin/sh\necho no such option >&2\nexit 3\n");
    let quick = home.bin().join("quick");
    for binary in [quick.to_str().unwrap(), "/no/such/program"] {
        let words =
            ["start", "--agent", "claude", "--prompt", "P", "--agent-bin", binary, "--format", "json"];
        let ran = ait(&home, &words).code(1);
        assert!(["command-failed", "command-spawn-failed"].contains(&refusal(&ran).as_str()), "{ran}");
        let said = envelope(&ran)["error"]["message"].as_str().unwrap().to_owned();
        let (status, words) = ("its agent ended at once with exit status 3", "no such option");
        assert_eq!(said.starts_with(status) && said.contains(words), binary.ends_with("quick"), "{said}");
        nothing_is_left(&home);
        wait_until("its pane to be gone", DEADLINE, || (tmux.panes() == before).then_some(()));
    }
    // tmux itself refuses to make a window
    home.wrap_tmux("case \"$*\" in *exec*--record*) echo 'create window failed' >&2; exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"");
    let ran = ait(&home, &["start", "--agent", "claude", "--prompt", "P", "--format", "json"]).code(1);
    home.unwrap_tmux();
    assert_eq!(refusal(&ran), "command-failed", "{ran}");
    nothing_is_left(&home);
}

#[test]
fn a_prompt_that_cannot_be_pasted_takes_its_agent_along() {
    let home = Home::new();
    let tmux = habits(&home);
    let before = tmux.panes();
    home.wrap_tmux(
        "case \"$*\" in *paste-buffer*) echo 'no buffer' >&2; exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"",
    );
    let ran = ait(&home, &["start", "--agent", "claude", "--prompt", "P", "--format", "json"]).code(1);
    home.unwrap_tmux();
    assert_eq!(refusal(&ran), "command-failed", "{ran}");
    nothing_is_left(&home);
    assert_eq!(tmux.panes(), before);
    assert_eq!(tmux.ok(["list-buffers"]), "");
}

#[test]
fn of_two_starts_under_one_name_one_wins() {
    let home = Home::new();
    let tmux = habits(&home);
    home.agent_program("claude");
    let root = home.project("alpha");
    // both look where they are before either goes on
    let here = home.root().join("here");
    std::fs::create_dir(&here).unwrap();
    home.wrap_tmux(&format!(
        "case \"$*\" in *base-index*) : > '{0}'/$$; until [ $(ls '{0}' | wc -l) -ge 2 ]; do sleep 0.01; done;; esac\n\
         exec \"$TMUX_REAL\" \"$@\"",
        here.display()
    ));
    let run = || {
        let words = ["start", "--agent", "claude", "--id", "same", "--prompt", "P", "--format", "json"];
        let mut command = home.ait_command(words);
        command.current_dir(&root);
        std::thread::spawn(move || Ran::run(&mut command))
    };
    let both = [run(), run()].map(|run| run.join().unwrap());
    home.unwrap_tmux();
    let (won, lost): (Vec<_>, Vec<_>) = both.iter().partition(|ran| ran.status.success());
    assert_eq!((won.len(), lost.len()), (1, 1), "{both:?}");
    assert_eq!(refusal(lost[0]), "session-exists");
    let seen = data(won[0], "start");
    assert_eq!(data(&ait(&home, &["show", "same", "--format", "json"]).ok(), "show")["id"], seen["id"]);
    assert_eq!(home.records().len(), 1);
    assert_eq!(std::fs::read_to_string(seen["prompt_file"].as_str().unwrap()).unwrap(), "P");
    let folders = std::fs::read_dir(home.home().join(".local/state/ait/sessions")).unwrap();
    assert_eq!(folders.count(), 1, "the other one leaves no folder");
    let windows = tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]);
    assert_eq!(windows.lines().filter(|name| *name == "same").count(), 1, "{windows}");
}

#[test]
fn a_start_waits_for_a_busy_store_longer_than_a_verb_does() {
    let home = Home::new();
    let _tmux = habits(&home);
    started(&home, &["--id", "first"]);
    let lock = std::fs::File::open(home.store().with_extension("json.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut command = home.ait_command(["start", "--agent", "claude", "--id", "patient"]);
    command.current_dir(home.project("alpha"));
    let start = std::thread::spawn(move || Ran::run(&mut command));
    let id = home.records()[0]["id"].as_str().unwrap().to_owned();
    // the start may begin to wait a little later than the first of them
    for verb in [&["record", "fill-task", &id, "--task-id", "1"]; 2] {
        let refused = home.ait(verb).code(3);
        assert!(refused.errors().contains("LOCK_BUSY"), "{refused}");
    }
    drop(lock);
    start.join().unwrap().ok();
}

#[test]
fn a_session_whose_prompt_cannot_be_written_is_not_begun() {
    let home = Home::new();
    let tmux = habits(&home);
    let before = tmux.panes();
    let state = home.home().join(".local/state/ait");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("sessions"), "no folder").unwrap();
    for command in ["start", "run"] {
        let words = [command, "--agent", "claude", "--id", "s", "--prompt", "P", "--format", "json"];
        let ran = ait(&home, &words).code(1);
        let said = envelope(&ran)["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.starts_with("cannot ") && !said.contains("still there"), "{said}");
        assert!(home.records().is_empty(), "{:#?}", home.records());
        assert_eq!(data(&ait(&home, &["list", "--format", "json"]).ok(), "list"), serde_json::json!([]));
    }
    assert_eq!(tmux.panes(), before);
}

#[test]
fn of_many_starts_and_deletes_at_once_each_is_done() {
    let home = Home::new();
    home.agent_program("claude");
    let root = home.project("alpha");
    // a server of theirs alone: it goes with the last of them
    started(&home, &["--id", "s6"]);
    let all = |command: &'static [&'static str]| {
        let run = |n: usize| {
            let mut run = home.ait_command(command);
            run.args([&format!("s{n}"), "--format", "json"]).current_dir(&root);
            std::thread::spawn(move || Ran::run(&mut run))
        };
        let all: Vec<_> = (0..if command[0] == "delete" { 7 } else { 6 }).map(run).collect();
        all.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    };
    let places: std::collections::BTreeSet<String> = all(&["start", "--agent", "claude", "--id"])
        .into_iter()
        .map(|ran| data(&ran.ok(), "start")["location"]["pane"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(places.len(), 6, "{places:?}");
    for ran in all(&["delete"]) {
        ran.ok();
    }
    assert!(home.records().is_empty());
}

#[test]
fn a_start_looks_again_as_often_as_others_are_quicker() {
    let home = Home::new();
    let tmux = habits(&home);
    started(&home, &["--id", "first"]);
    let refused = home.root().join("refused");
    home.wrap_tmux(&format!(
        "case \"$*\" in *new-window*exec*) echo x >> '{0}'\n\
         [ $(wc -l < '{0}') -gt 12 ] || {{ echo 'create window failed: index 6 in use' >&2; exit 1; }};; esac\n\
         exec \"$TMUX_REAL\" \"$@\"",
        refused.display()
    ));
    let seen = started(&home, &["--id", "last"]);
    home.unwrap_tmux();
    assert_eq!(std::fs::read_to_string(refused).unwrap().lines().count(), 13);
    assert!(tmux.panes().iter().any(|pane| pane.id == seen["location"]["pane"].as_str().unwrap()));
}

#[test]
fn a_glance_changes_nothing() {
    let home = Home::new();
    let _tmux = habits(&home);
    let seen = started(&home, &["--id", "g"]);
    let before = std::fs::read(home.store()).unwrap();
    shows(&home, "g", "? for shortcuts");
    let glance = data(&ait(&home, &["glance", "g", "--tail", "2", "--format", "json"]).ok(), "glance");
    let tail = glance["tail"].as_str().unwrap();
    assert!(tail.lines().count() <= 2 && tail.ends_with('\n'), "{glance:#}");
    for absent in ["cwd", "attach_command", "ssh_attach_command"] {
        assert!(glance.get(absent).is_none(), "{absent}: {glance:#}");
    }
    assert_eq!(glance["updated_at"], seen["updated_at"]);
    assert_eq!(std::fs::read(home.store()).unwrap(), before);
    let logs = data(&ait(&home, &["logs", "g", "--format", "json"]).ok(), "logs");
    assert_eq!(logs["source"], "tmux", "{logs:#}");
    assert!(logs["text"].as_str().unwrap().contains("? for shortcuts"), "{logs:#}");
    let end = ait(&home, &["logs", "g", "--tail", "2"]).ok().text();
    assert!(
        end.lines().count() == 2 && end.contains("? for shortcuts"),
        "the last lines that say something: {end}"
    );
    assert_eq!(ait(&home, &["logs", "g", "--tail", "0"]).ok().text(), "");
}

#[test]
fn a_glance_ends_with_the_last_line_that_says_something() {
    let home = Home::new();
    let tmux = habits(&home);
    home.script("hermes", "#!/bin/sh\nprintf '\\033]0;✓ x\\007first\\n❯ '\ncat\n");
    let words = ["start", "--agent", "hermes", "--id", "g", "--format", "json"];
    let seen = data(&ait(&home, &words).ok(), "start");
    tmux.ok(["resize-window", "-t", seen["location"]["pane"].as_str().unwrap(), "-y", "42"]);
    shows(&home, "g", "first");
    for (tail, wanted) in [("10", "first\n❯\n"), ("2", "first\n❯\n"), ("1", "❯\n"), ("0", "")] {
        let glance = data(&ait(&home, &["glance", "g", "--tail", tail, "--format", "json"]).ok(), "glance");
        assert_eq!(glance["tail"], wanted, "{tail}: {glance:#}");
        assert_eq!(glance["updated_at"], seen["updated_at"]);
    }
    let text = ait(&home, &["glance", "g", "--tail", "10"]).ok().text();
    assert_eq!(text, format!("{} hermes [running]\nfirst\n❯", seen["id"].as_str().unwrap()));
}

#[test]
fn a_stopped_session_is_glanced_at_without_an_error() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = started(&home, &["--id", "g"]);
    let nowhere = ait(&home, &["attach", "g"]).code(69).errors();
    assert!(nowhere.contains("no terminal") && nowhere.contains("hint: `ait glance`"), "{nowhere}");
    tmux.ok(["kill-pane", "-t", seen["location"]["pane"].as_str().unwrap()]);
    let glance = data(&ait(&home, &["glance", "g", "--format", "json"]).ok(), "glance");
    assert_eq!((&glance["status"], &glance["tail"]), (&"stopped".into(), &"".into()), "{glance:#}");
    assert!(glance.get("last_terminal_activity_at").is_none(), "{glance:#}");
    let ran = ait(&home, &["logs", "g", "--format", "json"]).code(1);
    assert_eq!(refusal(&ran), "logs-unavailable");
    let stopped = ait(&home, &["attach", "g"]).code(1).errors();
    assert!(stopped.contains("not running") && stopped.contains("hint: `ait resume"), "{stopped}");
}

#[test]
fn a_session_is_deleted_once_its_pane_is_gone() {
    let home = Home::new();
    let tmux = habits(&home);
    let (gone, stays) = (started(&home, &["--id", "x", "--prompt", "P"]), started(&home, &["--id", "x-1"]));
    let pid = &gone["location"]["pid"];
    let process = crate::support::proc::Process::of(pid.as_u64().unwrap() as u32).unwrap();
    let told = data(&ait(&home, &["delete", "x", "--format", "json"]).ok(), "delete");
    assert_eq!((&told["deleted"], &told["killed"]), (&true.into(), &true.into()), "{told:#}");
    assert!(!process.alive());
    let pane = gone["location"]["pane"].as_str().unwrap();
    assert!(!tmux.panes().iter().any(|one| one.id == pane), "its pane is gone");
    assert!(!Path::new(told["session_dir"].as_str().unwrap()).exists());
    assert_eq!(
        refusal(&ait(&home, &["show", gone["id"].as_str().unwrap(), "--format", "json"]).code(1)),
        "session-not-found"
    );
    let other = data(&ait(&home, &["show", "x-1", "--format", "json"]).ok(), "show");
    assert_eq!((&other["id"], &other["status"]), (&stays["id"], &"running".into()));
    // the other one by its text answer, once it has stopped by itself
    tmux.ok(["kill-pane", "-t", stays["location"]["pane"].as_str().unwrap()]);
    let text = ait(&home, &["delete", "x-1"]).ok().text();
    assert_eq!(text, format!("deleted {} (tmux killed: no)", stays["id"].as_str().unwrap()));
    nothing_is_left(&home);
}

/// Every file and folder below, with what is in it or where it leads.
fn picture(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let facts = path.symlink_metadata().unwrap();
            let held = if facts.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if facts.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            all.push((path, held));
        }
    }
    all.sort();
    all
}

/// The folder it worked in may be a submodule, whose `.git` leads to the data of its superproject, or a link, or home itself.
#[test]
fn deleting_a_session_takes_nothing_of_its_project() {
    let home = Home::new();
    let _tmux = habits(&home);
    let work = home.root().join("work");
    for (file, text) in [
        ("super/.git/HEAD", "ref: refs/heads/main\n"),
        ("super/.git/modules/sub/HEAD", "ref: refs/heads/main\n"),
        ("super/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n"),
        ("super/.gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ../other\n"),
        ("super/sub/.git", "gitdir: ../.git/modules/sub\n"),
        ("super/sub/kept", "of a submodule\n"),
        ("real/kept", "behind a link\n"),
    ] {
        let path = work.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("real", work.join("link")).unwrap();
    let own = home.home().join("own");
    std::fs::create_dir_all(own.join("deep")).unwrap();
    std::fs::write(own.join("deep/kept"), "of home\n").unwrap();
    let before = (picture(&work), picture(&own));
    let sessions = home.home().join(".local/state/ait/sessions");
    for cwd in [work.join("super/sub"), work.join("link"), PathBuf::from("/"), home.home()] {
        let seen = started(&home, &["--id", "s", "--prompt", "P", "--cwd", cwd.to_str().unwrap()]);
        assert_eq!(seen["cwd"], cwd.canonicalize().unwrap().to_str().unwrap(), "{seen:#}");
        let told = data(&ait(&home, &["delete", "s", "--format", "json"]).ok(), "delete");
        assert_eq!((&told["deleted"], &told["killed"]), (&true.into(), &true.into()), "{told:#}");
        let folder = Path::new(told["session_dir"].as_str().unwrap());
        assert_eq!(folder.parent(), Some(&*sessions), "its own folder and no other");
        assert!(!folder.exists());
        nothing_is_left(&home);
        assert_eq!((picture(&work), picture(&own)), before, "{}", cwd.display());
    }
    // stopped, or its folder leads to the project: neither way is any of it taken
    let seen = started(&home, &["--id", "s", "--cwd", work.to_str().unwrap()]);
    let folder = sessions.join(seen["id"].as_str().unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&work, &folder).unwrap();
    ait(&home, &["delete", "s", "--format", "json"]);
    assert_eq!((picture(&work), picture(&own)), before, "a folder of a session that leads to the project");
}

#[test]
fn deleting_an_agent_typed_at_a_prompt_leaves_the_users_shell() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let root = home.project("alpha");
    let pane = tmux.window("main", "typed", &root, &["sh"]);
    let conversation = new_id();
    let agent = Fake::typed(&tmux, &pane, &root, "claude", &["--session-id", &conversation]).up(&tmux);
    let (id, process) = (agent.adopt(&tmux), agent.process());
    let deleted = data(&ait(&home, &["delete", &id, "--format", "json"]).ok(), "delete");
    assert_eq!(deleted["killed"], true, "{deleted}");
    assert!(process.dies(DEADLINE), "the agent is ended");
    assert_eq!(tmux.format(&pane.id, "#{pane_pid} #{pane_dead}"), format!("{} 0", pane.pid));
    assert!(pane.process().alive(), "the shell goes on");
    nothing_is_left(&home);
}

#[test]
fn a_kill_that_fails_keeps_the_session() {
    let home = Home::new();
    let tmux = habits(&home);
    let seen = started(&home, &["--id", "k"]);
    home.wrap_tmux("case \"$*\" in *kill-pane*) echo 'no' >&2; exit 1;; esac\nexec \"$TMUX_REAL\" \"$@\"");
    let ran = ait(&home, &["delete", "k", "--format", "json"]).code(1);
    assert_eq!(refusal(&ran), "session-not-stopped", "{ran}");
    home.wrap_tmux("exit 1");
    let ran = ait(&home, &["delete", "k", "--format", "json"]).code(1);
    assert_eq!(refusal(&ran), "session-not-stopped", "{ran}");
    home.unwrap_tmux();
    let still = data(&ait(&home, &["show", "k", "--format", "json"]).ok(), "show");
    assert_eq!((&still["id"], &still["status"]), (&seen["id"], &"running".into()));
    ait(&home, &["delete", "k"]).ok();
    nothing_is_left(&home);
    assert!(!tmux.ok(["list-windows", "-a", "-F", "#{window_name}"]).lines().any(|name| name == "k"));
}

#[test]
fn a_session_without_a_server_starts_one() {
    let home = Home::new();
    let tmux = Tmux::unstarted(&home, Start::default());
    let seen = started(&home, &["--id", "first"]);
    tmux.remember();
    assert_eq!(seen["status"], "running", "{seen:#}");
    assert_eq!(tmux.ok(["list-sessions", "-F", "#{session_name}"]), "alpha");
}

#[test]
fn a_start_that_is_told_to_stop_before_its_prompt_is_taken_back() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.agent_program("claude");
    let before = tmux.panes().len();
    let never = home.script("never", "#!/bin/sh\nexec sleep 1000\n");
    for told in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut start =
            home.ait_command(["start", "--agent", "claude", "--id", "s", "--prompt", "P", "--agent-bin"]);
        start.arg(&never).current_dir(home.project("alpha")).stdin(Stdio::null());
        let mut start = Running::start(start.stdout(Stdio::null()).stderr(Stdio::piped()));
        wait_until("its agent", DEADLINE, || {
            home.records().iter().any(|record| record["pane_id"] != "").then_some(())
        });
        assert!(start.process().signal(told));
        assert_eq!(start.join(DEADLINE).code(), Some(1));
        let mut said = String::new();
        start.child().stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("it was told to stop before its prompt was pasted"), "{said}");
        assert!(home.records().is_empty(), "{:#?}", home.records());
        wait_until("its pane to be gone", DEADLINE, || (tmux.panes().len() == before).then_some(()));
    }
}

#[test]
fn a_start_that_is_killed_anywhere_leaves_nothing_without_a_record_and_no_record_on_its_way() {
    killed_anywhere(true, 3);
}

/// Nobody but the mark on its pane tells what was launched, on a server that no record names and the supervisor was not told of.
#[test]
fn a_start_that_is_killed_anywhere_is_found_by_its_mark_alone() {
    killed_anywhere(false, 1);
}

/// Starts are killed at each of their calls to tmux: whatever is left is on record, at rest, and can be deleted.
fn killed_anywhere(hooked: bool, every: usize) {
    let home = Home::new();
    if hooked {
        home.hooked("claude");
    } else {
        home.agent_program("claude");
    }
    let settings = home.home().join(".config/ait");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "[frozen]\nrestore_ack_grace = \"1s\"\n").unwrap();
    let tmux = Tmux::start(&home);
    let before = tmux.panes().len();
    let told = [&tmux];
    let told = if hooked { &told[..] } else { &[] };
    let _supervisor = Supervisor::launch(&home, told, &[("AITASKS_STALE_OP_GRACE", "1")]);
    let calls = Calls::of(&home, "start");
    let start = |name: &str| ait(&home, &["start", "--agent", "claude", "--id", name, "--prompt", "P"]);
    start("whole").ok();
    let made = calls.made().len();
    ait(&home, &["delete", "whole"]).ok();
    let every = trials(every, 1);
    for (number, when) in (1..=made).step_by(every).flat_map(|n| [(n, When::Before), (n, When::After)]) {
        calls.at(number, when, &Act::Kill);
        start(&format!("cut-{number}-{when:?}"));
        if !hooked {
            calls.none();
            come_to_rest(&home, &tmux, before);
        }
    }
    calls.none();
    come_to_rest(&home, &tmux, before);
    assert_eq!(tmux.ok(["list-buffers", "-F", "#{buffer_name}"]), "", "no prompt stays in a buffer");
}

/// Every record comes to rest and says what is true of its pane; once all are deleted, so many panes are left.
#[track_caller]
fn come_to_rest(home: &Home, tmux: &Tmux, panes: usize) {
    let mut last = Vec::new();
    let rested = within(DEADLINE, || {
        last = home.records();
        let rests = |record: &Value| {
            record["op_nonce"] == ""
                && ["live", "frozen"].contains(&record["state"].as_str().unwrap_or_default())
        };
        last.iter().all(rests).then_some(())
    });
    assert!(rested.is_some(), "all come to rest: {last:#?}");
    for record in home.records() {
        let pane = record["pane_id"].as_str().unwrap();
        let runs = tmux.panes().iter().any(|seen| seen.id == pane);
        assert_eq!(runs, record["state"] == "live", "{record:#}");
        ait(home, &["delete", record["id"].as_str().unwrap()]).ok();
    }
    assert!(home.records().is_empty());
    let mut left = Vec::new();
    let closed = within(DEADLINE, || {
        left = tmux.panes();
        (left.len() == panes).then_some(())
    });
    assert!(closed.is_some(), "nothing runs without a record: {left:#?}");
}
