//! Telling the user, through a command of their own: what is told, what is not, and what a bad command may not do.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::run::Running;
use crate::support::terminal::Terminal;
use crate::support::wait::stays;
use crate::support::{DEADLINE, Desktop, Fake, Home, Supervisor, Tmux, proc, wait_until};

/// The user's settings.
fn settings(home: &Home, text: &str) {
    let folder = home.home().join(".config/ait");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// A command that writes down what it is told, a line each, and what it was started with.
fn command(home: &Home) -> String {
    let folder = home.root().join("told");
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.display();
    let script = home.script(
        "told",
        &format!(
            "#!/bin/sh\nline=$(cat)\nls -l /proc/$$/fd >'{folder}/descriptors'\ntr '\\0' '\\n' </proc/$$/environ >'{folder}/environment'\n\
             tr '\\0' ' ' </proc/$$/cmdline >'{folder}/words'\ncut -d' ' -f5 /proc/$$/stat >'{folder}/group'\n\
             echo $$ >>'{folder}/group'\npwd >'{folder}/cwd'\nprintf '%s\\n' \"$line\" >>'{folder}/lines'\n"
        ),
    );
    format!("[notify]\ncommand = [\"{}\", \"--as\", \"me\"]\n", script.display())
}

fn left(home: &Home, name: &str) -> String {
    fs::read_to_string(home.root().join("told").join(name)).unwrap_or_default()
}

/// All that was told.
fn told(home: &Home) -> Vec<Value> {
    left(home, "lines").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until so much was told; the last of it.
#[track_caller]
fn until_told(home: &Home, count: usize) -> Value {
    let all = wait_until(&format!("{count} notes"), DEADLINE, || {
        let all = told(home);
        (all.len() >= count).then_some(all)
    });
    assert_eq!(all.len(), count, "{all:#?}");
    all.last().unwrap().clone()
}

/// Waits until the supervisor says this of its telling.
#[track_caller]
fn until(supervisor: &Supervisor, name: &str, value: u64) -> Value {
    supervisor.status_until(&format!("{value} {name}"), |status| {
        (status["notify"][name] == value).then(|| status["notify"].clone())
    })
}

/// An agent with hooks, known to the supervisor.
#[track_caller]
fn agent(home: &Home, tmux: &Tmux, supervisor: &Supervisor) -> (Fake, String) {
    let agent = Fake::claude(tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(tmux);
    supervisor.watching(tmux, 1);
    (agent, id)
}

#[test]
fn an_agent_that_asks_and_is_done_is_told_of_and_nothing_else_is_said() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &command(&home));
    let secret = [("MY_API_KEY", "sk-secret"), ("CLAUDECODE", "1"), ("MY_PLACE", "here"), ("TMUX", "x,1,0")];
    let supervisor = Supervisor::launch(&home, &[&tmux], &secret);
    supervisor.ready();
    let (agent, id) = agent(&home, &tmux, &supervisor);
    agent.say(&tmux, "a private prompt [[ask]]");
    let note = until_told(&home, 1);
    let session = json!({
        "id": id,
        "name": null,
        "agent": "claude",
        "project": home.project("alpha"),
        "window": "cart",
        "socket": tmux.socket_text(),
        "pane": agent.pane.id,
    });
    assert_eq!(
        (&note["schema_version"], &note["reason"], &note["session"]),
        (&json!("ait.notify.v1"), &json!("needs_input"), &session)
    );
    assert_eq!(note["attention"], json!({"kind": "approval", "tool": "Bash", "pending": 1}), "{note:#}");
    assert_eq!((&note["question"], &note["held"]), (&json!("Stand-in"), &json!(0)), "{note:#}");
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    agent.ready(&tmux);
    let note = until_told(&home, 2);
    assert_eq!((&note["reason"], &note["question"]), (&json!("waiting"), &Value::Null), "{note:#}");
    // what it is started with
    let words = left(&home, "words");
    assert!(words.trim_end().ends_with("told --as me"), "{words}");
    let group = left(&home, "group");
    let group: Vec<&str> = group.lines().collect();
    assert_eq!((group[0], left(&home, "cwd").trim()), (group[1], "/"), "a group of its own");
    let environment = left(&home, "environment");
    assert!(environment.contains("MY_PLACE=here"), "{environment}");
    for kept_back in ["sk-secret", "CLAUDECODE", "TMUX=", "TMUX_PANE=", "private"] {
        assert!(!environment.contains(kept_back), "{kept_back}: {environment}");
    }
    // what is written anywhere
    for place in [left(&home, "lines"), supervisor.log()] {
        assert!(!place.contains("private"), "{place}");
    }
    let mut folders = vec![home.home().join(".local/state"), home.home().join(".config")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match fs::read(entry.path()) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    assert!(!text.contains("Stand-in"), "{}: {text}", entry.path().display());
                }
                // what the agent showed on its own screen
                Err(_) if entry.path().ends_with("checkpoints") => {}
                Err(_) if entry.path().is_dir() => folders.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    let status = until(&supervisor, "told", 2);
    assert_eq!((&status["failed"], &status["trouble"]), (&json!(0), &Value::Null), "{status:#}");
}

#[test]
fn a_window_that_somebody_looks_at_is_not_told_of() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-s", "focus-events", "on"]);
    home.hooked("claude");
    settings(&home, &command(&home));
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let (agent, _) = agent(&home, &tmux, &supervisor);
    let mut terminal = Terminal::attach(&tmux, Some("main"));
    tmux.ok(["select-window", "-t", &agent.pane.window]);
    agent.prompt(&tmux, "one");
    until(&supervisor, "seen", 1);
    // a pane beside it: the window is looked at all the same, unless only the other pane is shown
    let beside = tmux.split(&agent.pane, &agent.cwd, &["sleep", "1000000"]);
    tmux.ok(["select-pane", "-t", &beside.id]);
    agent.prompt(&tmux, "two");
    until(&supervisor, "seen", 2);
    tmux.ok(["resize-pane", "-Z", "-t", &beside.id]);
    agent.prompt(&tmux, "three");
    assert_eq!(until_told(&home, 1)["reason"], "waiting");
    tmux.ok(["kill-pane", "-t", &beside.id]);
    // another window of the same session
    tmux.ok(["select-window", "-t", "main:0"]);
    agent.prompt(&tmux, "four");
    assert_eq!(until_told(&home, 2)["reason"], "waiting");
    // the same window, and the user is in another program
    tmux.ok(["select-window", "-t", &agent.pane.window]);
    terminal.sends(b"\x1b[O");
    wait_until("tmux to hear of the focus", DEADLINE, || {
        let clients = tmux.ok(["list-clients", "-F", "#{client_control_mode} #{client_flags}"]);
        clients.lines().any(|client| client.starts_with("0 ") && !client.contains("focused")).then_some(())
    });
    agent.prompt(&tmux, "five");
    assert_eq!(until_told(&home, 3)["reason"], "waiting");
    assert_eq!(until(&supervisor, "told", 3)["seen"], 2);
}

#[test]
fn what_was_lost_and_what_is_back_is_told() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    // one that is back before it would be told of is told of as back alone: here it stays lost until somebody asks for it
    settings(&home, &format!("recover = \"offer\"\n{}on = [\"lost\", \"recovered\"]\n", command(&home)));
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let (agent, id) = agent(&home, &tmux, &supervisor);
    agent.prompt(&tmux, "hello");
    tmux.kill(Signal::KILL);
    let note = until_told(&home, 1);
    assert_eq!((&note["reason"], &note["source"]), (&json!("lost"), &json!("server_crashed")), "{note:#}");
    assert_eq!((&note["session"]["id"], &note["session"]["window"]), (&json!(id), &json!("cart")));
    home.ait(["recover"]).ok();
    let note = until_told(&home, 2);
    assert_eq!((&note["reason"], &note["session"]["id"]), (&json!("recovered"), &json!(id)), "{note:#}");
    tmux.remember();
    supervisor.watching(&tmux, 1);
    // another supervisor has nothing new to tell
    drop(supervisor);
    let supervisor = Supervisor::start(&home, &[&tmux]);
    supervisor.watching(&tmux, 1);
    stays("nothing is told twice", Duration::from_secs(1), || told(&home).len() == 2);
    assert_eq!(supervisor.status()["notify"]["told"], 0);
}

/// The processes of a command, as it wrote them down.
fn pids(home: &Home) -> Vec<u32> {
    left(home, "pids").lines().filter_map(|line| line.parse().ok()).collect()
}

/// A command that does not end, deaf to SIGTERM, with a child that is too.
fn endless(home: &Home) -> String {
    let folder = home.root().join("told");
    fs::create_dir_all(&folder).unwrap();
    let script = home.script(
        "endless",
        &format!(
            "#!/bin/sh\ntrap '' TERM\nsleep 1000000 &\nprintf '%s\\n%s\\n' $$ $! >>'{}/pids'\nwait\n",
            folder.display()
        ),
    );
    format!("[notify]\ncommand = [\"{}\"]\n", script.display())
}

#[test]
fn a_command_that_does_not_end_is_ended_and_holds_up_nobody() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &format!("{}timeout = \"1s\"\n", endless(&home)));
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let (agent, id) = agent(&home, &tmux, &supervisor);
    agent.prompt(&tmux, "hello");
    let status = until(&supervisor, "failed", 1);
    assert_eq!(status["trouble"], "it took longer than 1 s and was ended");
    assert_eq!(pids(&home).len(), 2);
    wait_until("its processes to be gone", DEADLINE, || {
        // itself it is collected by us; what it left behind by process 1, or by nobody
        let (itself, left) = (pids(&home)[0], pids(&home)[1]);
        (proc::state(itself).is_none() && matches!(proc::state(left), None | Some('Z'))).then_some(())
    });
    let told = home.ait(["status"]).code(10);
    assert!(told.text().contains("`[notify]` does not work: it took longer"), "{told}");
    let record = home.record(&id).unwrap();
    assert_eq!(record["state"], "live");
}

#[test]
fn a_command_ends_with_its_supervisor() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &endless(&home));
    let mut supervisor = Supervisor::start(&home, &[&tmux]);
    let (agent, _) = agent(&home, &tmux, &supervisor);
    agent.prompt(&tmux, "hello");
    wait_until("the command", DEADLINE, || (pids(&home).len() == 2).then_some(()));
    let running: Vec<proc::Process> = pids(&home).into_iter().filter_map(proc::Process::of).collect();
    assert!(supervisor.stop().success());
    for process in running {
        assert!(process.dies(DEADLINE), "{process:?}");
    }
}

#[test]
fn a_command_that_is_nowhere_or_fails_is_said() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    for (program, trouble) in
        [("/no/such/program", "it cannot be started: "), ("false", "it ended with exit status: 1")]
    {
        settings(&home, &format!("[notify]\ncommand = [\"{program}\"]\n"));
        let supervisor = Supervisor::start(&home, &[&tmux]);
        let (agent, id) = agent(&home, &tmux, &supervisor);
        agent.prompt(&tmux, "hello");
        let status = until(&supervisor, "failed", 1);
        assert!(status["trouble"].as_str().unwrap().starts_with(trouble), "{status:#}");
        agent.leave(&tmux);
        home.until_ended(&id);
    }
    settings(&home, "[notify]\ncommand = [\"no-such-program\"]\n");
    let told = home.ait(["doctor"]).code(10);
    assert!(told.text().contains("[notify] names no-such-program, which is no program here"), "{told}");
}

#[test]
fn settings_that_make_no_sense_are_said_and_nobody_is_told() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &command(&home).replace("[\"", "[\"\", \""));
    for words in [&["doctor"][..], &["setup", "--yes", "--autostart", "none"], &["setup", "--dry-run"]] {
        let ran = home.ait(words).code(65);
        let said = ran.text() + &ran.errors();
        assert!(said.contains("config.toml:2: ") && said.contains("its program has no name"), "{ran}");
    }
    assert!(!home.store().exists(), "nothing was begun");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    // its hooks make its record
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    supervisor.watching(&tmux, 1);
    let status = supervisor.status();
    assert_eq!((&status["health"], &status["notify"]), (&json!("degraded"), &Value::Null), "{status:#}");
    let told = home.ait(["status"]).code(10);
    for part in ["config.toml:2: ", "its program has no name", "nobody is notified"] {
        assert!(told.text().contains(part), "{part}: {told}");
    }
    agent.prompt(&tmux, "hello");
    assert!(self::told(&home).is_empty());
}

#[test]
fn nothing_of_whoever_started_the_supervisor_reaches_the_command() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &command(&home));
    let leak = home.root().join("leak");
    fs::write(&leak, "").unwrap();
    let line = format!(
        "exec 9<'{}'; exec '{}' supervise --socket '{}'",
        leak.display(),
        crate::support::AIT,
        tmux.socket_text()
    );
    let mut sh = home.command("/bin/sh");
    sh.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = Running::start(&mut sh);
    wait_until("the supervisor", DEADLINE, || {
        (home.ait(["status", "--json"]).status.code() != Some(11)).then_some(())
    });
    let links = fs::read_dir(format!("/proc/{}/fd", supervisor.process().pid)).unwrap().flatten();
    let open: Vec<PathBuf> = links.filter_map(|link| fs::read_link(link.path()).ok()).collect();
    assert!(!open.contains(&leak), "{open:?}");
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    agent.adopt(&tmux);
    agent.prompt(&tmux, "hello");
    until_told(&home, 1);
    let descriptors = left(&home, "descriptors");
    // what the shell itself holds for its script and its redirections is beyond 9
    let own = |line: &&str| {
        let number =
            line.split_once(" -> ").and_then(|(before, _)| before.rsplit(' ').next()?.parse::<u32>().ok());
        number.is_some_and(|number| (3..10).contains(&number))
    };
    assert_eq!(descriptors.lines().filter(own).count(), 0, "{descriptors}");
    assert!(!descriptors.contains(&leak.display().to_string()), "{descriptors}");
}

#[test]
fn terminals_that_show_something_else_are_told_in_their_own_words() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, "[notify]\nterminal = \"osc777\"\n");
    let supervisor = Supervisor::start(&home, &[&tmux]);
    let (agent, _) = agent(&home, &tmux, &supervisor);
    let record = home.root().join("terminal");
    let _terminal = Terminal::recorded(&tmux, Some("main"), &record);
    agent.say(&tmux, "a private prompt [[ask]]");
    let sequence = b"\x1b]777;notify;ait;cart (claude) needs input\x07";
    wait_until("the terminal to be told", DEADLINE, || {
        let sent = fs::read(&record).unwrap();
        sent.windows(sequence.len()).any(|part| part == sequence).then_some(())
    });
    assert_eq!(until(&supervisor, "told", 1)["failed"], 0);
}

#[cfg(target_os = "linux")]
#[test]
fn the_desktop_is_told_by_its_own_service_and_names_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, "[notify]\ndesktop = true\non = [\"needs_input\", \"waiting\"]\n");
    let mut desktop = Desktop::bare(&home);
    let (name, address) = desktop.variable();
    let supervisor = Supervisor::launch(&home, &[&tmux], &[(name, &address)]);
    supervisor.ready();
    let (agent, _) = agent(&home, &tmux, &supervisor);
    // nobody there shows it: that is said, with the bus's own reason
    agent.say(&tmux, "a private prompt [[ask]]");
    let status = until(&supervisor, "failed", 1);
    let trouble = status["trouble"].as_str().unwrap();
    assert!(trouble.starts_with("desktop: the desktop does not take it: "), "{trouble}");
    assert!(trouble.contains("org.freedesktop.DBus.Error.ServiceUnknown"), "{trouble}");
    let said = home.ait(["status"]).code(10).text();
    assert!(said.contains("`[notify]` does not work: desktop: the desktop does not take it: "), "{said}");
    // once somebody does, it is told, and works
    desktop.shows();
    tmux.ok(["send-keys", "-t", &agent.pane.id, "Enter"]);
    let status = until(&supervisor, "told", 1);
    assert_eq!((&status["failed"], &status["trouble"]), (&json!(1), &Value::Null), "{status:#}");
    let shown = [["ait", "cart (claude) is done and waits", ""].map(String::from)];
    assert_eq!(desktop.shown(), shown);
}

#[cfg(target_os = "linux")]
#[test]
fn a_desktop_that_does_not_answer_holds_up_nobody() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    home.hooked("claude");
    settings(&home, &format!("{}desktop = true\n", command(&home)));
    // it takes the connection and says nothing
    let socket = home.root().join("mute");
    let _mute = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let address = format!("unix:path={}", socket.display());
    let supervisor = Supervisor::launch(&home, &[&tmux], &[("DBUS_SESSION_BUS_ADDRESS", &address)]);
    supervisor.ready();
    let (agent, _) = agent(&home, &tmux, &supervisor);
    agent.prompt(&tmux, "hello");
    assert_eq!(until_told(&home, 1)["reason"], "waiting");
    let status = until(&supervisor, "failed", 1);
    assert_eq!(
        (&status["told"], status["trouble"].as_str()),
        (&json!(1), Some("desktop: it took longer than 5 s and was ended"))
    );
}
