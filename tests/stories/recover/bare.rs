//! A supervisor that knows next to nothing of its user's environment.

use std::fs;
use std::process::Stdio;

use crate::support::fake::new_id;
use crate::support::run::Running;
use crate::support::tmux::{Start, real_binary};
use crate::support::{DEADLINE, Fake, Home, Tmux, proc, wait_until};

#[test]
fn an_agent_on_the_users_own_path_with_its_own_account_is_back_under_a_bare_supervisor() {
    let home = Home::new();
    // what `env -i` leaves finds neither the agent nor its account
    if !real_binary().starts_with("/usr/bin") && !real_binary().starts_with("/bin") {
        return crate::support::not_run("tmux is not on the bare PATH");
    }
    let account = home.home().join("accounts/second");
    fs::create_dir_all(&account).unwrap();
    let text = account.to_string_lossy().into_owned();
    let environment = vec![("CLAUDE_CONFIG_DIR".to_owned(), text)];
    let tmux = Tmux::start_with(&home, Start { environment, ..Start::default() });
    let mut command = home.command(crate::support::AIT);
    command.env_clear().env("PATH", "/usr/bin:/bin");
    // where everything of this story lies, as the system says it to a service
    for (name, value) in home.environment() {
        if matches!(name, "HOME" | "XDG_RUNTIME_DIR") {
            command.env(name, value);
        }
    }
    command.arg("supervise").arg("--socket").arg(tmux.socket()).stdin(Stdio::null());
    let log = fs::File::create(home.root().join("supervise.log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let bare = Running::start(&mut command);
    let conversation = new_id();
    let root = home.project("alpha");
    let agent =
        Fake::window(&tmux, "main", "own", &root, "claude", &["--session-id", &conversation]).up(&tmux);
    agent.say(&tmux, "hello");
    agent.screen_until(&tmux, "its answer", |screen| screen.contains("turn 1, 0 earlier: hello"));
    let stored = || {
        let file = find(&account, &conversation)?;
        fs::read_to_string(file).ok()?.contains("0 earlier: hello").then_some(())
    };
    wait_until("its conversation in its own account", DEADLINE, stored);
    let id = agent.adopt(&tmux);
    home.store_until("the record to be whole", |home| {
        let record = home.record(&id)?;
        (record["ait"]["server"].is_object() && record["ait"]["agent"].is_object()).then_some(())
    });
    let old = tmux.server().pid;
    tmux.kill(rustix::process::Signal::KILL);
    let record = home.store_until("it to be back", |home| {
        super::is_back(home, &id, old).then(|| home.record(&id)).flatten()
    });
    tmux.remember();
    assert_eq!(super::running(&home, &conversation), 1);
    let back = wait_until("its process", DEADLINE, || {
        let pid = record["ait"]["agent"]["pid"].as_u64().or_else(|| record["pane_pid"].as_u64())?;
        proc::command(u32::try_from(pid).ok()?).contains(&conversation).then_some(pid)
    });
    let environment = fs::read(format!("/proc/{back}/environ")).unwrap();
    let told = String::from_utf8_lossy(&environment).into_owned();
    assert!(
        told.split('\0').any(|line| line == format!("CLAUDE_CONFIG_DIR={}", account.display())),
        "{told}"
    );
    let pane = record["pane_id"].as_str().unwrap();
    wait_until("the conversation to be on its screen", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", pane]).contains("? for shortcuts").then_some(())
    });
    drop(bare);
}

/// The file of that conversation below `folder`.
fn find(folder: &std::path::Path, conversation: &str) -> Option<std::path::PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return find(&path, conversation);
        }
        let name = path.file_name()?.to_str()?;
        (name == format!("{conversation}.jsonl")).then_some(path)
    })
}
