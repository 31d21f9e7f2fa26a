//! What an agent's surroundings hold that nobody else may read: it is in no argument, no file and no option of ours.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::support::tmux::Start;
use crate::support::{DEADLINE, Fake, Home, Ran, Supervisor, Tmux, proc, wait_until};

const SECRET: &str = "sk-ant-0123456789-never-told";
const PROMPT: &str = "the wording of a prompt";
/// The secret of a control plane.
const TOKEN: &str = "0123456789-of-a-control-plane";

/// The files below a folder in which one of these texts is.
fn told_in(folder: &Path, texts: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            told_in(&path, texts, found);
        } else if path.is_file()
            && let Ok(bytes) = fs::read(&path)
            && texts.iter().any(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn a_secret_of_the_surroundings_is_in_no_argument_no_file_and_no_server() {
    let home = Home::new();
    home.hooked("claude");
    let tmux = Tmux::start_with(
        &home,
        Start { environment: vec![("ANTHROPIC_API_KEY".to_owned(), SECRET.to_owned())], ..Start::default() },
    );
    let supervisor = Supervisor::launch(
        &home,
        &[&tmux],
        &[("AITASKS_STALE_OP_GRACE", "1"), ("ANTHROPIC_API_KEY", SECRET)],
    );
    supervisor.ready();
    let agent = Fake::claude(&tmux, "main", "one", &home.project("alpha"));
    agent.prompt(&tmux, PROMPT);
    let id = agent.adopt(&tmux);
    let arguments = || {
        let told: Vec<String> = home
            .processes()
            .into_iter()
            // the story's own server was given it by the story
            .map(|process| proc::command(process.pid))
            .filter(|words| words.contains(SECRET) || words.contains(PROMPT))
            .collect();
        assert_eq!(told, [""; 0]);
    };
    arguments();
    let mut freeze = home.ait_command(["freeze", &id, "--force"]);
    freeze.env("ANTHROPIC_API_KEY", SECRET);
    Ran::run(&mut freeze).ok();
    arguments();
    let mut restore = home.ait_command(["restore", &id]);
    restore.env("ANTHROPIC_API_KEY", SECRET);
    Ran::run(&mut restore).ok();
    arguments();
    home.store_until("the record to be whole", |home| {
        let record = home.record(&id)?;
        (record["ait"]["server"].is_object() && record["ait"]["agent"].is_object()).then_some(())
    });
    supervisor.watching(&tmux, 1);
    let old = tmux.server().pid;
    tmux.kill(Signal::KILL);
    home.store_until("it to be back", |home| {
        let record = home.record(&id)?;
        (record["state"] == "live" && record["ait"]["server"]["pid"] != old).then_some(())
    });
    tmux.remember();
    arguments();
    assert!(!tmux.ok(["show-environment", "-g"]).contains(SECRET), "nor in the server that was started");
    // the conversation is the provider's own; screens are kept of what was on the screen, in folders of ours alone
    let mut found = Vec::new();
    told_in(&home.home(), &[SECRET], &mut found);
    told_in(&home.runtime(), &[SECRET, PROMPT], &mut found);
    assert_eq!(found, [""; 0]);
    told_in(&home.home(), &[PROMPT], &mut found);
    // a screen may be on its way to its file just now
    let screen = |path: &String| path.contains("/capture.") || path.contains("/.capture.");
    let of_ours = |path: &String| !path.contains("/.claude/") && !screen(path);
    found.retain(|path| of_ours(path) && !path.contains("/agent_sessions.json"));
    assert_eq!(found, [""; 0]);
    // the title that the agent gives its pane is kept, which Claude words like the prompt
    let mut record = home.record(&id).unwrap();
    assert!(record["ait"].as_object_mut().unwrap().remove("title").is_some());
    assert!(!record.to_string().contains(PROMPT), "{record:#}");
    wait_until("its capture to be private", DEADLINE, || {
        use std::os::unix::fs::PermissionsExt;
        let folder = home.home().join(".local/state/ait");
        (fs::metadata(folder).ok()?.permissions().mode() & 0o77 == 0).then_some(())
    });
}

#[test]
fn the_token_of_a_control_plane_is_inherited_by_nobody() {
    let home = Home::new();
    home.agent_program("claude");
    let tmux = Tmux::unstarted(&home, Start::default());
    // a login shell that says nothing: the caller's own variables are all there is
    for profile in [".profile", ".bash_profile", ".zprofile"] {
        fs::write(home.home().join(profile), "exit 0\n").unwrap();
    }
    let mut start = home.ait_command(["start", "--agent", "claude", "--format", "json"]);
    start.current_dir(home.project("alpha"));
    start.env("AGENT_SESSION_TOKEN", TOKEN).env("CLAUDECODE", "1").env("OF_MY_OWN", "kept");
    let told = Ran::run(&mut start).ok();
    tmux.remember();
    assert!(!told.text().contains(TOKEN), "{told}");
    let inherited = |what: &str, variables: &str| {
        assert!(variables.contains("OF_MY_OWN=kept"), "{what}: {variables}");
        assert!(!variables.contains(TOKEN) && !variables.contains("CLAUDECODE"), "{what}: {variables}");
    };
    inherited("the server", &tmux.ok(["show-environment", "-g"]));
    let agent = &told.json()["data"]["location"]["pid"];
    let variables = fs::read(format!("/proc/{agent}/environ")).unwrap();
    inherited("the agent", &String::from_utf8_lossy(&variables));
    let mut found = Vec::new();
    told_in(home.root(), &[TOKEN], &mut found);
    assert_eq!(found, [""; 0]);
}
